"""How well each method finds the illustrated pages of a labelled corpus, and their pictures.

    python -m benchmarks.selection --corpus DIR [--methods layout,blobs,sigma] [--output DIR]

Prints a table, and writes ``selection.json`` and a contact sheet of each method's errors.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.selection_metrics import (
    Outcome,
    bootstrap,
    box_figures,
    false_boxes,
    page_figures,
)
from benchmarks.selection_sheet import write_sheet
from models.records import Detection, PageFacts, RegionKind, RelativeBox
from tasks.detect import METHODS, Detector, make_detector
from tasks.detect.boxes import overlap
from tasks.detect.corpus import (
    LabelledPage,
    page_size,
    read_labels,
    render,
    render_fit,
    scan_type,
)
from tasks.detect.layout import FOLDS, WEIGHTS, read_predictions
from tasks.detect.page import Mask, absolute, read_ink, relative

PICTURES = (RegionKind.ENGRAVING, RegionKind.PHOTOGRAPH)
THRESHOLDS = {"sigma": 45.0, "blobs": 0.075, "layout": 0.075}
"""Pages that score at least this are kept: the article's, and the pipeline's default."""

INK_SIDE = 1024
"""Pixels on the longer side at which drawn boxes are shrunk to their ink."""
MOST_LISTED = 30
"""Errors printed for a method; all of them are in the JSON."""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder in the corpus format")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of layout's weights")
    parser.add_argument("--output", type=Path, default=Path("build/selection"))
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    pages = [page for page in read_labels(arguments.corpus) if page.judged]
    scans = [scan_type(page.file, page.index) for page in pages]
    print(f"{len(pages)} pages of {len({page.work for page in pages})} works")
    arguments.output.mkdir(parents=True, exist_ok=True)
    results = {}
    for method in arguments.methods.replace(" ", "").split(","):
        detector = make_detector(method, str(arguments.weights) if method == "layout" else "")
        held_out = read_predictions(arguments.weights / FOLDS) if method == "layout" else {}
        outcomes = [
            look(detector, page, scan, held_out.get(f"{page.path}#{page.index}"))
            for page, scan in zip(pages, scans, strict=True)
        ]
        crossed = sum(f"{page.path}#{page.index}" in held_out for page in pages)
        results[method] = summarise(outcomes) | {"cross_validated_pages": crossed}
        report(method, results[method], len(pages))
        wrong = [outcome for outcome in outcomes if outcome.kept != outcome.illustrated]
        write_sheet(wrong, arguments.corpus, arguments.output / f"errors-{method}.png")
    target = arguments.output / "selection.json"
    target.write_text(json.dumps(_plain(results), indent=1) + "\n", encoding="utf-8")
    print(f"\nDetails in {target}, errors in {arguments.output}/errors-*.png")


def look(detector: Detector, page: LabelledPage, scan: str, held_out: Detection | None) -> Outcome:
    """One page through one method, timed.

    ``held_out`` is what a network that never saw this page's work found on it; it takes the
    place of the shipped network's answer, which may have been trained on this very page.
    """
    width, height = page_size(page.file, page.index)
    gray = render(page.file, page.index, detector.render_dpi(PageFacts(width=width, height=height)))
    started = time.process_time()
    found = detector(gray)
    seconds = time.process_time() - started
    found = held_out or found
    return Outcome(
        key=f"{page.path}#{page.index}",
        work=page.work,
        label=page.label,
        note=page.note,
        illustrated=page.illustrated,
        kept=found.score >= THRESHOLDS[detector.name] and not found.blank,
        score=found.score,
        truth=page.boxes or (),
        boxes=tuple((r.box, r.confidence) for r in found.regions if r.kind in PICTURES),
        boxes_source=page.boxes_source,
        scan=scan,
        seconds=seconds,
        shrunk=_shrunk(page),
    )


def _shrunk(page: LabelledPage) -> tuple[float, ...]:
    if not page.boxes:
        return ()
    ink = read_ink(render_fit(page.file, page.index, INK_SIDE)).ink
    return tuple(shrunk_overlap(ink, box) for box in page.boxes)


def shrunk_overlap(ink: Mask, box: RelativeBox) -> float:
    """The overlap of a box with what is left of it when its edges go inwards to the ink.

    Args:
        ink: (H, W) mask of the page's ink.
        box: In fractions of the page.
    """
    x0, y0, x1, y1 = absolute(box, ink.shape)
    left, top, wide, high = cv2.boundingRect(ink[y0:y1, x0:x1])
    x0, y0 = x0 + left, y0 + top
    return overlap(box, relative((x0, y0, x0 + wide, y0 + high), ink.shape))


def summarise(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Every figure of one method."""
    blanks = [outcome for outcome in outcomes if outcome.label == "blank"]
    large = [outcome for outcome in outcomes if outcome.large]
    plain = [outcome for outcome in outcomes if not outcome.ornamental]
    boxes, pages = false_boxes(outcomes)
    milliseconds = np.array([outcome.seconds for outcome in outcomes]) * 1000
    wrong = [outcome for outcome in outcomes if outcome.kept != outcome.illustrated]
    works = {outcome.work for outcome in outcomes}
    return {
        "pages": page_figures(outcomes),
        "intervals": {
            name: bootstrap(outcomes, _page_figure(name))
            for name in ("precision", "recall", "f1", "auc")
        },
        "f1_without_ornaments": page_figures(plain)["f1"],
        "recall_large": page_figures(large)["recall"],
        "false_positives_blank": sum(outcome.kept for outcome in blanks),
        "boxes": {
            **box_figures(outcomes),
            "false_on_text_pages": boxes,
            "text_pages_with_false_boxes": pages,
        },
        "boxes_by_source": {
            source: box_figures([o for o in outcomes if o.truth and o.boxes_source == source])
            for source in sorted({o.boxes_source for o in outcomes if o.truth})
        },
        "milliseconds": {
            "mean": float(milliseconds.mean()),
            "median": float(np.median(milliseconds)),
        },
        "by_scan": {
            scan: page_figures([o for o in outcomes if o.scan == scan])
            | {"pages": sum(o.scan == scan for o in outcomes)}
            for scan in ("bilevel", "grey", "colour")
        },
        "by_work": {
            work: page_figures([o for o in outcomes if o.work == work])
            | {"pages": sum(o.work == work for o in outcomes)}
            for work in sorted(works)
        },
        "errors": [
            {"page": o.key, "label": o.label, "score": o.score, "note": o.note} for o in wrong
        ],
    }


