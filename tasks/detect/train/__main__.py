"""Train the network of ``layout`` again, on any folder in the corpus format.

    python -m tasks.detect.train --corpus DIR --output WEIGHTS [--folds 4]

Writes into the folder WEIGHTS the network, a card of what it was trained on (``layout.json``), and,
with folds, what networks that never saw a page's work found on it (``layout.folds.json``), from
which the selection benchmark takes honest figures. A run that was killed goes on with the networks
it has not made. Needs torch (the ``train`` extra). To use the weights:
``python -m flows.extract --triage.weights WEIGHTS``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from models.records import Detection
from tasks.detect.corpus import LabelledPage, render_fit
from tasks.detect.layout import FOLDS, LONG_SIDE, NETWORK, LayoutDetector, write_predictions
from tasks.detect.page import Gray
from tasks.detect.train.compose import make_bank
from tasks.detect.train.export import export
from tasks.detect.train.fit import BATCH, fit
from tasks.detect.train.folds import assign_folds
from tasks.detect.train.pages import Scene, load, load_pictures

CALIBRATION = 40
"""Pages, about, on which the range of the network's activations is measured."""


def main() -> None:
    """Cross-validate if asked to, then train on everything and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    parser.add_argument("--output", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--annotations", type=Path, help="table that adds to labels.csv")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate by work; 0: do not")
    parser.add_argument("--steps", type=int, default=800, help=f"batches of {BATCH} images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    started = time.monotonic()
    pages, scenes = load(arguments.corpus, arguments.annotations)
    pictures = load_pictures(arguments.corpus)
    print(f"{len(pages)} pages of {len({page.work for page in pages})} works", flush=True)
    output: Path = arguments.output
    found: dict[str, Detection] = {}
    folds = assign_folds(pages, arguments.folds) if arguments.folds > 1 else {}
    for fold in range(arguments.folds if folds else 0):
        seen = [scene for scene in scenes if folds[scene.work] != fold]
        held = [page for page in pages if folds[page.work] == fold]
        part = output / f"fold{fold}"
        _train(seen, pictures, part, arguments.steps, arguments.seed + 1 + fold)
        found |= predict(part, held)
    if found:
        write_predictions(output / FOLDS, found)
    _train(scenes, pictures, output, arguments.steps, arguments.seed)
    card = {
        "sha256": hashlib.sha256((output / NETWORK).read_bytes()).hexdigest(),
        "steps": arguments.steps,
        "batch": BATCH,
        "seed": arguments.seed,
        "torch": torch.__version__,
        "pages": len(pages),
        "works": sorted({page.work for page in pages}),
    }
    (output / "layout.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(f"{output} after {time.monotonic() - started:.0f} s", flush=True)


def predict(weights: Path, pages: Sequence[LabelledPage]) -> dict[str, Detection]:
    """What the network in a folder finds on pages, by path and page index."""
    detector = LayoutDetector(weights)
    return {
        f"{page.path}#{page.index}": detector(render_fit(page.file, page.index, LONG_SIDE))
        for page in pages
    }


def _train(
    scenes: Sequence[Scene],
    pictures: Sequence[tuple[str, Gray]],
    output: Path,
    steps: int,
    seed: int,
) -> None:
    target, mark = output / NETWORK, output / "made-of.txt"
    made_of = _fingerprint(scenes, pictures, steps, seed)
    if target.exists():
        if not mark.exists() or mark.read_text() != made_of:
            raise SystemExit(f"{target} was trained otherwise: choose another --output.")
        print(f"{target} is there already", flush=True)
        return
    output.mkdir(parents=True, exist_ok=True)
    mark.write_text(made_of)
    bank = make_bank(scenes, pictures)
    net = fit(bank, steps, seed, lambda line: print(f"{target} {line}", flush=True))
    some = scenes[:: max(1, len(scenes) // CALIBRATION)]
    export(net, [scene.gray for scene in some], target)


def _fingerprint(
    scenes: Sequence[Scene], pictures: Sequence[tuple[str, Gray]], steps: int, seed: int
) -> str:
    """Of all that a training depends on but the code."""
    made_of = hashlib.sha256(repr((steps, seed, BATCH)).encode())
    for scene in scenes:
        boxes = (scene.work, scene.pictures, scene.ornaments, scene.ruled)
        made_of.update(repr(boxes).encode() + scene.gray.tobytes())
    for work, patch in pictures:
        made_of.update(work.encode() + patch.tobytes())
    return made_of.hexdigest()


if __name__ == "__main__":
    main()
