"""The verdict on a page."""

from __future__ import annotations

from typing import Any

import pytest

from models.records import Detection, Region, RegionKind
from models.settings import Settings
from tasks.decide import WHOLE_PAGE, Verdict, decide


def verdict(detection: Detection, **given: Any) -> Verdict:
    return decide(detection, Settings.model_validate({"source": "in", "output": "out", **given}))


def region(area: float, kind: RegionKind = RegionKind.ENGRAVING, x: float = 0.0) -> Region:
    return Region(box=(x, 0.0, x + 0.5, area / 0.5), kind=kind)


@pytest.mark.parametrize(
    ("score", "outcome", "reason"),
    [(45.0, "dropped", "low_sigma"), (45.01, "kept", "sigma"), (0.0, "dropped", "low_sigma")],
)
def test_sigma_keeps_above_its_threshold(score: float, outcome: str, reason: str) -> None:
    said = verdict(Detection(score=score), triage={"method": "sigma"})
    assert (said.outcome, said.reason) == (outcome, reason)
    assert [r.box for r in said.regions] == ([WHOLE_PAGE] if outcome == "kept" else [])


@pytest.mark.parametrize(
    ("regions", "blank", "reason", "kept"),
    [
        ([], True, "blank", 0),
        ([], False, "text", 0),
        ([region(0.2)], False, "illustration", 1),
        ([region(0.05), region(0.04, x=0.5)], False, "illustration", 2),
        ([region(0.05)], False, "small_illustration", 0),
        ([region(0.009)] * 20, False, "small_illustration", 0),
        ([region(0.2), region(0.009, x=0.5)], False, "illustration", 1),
        ([region(0.4, RegionKind.TABLE)], False, "other_kind", 0),
        ([region(0.01, RegionKind.ORNAMENT)], False, "text", 0),
        (
            [region(0.4, RegionKind.MAP), region(0.1, RegionKind.PHOTOGRAPH, 0.5)],
            False,
            "illustration",
            1,
        ),
    ],
)
def test_pages_are_kept_for_their_illustrations(
    regions: list[Region], blank: bool, reason: str, kept: int
) -> None:
    said = verdict(Detection(score=0, regions=regions, blank=blank))
    assert said.reason == reason and len(said.regions) == kept
    assert (said.outcome == "kept") == (kept > 0)
    assert [r for r in regions if r in said.regions] == said.regions, "in reading order"


def test_whole_pages_may_be_asked_for() -> None:
    both = [region(0.1), region(0.3, RegionKind.PHOTOGRAPH, 0.5)]
    said = verdict(Detection(score=0, regions=both), regions={"unit": "page"})
    assert [(r.box, r.kind) for r in said.regions] == [(WHOLE_PAGE, RegionKind.PHOTOGRAPH)]


def test_kinds_may_be_chosen() -> None:
    music = Detection(score=0, regions=[region(0.3, RegionKind.MUSIC)])
    assert verdict(music).outcome == "dropped"
    assert verdict(music, regions={"keep_kinds": ["music"]}).outcome == "kept"
