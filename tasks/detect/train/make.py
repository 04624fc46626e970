"""The making of both networks, each of which is made once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from models.errors import BadSettings
from tasks.detect.judge import JUDGE
from tasks.detect.layout import LONG_SIDE, NETWORK, as_input
from tasks.detect.page import Gray, fit
from tasks.detect.train.compose import Bank, make_bank
from tasks.detect.train.crops import make_crops
from tasks.detect.train.export import FREE_PAGE, FREE_WINDOWS, export
from tasks.detect.train.fit import BATCH, fit_layout
from tasks.detect.train.judge_fit import BATCH as JUDGE_BATCH
from tasks.detect.train.judge_fit import EPOCHS, as_read, fit_judge
from tasks.detect.train.net import JudgeEnsemble, JudgeNet
from tasks.detect.train.pages import Scene

CALIBRATION = 40
"""Pages, about, on which the range of the network's activations is measured; of windows ten times
as many."""
MEMBERS = 4
"""Judges in the ensemble: trained on the same works, they may give one region odds as far apart as
0.1 and 0.9."""
APART = 10
"""Between the seeds of two members; folds, fewer than ten, take the seeds between."""

Card = dict[str, Any]
"""What a network is made of."""


@dataclass(frozen=True)
class Plan:
    """How much is trained, and from which seed."""

    steps: int
    crops: int
    seed: int


def train(
    scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]], output: Path, plan: Plan
) -> None:
    """Make what is missing of the two networks, each with a card that says what it is made of.

    The ensemble of judges is one network: if its making is interrupted, all its members are made
    again.

    Args:
        scenes: Labelled pages.
        pictures: Loose illustrations and their works.
        output: The folder for both.
        plan: How much is trained, and from which seed.

    Raises:
        BadSettings: One of them is there, and was trained on something else or otherwise; or there
            is nothing to make pages from.
    """
    material: dict[str, Any] = {
        "pages": len(scenes),
        "works": sorted({scene.work for scene in scenes}),
        "material": _fingerprint(scenes, pictures),
    }
    cards: dict[str, Card] = {
        NETWORK: {"steps": plan.steps, "batch": BATCH, "seed": plan.seed, **material},
        JUDGE: {
            "crops": plan.crops,
            "epochs": EPOCHS,
            "batch": JUDGE_BATCH,
            "seeds": list(_seeds(plan)),
            **material,
        },
    }
    missing = [name for name, card in cards.items() if not _is_made(output / name, card)]
    if not missing:
        return
    bank = make_bank(scenes, pictures)
    for what, there in (("a picture", bank.pictures), ("nothing but text", bank.plain)):
        if not there:
            raise BadSettings(
                f"For {output}: no page of {len(material['works'])} works is labelled and has "
                f"{what}; pictures are put onto pages of text. Label some, of more works if there "
                "are to be folds."
            )
    output.mkdir(parents=True, exist_ok=True)
    for name in missing:
        # Before it is made, so that what is there afterwards is never taken for something else.
        _write_card(output / name, cards[name])
        if name == NETWORK:
            make_layout(bank, [scene.gray for scene in scenes], output / name, plan)
        else:
            make_judge(bank, output / name, plan)
        _write_card(output / name, cards[name])


def _is_made(target: Path, card: Card) -> bool:
    """Whether a network is there already, trained just so."""
    if not target.exists():
        return False
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    try:
        there = json.loads(target.with_suffix(".json").read_text(encoding="utf-8"))
        same = {**there, "torch": "", "sha256": there.get("sha256", digest)}
    except (OSError, ValueError, TypeError, AttributeError):
        same = {}
    if same != {**card, "torch": "", "sha256": digest}:
        raise BadSettings(
            f"{target} was trained otherwise, on other pages, or is not what its card "
            f"{target.with_suffix('.json').name} says: remove it, or choose another --output."
        )
    print(f"{target} is there already", flush=True)
    return True


def _write_card(target: Path, card: Card) -> None:
    """Write down what a network is made of; once it is there, with its SHA-256."""
    made = {}
    if target.exists():
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        made = {"sha256": digest, "torch": torch.__version__}
    text = json.dumps(made | card, indent=1) + "\n"
    target.with_suffix(".json").write_text(text, encoding="utf-8")


def _seeds(plan: Plan) -> range:
    return range(plan.seed, plan.seed + MEMBERS * APART, APART)


def make_layout(bank: Bank, pages: Sequence[Gray], target: Path, plan: Plan) -> None:
    """Train and write the network that draws maps; its activations are measured on `pages`."""
    net = fit_layout(bank, plan.steps, plan.seed, lambda line: print(target, line, flush=True))
    some = pages[:: max(1, len(pages) // CALIBRATION)]
    export(net, FREE_PAGE, (as_input(fit(page, LONG_SIDE)) for page in some), target)


def make_judge(bank: Bank, target: Path, plan: Plan) -> None:
    """Train and write the judges of regions; activations are measured on the last one's crops."""
    members, shown = [], np.empty(0, np.uint8)
    for seed in _seeds(plan):
        member, shown = _make_member(bank, plan.crops, seed, target)
        members.append(member)
    parts = (as_read(shown[start : start + 10]) for start in range(0, len(shown), 10))
    export(JudgeEnsemble(members), FREE_WINDOWS, parts, target)


def _make_member(
    bank: Bank, crops: int, seed: int, target: Path
) -> tuple[JudgeNet, NDArray[np.uint8]]:
    """One judge, and some of the windows it was shown."""

    def log(line: str) -> None:
        print(target, f"seed {seed}:", line, flush=True)

    windows, kinds = make_crops(bank, crops, seed, log)
    some = windows[:: max(1, crops // (10 * CALIBRATION))].copy()
    return fit_judge(windows, kinds, seed, log), some


def _fingerprint(scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]]) -> str:
    """SHA-256 of all pages, boxes and pictures, in hex."""
    made_of = hashlib.sha256()
    for scene in scenes:
        boxes = (scene.work, scene.pictures, scene.ornaments, scene.ruled)
        made_of.update(repr(boxes).encode() + scene.gray.tobytes())
    for work, patch in pictures:
        made_of.update(work.encode() + patch.tobytes())
    return made_of.hexdigest()
