"""Train the networks of ``layout`` again, on any folder in the corpus format.

    python -m tasks.detect.train --corpus DIR --output WEIGHTS [--folds 4]

Writes into the folder WEIGHTS the network that draws maps (``layout.onnx``), the one that judges
regions (``regions.onnx``), a card of what they were trained on (``layout.json``), and, with folds,
what networks that never saw a page's work found on it (``layout.folds.json``), from which the
selection benchmark takes honest figures. A run that was killed goes on with the networks it has
not made. Needs torch (the ``train`` extra). To use the weights:
``python -m flows.extract --triage.weights WEIGHTS``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import cv2
import torch

from models.records import Detection
from tasks.detect.corpus import LabelledPage, render_fit
from tasks.detect.judge import JUDGE
from tasks.detect.layout import (
    FOLDS,
    LONG_SIDE,
    NETWORK,
    LayoutDetector,
    as_input,
    write_predictions,
)
from tasks.detect.page import Gray, fit
from tasks.detect.train.compose import Bank, make_bank
from tasks.detect.train.crops import make_crops
from tasks.detect.train.export import FREE_PAGE, FREE_WINDOWS, export
from tasks.detect.train.fit import BATCH, fit_layout
from tasks.detect.train.folds import assign_folds
from tasks.detect.train.judge_fit import as_read, fit_judge
from tasks.detect.train.pages import Scene, load, load_pictures

CALIBRATION = 40
"""Pages, about, on which the range of the network's activations is measured; of windows ten times
as many."""


@dataclass(frozen=True)
class Plan:
    """How much is trained, and from which seed."""

    steps: int
    crops: int
    seed: int


def main() -> None:
    """Cross-validate if asked to, then train on everything and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    parser.add_argument("--output", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--annotations", type=Path, help="table that adds to labels.csv")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate by work; 0: do not")
    parser.add_argument("--steps", type=int, default=800, help=f"batches of {BATCH} images")
    parser.add_argument("--crops", type=int, default=9400, help="regions shown to the judge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    plan = Plan(arguments.steps, arguments.crops, arguments.seed)
    started = time.monotonic()
    pages, scenes = load(arguments.corpus, arguments.annotations)
    if not any(scene.plain and scene.text.any() for scene in scenes):
        raise SystemExit(
            f"{arguments.corpus}: no page is labelled text and has nothing else; pictures and "
            "ornaments are put onto such pages. Label some."
        )
    pictures = load_pictures(arguments.corpus)
    print(f"{len(pages)} pages of {len({page.work for page in pages})} works", flush=True)
    output: Path = arguments.output
    found: dict[str, Detection] = {}
    folds = assign_folds(pages, arguments.folds) if arguments.folds > 1 else {}
    for fold in range(arguments.folds if folds else 0):
        seen = [scene for scene in scenes if folds[scene.work] != fold]
        held = [page for page in pages if folds[page.work] == fold]
        part = output / f"fold{fold}"
        _train(seen, pictures, part, replace(plan, seed=plan.seed + 1 + fold))
        found |= predict(part, held)
    if found:
        write_predictions(output / FOLDS, found)
    _train(scenes, pictures, output, plan)
    card = {
        "sha256": {
            name: hashlib.sha256((output / name).read_bytes()).hexdigest()
            for name in (NETWORK, JUDGE)
        },
        **asdict(plan),
        "batch": BATCH,
        "torch": torch.__version__,
        "pages": len(pages),
        "works": sorted({page.work for page in pages}),
    }
    (output / "layout.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(f"{output} after {time.monotonic() - started:.0f} s", flush=True)


def predict(weights: Path, pages: Sequence[LabelledPage]) -> dict[str, Detection]:
    """What the networks in a folder find on pages, by path and page index."""
    detector = LayoutDetector(weights)
    return {
        f"{page.path}#{page.index}": detector(render_fit(page.file, page.index, LONG_SIDE))
        for page in pages
    }


def _train(
    scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]], output: Path, plan: Plan
) -> None:
    """Make what is missing of the two networks."""
    mark, made_of = output / "made-of.txt", _fingerprint(scenes, pictures, plan)
    there = [output / name for name in (NETWORK, JUDGE) if (output / name).exists()]
    if there and not (mark.exists() and mark.read_text() == made_of):
        raise SystemExit(f"{there[0]} was trained otherwise: choose another --output.")
    for target in there:
        print(f"{target} is there already", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    mark.write_text(made_of)
    bank = make_bank(scenes, pictures)
    if output / NETWORK not in there:
        make_layout(bank, [scene.gray for scene in scenes], output / NETWORK, plan)
    if output / JUDGE not in there:
        make_judge(bank, output / JUDGE, plan)


def make_layout(bank: Bank, pages: Sequence[Gray], target: Path, plan: Plan) -> None:
    """Train and write the network that draws maps; its activations are measured on `pages`."""
    net = fit_layout(bank, plan.steps, plan.seed, lambda line: print(target, line, flush=True))
    some = pages[:: max(1, len(pages) // CALIBRATION)]
    export(net, FREE_PAGE, (as_input(fit(page, LONG_SIDE)) for page in some), target)


def make_judge(bank: Bank, target: Path, plan: Plan) -> None:
    """Train and write the network that judges regions."""

    def log(line: str) -> None:
        print(target, line, flush=True)

    windows, kinds = make_crops(bank, plan.crops, plan.seed, log)
    net = fit_judge(windows, kinds, plan.seed, log)
    some = windows[:: max(1, len(windows) // (10 * CALIBRATION))]
    parts = (as_read(some[start : start + 10]) for start in range(0, len(some), 10))
    export(net, FREE_WINDOWS, parts, target)


def _fingerprint(scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]], plan: Plan) -> str:
    """Of all that a training depends on but the code."""
    made_of = hashlib.sha256(repr((plan, BATCH)).encode())
    for scene in scenes:
        boxes = (scene.work, scene.pictures, scene.ornaments, scene.ruled)
        made_of.update(repr(boxes).encode() + scene.gray.tobytes())
    for work, patch in pictures:
        made_of.update(work.encode() + patch.tobytes())
    return made_of.hexdigest()


if __name__ == "__main__":
    main()
