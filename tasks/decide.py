"""The verdict on a page: what triage measured, against the thresholds of this run.

Kept apart from the measuring, so that a changed threshold re-does no measurement.
"""

from __future__ import annotations

from pydantic import Field

from models.records import Detection, Outcome, Record, Region, RelativeBox
from models.settings import Settings
from tasks import spread

WHOLE_PAGE: RelativeBox = (0.0, 0.0, 1.0, 1.0)


class Verdict(Record):
    """What becomes of a page.

    Attributes:
        outcome: Kept or dropped.
        reason: One word for the tables: ``illustration``, ``sigma``, ``text``, ``blank``,
            ``small_illustration``, ``other_kind`` or ``low_sigma``.
        regions: What to cut; empty if the page is dropped.
    """

    outcome: Outcome
    reason: str
    regions: list[Region] = Field(default=[])


def decide(detection: Detection, settings: Settings) -> Verdict:
    """Judge a page.

    Args:
        detection: What the triage method saw.
        settings: The run's settings; ``triage`` and ``regions`` matter here.
    """
    if settings.triage.method == "sigma":
        if detection.score > settings.triage.sigma_threshold:
            whole = Region(box=WHOLE_PAGE)
            return Verdict(outcome=Outcome.KEPT, reason="sigma", regions=[whole])
        return Verdict(outcome=Outcome.DROPPED, reason="low_sigma")

    wanted = _wanted(detection, settings)
    kept = [
        (page, large)
        for page, large, area in _by_page(detection, settings)
        if large and area >= settings.triage.min_area
    ]
    if kept:
        regions = [region for _, large in kept for region in large]
        if settings.regions.unit == "page":
            regions = _whole(detection, kept)
        return Verdict(outcome=Outcome.KEPT, reason="illustration", regions=regions)
    if wanted:
        reason = "small_illustration"
    elif sum(spread.area(r.box, detection) for r in detection.regions) >= settings.triage.min_area:
        reason = "other_kind"
    else:
        reason = "blank" if detection.blank else "text"
    return Verdict(outcome=Outcome.DROPPED, reason=reason)


def figure(detection: Detection, settings: Settings) -> float:
    """What the verdict compares with its threshold.

    Returns:
        For ``sigma`` the score; for the others the summed area of the illustrations that are
        large enough and of a kind to keep, as a fraction of the page; of a spread, that of the
        page which has more.
    """
    if settings.triage.method == "sigma":
        return detection.score
    return max(area for _, _, area in _by_page(detection, settings))


def counts(region: Region, detection: Detection, settings: Settings) -> bool:
    """Whether a region is of a kind to keep, and large enough on the page it lies on."""
    large = spread.area(region.box, detection) >= settings.regions.min_area
    return large and region.kind in settings.regions.keep_kinds


def _wanted(detection: Detection, settings: Settings) -> list[Region]:
    return [r for r in detection.regions if r.kind in settings.regions.keep_kinds]


def _by_page(
    detection: Detection, settings: Settings
) -> list[tuple[RelativeBox, list[Region], float]]:
    """For each page on the scan: its box, its illustrations, and how much of it they cover."""
    found = []
    for page in spread.pages(detection):
        large = [
            region
            for region in detection.regions
            if page[0] <= spread.center(region.box) < page[2]
            and counts(region, detection, settings)
        ]
        found.append((page, large, sum(spread.area(r.box, detection) for r in large)))
    return found


def _whole(detection: Detection, kept: list[tuple[RelativeBox, list[Region]]]) -> list[Region]:
    """The kept pages in place of their illustrations; both in one where a picture runs across."""
    regions = [max(large, key=lambda r: spread.area(r.box, detection)) for _, large in kept]
    boxes = [page for page, _ in kept]
    for _, large in kept:
        across = [r for r in large if spread.crosses(r.box, detection)]
        if across:
            regions, boxes = across[:1], [WHOLE_PAGE]
    return [
        region.model_copy(update={"box": box}) for region, box in zip(regions, boxes, strict=True)
    ]
