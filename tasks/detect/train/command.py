"""The command ``python -m tasks.detect.train``, once torch is there."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import torch

from models.records import Detection
from tasks.detect.corpus import render_fit
from tasks.detect.layout import FOLDS, LONG_SIDE, LayoutDetector, write_predictions
from tasks.detect.page import Gray
from tasks.detect.table import LabelledPage
from tasks.detect.train.fit import BATCH
from tasks.detect.train.folds import are_enough, assign_folds
from tasks.detect.train.make import APART, Plan, train
from tasks.detect.train.pages import Scene, load, load_pictures

MOST = 10**9
"""Steps, crops and seeds up to here; more would not end in a lifetime."""
FOLDS_MAY_BE = f"0 (do not) or 2 to {APART - 1}"


def run() -> None:
    """Cross-validate if asked to, then train on everything and write.

    Raises:
        BadSettings: The corpus cannot be trained on, or the output holds something else.
    """
    parser = argparse.ArgumentParser(
        description="Train the networks of layout again, on any folder in the corpus format."
    )
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    parser.add_argument("--output", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--annotations", type=Path, help="table that adds to labels.csv")
    parser.add_argument(
        "--folds", type=_folds, default=0, help=f"cross-validate by work; {FOLDS_MAY_BE}"
    )
    parser.add_argument(
        "--steps", type=_number(1, MOST), default=800, help=f"batches of {BATCH} images"
    )
    parser.add_argument(
        "--crops",
        type=_number(1, MOST),
        default=9400,
        help="regions shown to each judge, and to the network of edges",
    )
    parser.add_argument("--seed", type=_number(0, MOST), default=0)
    parser.add_argument("--threads", type=_number(1, os.cpu_count() or 1), default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cv2.setNumThreads(arguments.threads)
    plan = Plan(arguments.steps, arguments.crops, arguments.seed)
    started = time.monotonic()
    pages, scenes = load(arguments.corpus, arguments.annotations)
    assigned = assign_folds(pages, arguments.folds) if arguments.folds else {}
    if not are_enough(pages, assigned, arguments.folds):
        parser.error(
            f"argument --folds: there are too few works for {arguments.folds}: every fold "
            "needs one, and the others pictures and pages of text to train on"
        )
    pictures = load_pictures(arguments.corpus)
    print(f"{len(pages)} pages of {len({page.work for page in pages})} works", flush=True)
    _train_all(arguments.output, pages, scenes, assigned, plan, pictures)
    print(f"{arguments.output} after {time.monotonic() - started:.0f} s", flush=True)


def _train_all(
    output: Path,
    pages: Sequence[LabelledPage],
    scenes: Sequence[Scene],
    assigned: Mapping[str, int],
    plan: Plan,
    pictures: Sequence[tuple[str, Gray]],
) -> None:
    """Networks for every fold that works are assigned to, what they find, and those of all."""
    found: dict[str, Detection] = {}
    for fold in sorted(set(assigned.values())):
        seen = [scene for scene in scenes if assigned[scene.work] != fold]
        part = output / f"fold{fold}"
        train(seen, pictures, part, replace(plan, seed=plan.seed + 1 + fold))
        found |= predict(part, [page for page in pages if assigned[page.work] == fold])
    if found:
        write_predictions(output / FOLDS, found)
    train(scenes, pictures, output, plan)


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"it may be {least} to {most}, not {text!r}")
        return int(text)

    return read


def _folds(text: str) -> int:
    if text not in ("0", *map(str, range(2, APART))):
        raise argparse.ArgumentTypeError(f"it may be {FOLDS_MAY_BE}, not {text!r}")
    return int(text)


def predict(weights: Path, pages: Sequence[LabelledPage]) -> dict[str, Detection]:
    """What the networks in a folder find on pages, by path and page index."""
    detector = LayoutDetector(weights)
    return {
        f"{page.path}#{page.index}": detector(render_fit(page.file, page.index, LONG_SIDE))
        for page in pages
    }
