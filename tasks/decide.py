"""The verdict on a page: what triage measured, against the thresholds of this run.

Kept apart from the measuring, so that a changed threshold re-does no measurement.
"""

from __future__ import annotations

from pydantic import Field

from models.records import Detection, Outcome, Record, Region, RelativeBox
from models.settings import Settings

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

    wanted = [r for r in detection.regions if r.kind in settings.regions.keep_kinds]
    large = [r for r in wanted if _area(r) >= settings.regions.min_area]
    if large and sum(map(_area, large)) >= settings.triage.min_area:
        if settings.regions.unit == "page":
            best = max(large, key=_area)
            large = [best.model_copy(update={"box": WHOLE_PAGE})]
        return Verdict(outcome=Outcome.KEPT, reason="illustration", regions=large)
    if wanted:
        reason = "small_illustration"
    elif sum(map(_area, detection.regions)) >= settings.triage.min_area:
        reason = "other_kind"
    else:
        reason = "blank" if detection.blank else "text"
    return Verdict(outcome=Outcome.DROPPED, reason=reason)


def _area(region: Region) -> float:
    x0, y0, x1, y1 = region.box
    return max(0.0, x1 - x0) * max(0.0, y1 - y0)
