"""Keys: a changed setting re-does what depends on it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from models.errors import DamagedPage, UnreadableFile
from models.records import Cut, Fault, Region
from models.settings import Settings
from tasks.keys import Keys

REGIONS = [Region(box=(0.1, 0.1, 0.5, 0.5))]


def keys(**given: Any) -> Keys:
    return Keys(Settings.model_validate({"source": "in", "output": "out", **given}))


def changes(**given: Any) -> set[str]:
    """Which fingerprints a setting changes."""
    before, after = keys(), keys(**given)
    pairs = {
        "look": (before.look, after.look),
        "cut": (before.cut("v", REGIONS), after.cut("v", REGIONS)),
        "fault": (before.limits, after.limits),
    }
    return {name for name, (old, new) in pairs.items() if old != new}


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"source": "elsewhere"}, set()),
        ({"output": "elsewhere"}, set()),
        ({"strict": True}, set()),
        ({"triage": {"min_area": 0.3}}, set()),
        ({"triage": {"sigma_threshold": 3}}, set()),
        ({"regions": {"keep_kinds": ["map"]}}, set()),
        ({"regions": {"min_area": 0.3}}, set()),
        ({"run": {"workers": 3}}, set()),
        ({"run": {"pages_per_task": 3}}, set()),
        ({"run": {"disk_reserve_mb": 3}}, set()),
        ({"run": {"page_timeout_s": 3}}, {"fault"}),
        ({"run": {"worker_memory_mb": 300}}, {"fault"}),
        ({"run": {"scratch_budget_mb": 300}}, {"fault"}),
        ({"read": {"passwords": ["x"]}}, {"fault"}),
        ({"read": {"dpi": 300}}, {"cut"}),
        ({"read": {"max_megapixels": 20}}, {"look", "cut"}),
        ({"regions": {"margin": 0.1}}, {"cut"}),
        ({"clean": {"paper": "white"}}, {"cut"}),
        ({"clean": {"descreen": True}}, {"cut"}),
        ({"clean": {"deskew": True}}, {"cut"}),
        ({"fit": {"side": 512}}, {"cut"}),
        ({"fit": {"mode": "pad"}}, {"cut"}),
        ({"fit": {"min_side": 3}}, {"cut"}),
        ({"encode": {"quality": 50}}, {"cut"}),
        ({"encode": {"format": "png"}}, {"cut"}),
        ({"encode": {"keep_gray": True}}, {"cut"}),
        ({"triage": {"method": "sigma"}}, {"look"}),
    ],
)
def test_what_a_setting_re_does(given: dict[str, Any], changed: set[str]) -> None:
    assert changes(**given) == changed


def test_passwords_change_keys_by_what_they_are() -> None:
    one, other = (keys(read={"passwords": [word]}) for word in ("one", "other"))
    assert one.limits != other.limits
    of_one = keys(read={"password_of": {"a.pdf": "one"}})
    assert len({one.limits, of_one.limits, keys().limits}) == 3


def test_a_cut_depends_on_its_volume_and_regions() -> None:
    base = keys().cut("v", REGIONS)
    assert base == keys().cut("v", list(REGIONS))
    assert base != keys().cut("w", REGIONS)
    assert base != keys().cut("v", REGIONS * 2)
    assert base != keys().cut("v", [])


def test_which_records_hold() -> None:
    now, limits = keys(), keys(run={"page_timeout_s": 3})
    good = Cut(page_index=0, key="k")
    assert now.valid(good, "k") and not now.valid(good, "other")
    assert limits.valid(good, "k"), "limits do not matter to what went well"
    fault = Cut(page_index=0, key=now.fault("k"), fault=Fault.of(DamagedPage("x")))
    assert now.valid(fault, "k")
    assert not limits.valid(fault, "k") and not now.valid(fault, "other")
    gone = fault.model_copy(update={"fault": Fault.of(UnreadableFile("x"))})
    assert not now.valid(gone, "k"), "it may be there again"
