"""The making of the networks, each of which is made once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
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
from tasks.detect.refine import REFINER
from tasks.detect.train.compose import Bank, make_bank
from tasks.detect.train.crops import make_crops, unpack
from tasks.detect.train.export import FREE_BOXES, FREE_PAGE, FREE_WINDOWS, Inputs, export
from tasks.detect.train.fit import BATCH, fit_layout
from tasks.detect.train.judge_fit import EPOCHS, as_read, fit_judge
from tasks.detect.train.net import JudgeEnsemble
from tasks.detect.train.pages import Scene
from tasks.detect.train.refine_fit import EPOCHS as REFINER_EPOCHS
from tasks.detect.train.refine_fit import fit_refiner, make_boxes
from tasks.detect.train.window_fit import BATCH as WINDOW_BATCH

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
    """Make what is missing of the three networks, each with a card that says what it is made of.

    The ensemble of judges is one network: if its making is interrupted, all its members are made
    again.

    Args:
        scenes: Labelled pages.
        pictures: Loose illustrations and their works.
        output: The folder for all.
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
            "batch": WINDOW_BATCH,
            "seeds": list(_seeds(plan)),
            **material,
        },
        REFINER: {
            "crops": plan.crops,
            "epochs": REFINER_EPOCHS,
            "batch": WINDOW_BATCH,
            "seed": plan.seed,
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
        elif name == JUDGE:
            make_judge(bank, output / name, plan)
        else:
            make_refiner(bank, output / name, plan)
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
        log = _log(target, seed)
        windows, kinds = make_crops(bank, plan.crops, seed, log)
        members.append(fit_judge(windows, kinds, seed, log))
        shown = windows[:: _every(plan.crops)].copy()
    export(JudgeEnsemble(members), FREE_WINDOWS, _by_tens(as_read(shown)), target)


def make_refiner(bank: Bank, target: Path, plan: Plan) -> None:
    """Train and write the refiner of boxes; activations are measured on windows it was shown."""
    log = _log(target, plan.seed)
    windows, truths = make_boxes(bank, plan.crops, plan.seed, log)
    net = fit_refiner(windows, truths, plan.seed, log)
    shown = unpack(windows[:: _every(plan.crops)])
    export(net, FREE_BOXES, _by_tens(shown), target)


def _log(target: Path, seed: int) -> Callable[[str], None]:
    return lambda line: print(target, f"seed {seed}:", line, flush=True)


def _every(crops: int) -> int:
    """Which of the windows shown the range of activations is measured on: every so many."""
    return max(1, crops // (10 * CALIBRATION))


def _by_tens(windows: NDArray[np.float32]) -> Inputs:
    return (windows[start : start + 10] for start in range(0, len(windows), 10))


def _fingerprint(scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]]) -> str:
    """SHA-256 of all pages, boxes and pictures, in hex."""
    made_of = hashlib.sha256()
    for scene in scenes:
        boxes = (scene.work, scene.pictures, scene.ornaments, scene.ruled)
        made_of.update(repr(boxes).encode() + scene.gray.tobytes())
    for work, patch in pictures:
        made_of.update(work.encode() + patch.tobytes())
    return made_of.hexdigest()
