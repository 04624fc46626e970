"""What a verdict says in words, on the terminal and in the report."""

from __future__ import annotations

import re

import pytest

from models.calibrate import Rate
from models.clip.settings import ClipSettings
from models.score import PurityVerdict, ScoreSettings, Selection, SpreadVerdict, Verdict
from tasks.score.report import render
from tasks.score.words import percent, rows

NOTHING = Rate(value=None, low=None, high=None)


def verdict(**changed: object) -> Verdict:
    given = {
        "scored_by": "print",
        "samples": 10,
        "kept": 9,
        "dropped": {"impure": 1},
        "purity": PurityVerdict(estimate=0.9998, estimate_before=0.5, measured=NOTHING),
        "duplicate_groups": 0,
        "duplicates": 0,
        "spread": SpreadVerdict(coverage=1.0, vendi_kept=3, vendi_all=3, balance={}),
        "settings": ScoreSettings(dataset="d", clip=ClipSettings(model="print")).model_dump(),
    }
    return Verdict.model_validate(given | changed)


def heading(of: Verdict) -> str:
    found = re.search(r"<h1>(.*?)</h1>", render(of), re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("share", "said"), [(0.9998, "99.9 %"), (1.0, "100.0 %"), (0.9994, "99.9 %"), (0.5, "50.0 %")]
)
def test_only_the_whole_is_100(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_purity_says_what_it_is_of() -> None:
    assert heading(verdict()) == "99.9 % pure, by estimate"
    rate = Rate(value=0.8, low=0.6, high=0.9)
    labelled = verdict(purity=PurityVerdict(estimate=0.9, estimate_before=0.5, measured=rate))
    assert "by the scores alone" in heading(labelled)
    assert "was then dropped" in dict(rows(labelled))["purity"]


def test_the_bend_of_a_selection_is_said_where_there_is_one() -> None:
    curve = [(0, 0.0), (1, 0.5), (2, 0.8), (3, 0.9)]
    chosen = Selection(chosen=3, value=0.9, bound=1.0, curve=curve, knee=2)
    words = dict(rows(verdict(selection=chosen)))["selection"]
    assert "each of the first 2 adds more than they do on average" in words
    one = Selection(chosen=1, value=0.5, bound=0.5, curve=curve[:2], knee=0)
    assert "first" not in dict(rows(verdict(selection=one)))["selection"]


def test_the_small_model_is_not_said_to_have_the_weights_of_another() -> None:
    assert "datacomp" not in render(verdict())
