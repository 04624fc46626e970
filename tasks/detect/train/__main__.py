"""Train the networks of ``layout`` again, on any folder in the corpus format.

    python -m tasks.detect.train --corpus DIR --output WEIGHTS [--folds 4]

Writes into the folder WEIGHTS the network that draws maps (``layout.onnx``), the one that judges
regions (``regions.onnx``), cards of what each was trained on (``layout.json``, ``regions.json``),
and, with folds, what networks that never saw a page's work found on it (``layout.folds.json``),
from which the selection benchmark takes honest figures. A run that was killed goes on with the
networks it has not made. Needs torch (the ``train`` extra). To use the weights:
``python -m flows.extract --triage.weights WEIGHTS``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import torch

from models.errors import BadSettings
from models.records import Detection
from tasks.detect.corpus import LabelledPage, render_fit
from tasks.detect.layout import (
    FOLDS,
    LONG_SIDE,
    LayoutDetector,
    write_predictions,
)
from tasks.detect.page import Gray
from tasks.detect.train.fit import BATCH
from tasks.detect.train.folds import assign_folds
from tasks.detect.train.make import Plan, train
from tasks.detect.train.pages import Scene, load, load_pictures


def main() -> None:
    """Cross-validate if asked to, then train on everything and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    parser.add_argument("--output", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--annotations", type=Path, help="table that adds to labels.csv")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate by work; 0: do not")
    parser.add_argument("--steps", type=int, default=800, help=f"batches of {BATCH} images")
    parser.add_argument("--crops", type=int, default=9400, help="regions shown to each judge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    plan = Plan(arguments.steps, arguments.crops, arguments.seed)
    started = time.monotonic()
    try:
        pages, scenes = load(arguments.corpus, arguments.annotations)
        pictures = load_pictures(arguments.corpus)
        print(f"{len(pages)} pages of {len({page.work for page in pages})} works", flush=True)
        _train_all(arguments.output, pages, scenes, arguments.folds, plan, pictures)
    except BadSettings as error:
        raise SystemExit(str(error)) from None
    print(f"{arguments.output} after {time.monotonic() - started:.0f} s", flush=True)


def _train_all(
    output: Path,
    pages: Sequence[LabelledPage],
    scenes: Sequence[Scene],
    folds: int,
    plan: Plan,
    pictures: Sequence[tuple[str, Gray]],
) -> None:
    """Networks for every fold, what they find on its pages, and those of all works."""
    found: dict[str, Detection] = {}
    assigned = assign_folds(pages, folds) if folds > 1 else {}
    for fold in range(folds if assigned else 0):
        seen = [scene for scene in scenes if assigned[scene.work] != fold]
        part = output / f"fold{fold}"
        train(seen, pictures, part, replace(plan, seed=plan.seed + 1 + fold))
        found |= predict(part, [page for page in pages if assigned[page.work] == fold])
    if found:
        write_predictions(output / FOLDS, found)
    train(scenes, pictures, output, plan)


def predict(weights: Path, pages: Sequence[LabelledPage]) -> dict[str, Detection]:
    """What the networks in a folder find on pages, by path and page index."""
    detector = LayoutDetector(weights)
    return {
        f"{page.path}#{page.index}": detector(render_fit(page.file, page.index, LONG_SIDE))
        for page in pages
    }


if __name__ == "__main__":
    main()