def _page_figure(name: str) -> Callable[[Sequence[Outcome]], float]:
    return lambda outcomes: page_figures(outcomes)[name]


def report(method: str, figures: dict[str, Any], pages: int) -> None:
    """Print what matters of one method."""
    values = _plain(figures)
    page, box, spans = values["pages"], values["boxes"], values["intervals"]
    seen = values["cross_validated_pages"]
    print(f"\n{method}" + (f"  ({seen} of {pages} pages cross-validated by work)" if seen else ""))
    for name in ("precision", "recall", "f1", "auc"):
        low, high = spans[name]
        print(f"  page {name:<24}{_number(page[name])}   95 % {_number(low)} to {_number(high)}")
    print(f"  page f1 without ornaments    {_number(values['f1_without_ornaments'])}")
    print(f"  recall, pictures >= 15 %     {_number(values['recall_large'])}")
    print(f"  false positives, blank pages {values['false_positives_blank']}")
    for name in ("ap50", "ap75", "mean_iou", "found_at_50", "found_at_75"):
        print(f"  box {name:<25}{_number(box[name])}")
    for source, part in values["boxes_by_source"].items():
        print(
            f"  boxes drawn by {source or '?':<14}"
            f"ap50 {_number(part['ap50'])}  ap75 {_number(part['ap75'])}"
            f"  iou {_number(part['mean_iou'])} of {_number(part['shrunk_iou'])}"
            f"  {part['drawn']} boxes"
        )
    print(
        f"  false boxes on text pages    {box['false_on_text_pages']}"
        f" on {box['text_pages_with_false_boxes']} pages"
    )
    for scan, part in values["by_scan"].items():
        print(f"  f1 {scan:<26}{_number(part['f1'])}   {part['pages']} pages")
    print(
        f"  CPU ms a page, without rendering {values['milliseconds']['median']:.1f} median,"
        f" {values['milliseconds']['mean']:.1f} mean"
    )
    print(f"  errors: {len(values['errors'])}")
    for error in values["errors"][:MOST_LISTED]:
        print(f"    {error['label']:<13}{error['score']:8.3f}  {error['page']}  {error['note']}")


def _number(value: float | None) -> str:
    return "  -  " if value is None else f"{value:.3f}"


def _plain(value: Any) -> Any:
    """The same for JSON: nan, which JSON lacks, becomes null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


if __name__ == "__main__":
    main()
