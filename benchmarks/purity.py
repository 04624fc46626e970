"""How well illustrations are told from everything else, and what makes a margin a probability.

    python -m benchmarks.purity --corpus FOLDER [--model print]

FOLDER is a labelled corpus as docs/detection.md describes it. Cuts out the illustrations whose box
is known, takes text and blank pages whole and a part of each text page, and prints the AUC of the
margin and of the lettering, the share of either side that the shipped settings keep, and the slope
and intercept for tasks/score/calibration.py, fitted with nine illustrations to one of the others.
Works the model was trained on flatter it: its model card has the figures for works it had not seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from models.clip.engine import ClipEngine
from models.clip.settings import ClipSettings
from models.score import Purity
from tasks.calibrate.figures import wilson
from tasks.detect.corpus import read_labels, render_fit
from tasks.detect.page import Gray, fit
from tasks.score.calibration import sigmoid
from tasks.score.prompts import read_prompts
from tasks.score.purity import by_prompts
from tasks.score.text import text_area
from tasks.score.words import rate
from tests.resources.make_dataset import jpeg

LONG_SIDE = 1024
SMALLEST = 0.03
"""Of the page: smaller boxes are no samples."""
SHARE = 0.9
"""Of illustrations among what extraction leaves."""


def prints(corpus: Path) -> Iterator[tuple[Gray, bool]]:
    """Pictures, and whether each is an illustration."""
    for page in read_labels(corpus):
        if not page.judged:
            continue
        gray = render_fit(page.file, page.index, 2 * LONG_SIDE)
        height, width = gray.shape
        if not page.illustrated:
            yield fit(gray, LONG_SIDE), False
            if page.label == "text":
                part = gray[height // 3 : height * 2 // 3, width // 8 : width * 7 // 8]
                yield fit(np.ascontiguousarray(part), LONG_SIDE), False
        for x0, y0, x1, y1 in page.boxes or () if page.illustrated else ():
            if (x1 - x0) * (y1 - y0) >= SMALLEST:
                rows, columns = (
                    slice(int(y0 * height), int(y1 * height)),
                    slice(int(x0 * width), int(x1 * width)),
                )
                yield fit(np.ascontiguousarray(gray[rows, columns]), LONG_SIDE), True


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--model", default="print")
    arguments = parser.parse_args()
    pictures = list(prints(arguments.corpus))
    truth = np.array([wanted for _, wanted in pictures])
    lettering = np.array([text_area(gray) for gray, _ in pictures])
    prompts = read_prompts("")
    with ClipEngine(ClipSettings(model=arguments.model)) as clip:
        reads = ((str(i), partial(jpeg, gray)) for i, (gray, _) in enumerate(pictures))
        vectors = np.stack([vector for _, vector in clip.embed_images(reads)])
        classes = clip.embed_prompts(prompts.ensembles())
        margin = by_prompts(vectors, classes, prompts, clip.logit_scale).margin
        print(f"{clip.name}: {truth.sum()} illustrations, {(~truth).sum()} others")
    print(f"AUC of the margin      {roc_auc_score(truth, margin):.4f}")
    print(f"AUC of the lettering   {roc_auc_score(truth, -lettering):.4f}")
    weights = np.where(truth, SHARE / truth.sum(), (1 - SHARE) / (~truth).sum()) * len(truth)
    line = LogisticRegression(C=1e6).fit(margin[:, None], truth, sample_weight=weights)
    slope, intercept = float(line.coef_[0, 0]), float(line.intercept_[0])
    print(f"slope {slope:.2f}, intercept {intercept:.2f}")
    purity = Purity()
    kept = (sigmoid(slope * margin + intercept) >= purity.threshold) & (
        lettering <= purity.most_text
    )
    for name, side in (("illustrations kept", truth), ("others kept", ~truth)):
        print(f"{name:22s} {rate(wilson(int((kept & side).sum()), int(side.sum())))}")


if __name__ == "__main__":
    main()
