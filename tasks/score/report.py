"""The report: a page that opens from the disk, its data in a script beside it, thumbnails as files.

Ten thousand samples are a few megabytes of data; the browser loads only the thumbnails it shows.
"""

from __future__ import annotations

import json
import logging
from math import floor
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from models.errors import BadSettings
from models.records import Sample
from models.score import ScoreSettings, Verdict
from tasks.captions.show import show_captions
from tasks.captions.table import read_captions
from tasks.score import words
from tasks.score.judge import CAUSES, Scores, volume
from tasks.score.look import REPORT, THUMBNAILS, thumbnail
from tasks.score.pages import PageKey, draw_pages, dropped_pages
from tasks.score.spread import year
from tasks.session import Session

logger = logging.getLogger("intaglio.report")


def write(run: Session, settings: ScoreSettings, scores: Scores, verdict: Verdict) -> None:
    """Write ``report/``: ``index.html``, ``data.js``, ``captions.js``, ``thumbs/`` and ``pages/``.

    Raises:
        StopRun: The storage failed or is full.
    """
    output = run.output
    dropped = dropped_pages(run)
    worst = sorted(range(len(scores.samples)), key=lambda at: (scores.probability[at], at))
    shown: dict[PageKey, None] = {}
    for at in worst:
        if len(shown) >= settings.sheet.pages:
            break
        shown[_page(scores.samples[at])] = None
    pictures = draw_pages(run, [*shown, *(page for _, some in dropped.values() for page in some)])
    data = _data(scores, pictures)
    data["droppedPages"] = [
        {
            "reason": reason.replace("_", " "),
            "count": count,
            "pages": [
                {"pdf": pdf, "page": index + 1, "picture": pictures.get((pdf, index), "")}
                for pdf, index in some
            ],
        }
        for reason, (count, some) in dropped.items()
    ]
    data["threshold"] = settings.purity.threshold
    script = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    output.write(f"{REPORT}/data.js", f"const REPORT = {script};\n".encode())
    try:
        captions = read_captions(output)
    except BadSettings as error:
        # Somebody is editing them; scoring does not need them.
        logger.warning("The report shows no captions: %s", error.message)
        captions = {}
    show_captions(output, captions)
    output.write(f"{REPORT}/index.html", render(verdict).encode())
    own = {thumbnail(sample) for sample in scores.samples}
    for old in output.names(THUMBNAILS).keys() - own:
        output.remove(old)


def render(verdict: Verdict) -> str:
    """The page without its data."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("tasks.score"), PackageLoader("tasks.calibrate")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"rate": words.rate, "percent": words.percent}
    return environment.get_template("report.html").render(
        verdict=verdict, rows=words.rows(verdict), causes=CAUSES
    )


def _data(scores: Scores, pictures: dict[PageKey, str]) -> dict[str, Any]:
    """All samples, each a list in the order of ``fields``; names that repeat, by number."""
    pdfs = _numbered({sample.pdf for sample in scores.samples})
    volumes = _numbered({volume(sample) for sample in scores.samples})
    group = {at: number for number, of in enumerate(scores.groups) for at in of}
    fields: dict[str, list[Any]] = {
        "file": [sample.file_name for sample in scores.samples],
        "thumb": [
            "" if at in scores.faults else thumbnail(sample).removeprefix(f"{REPORT}/")
            for at, sample in enumerate(scores.samples)
        ],
        "ratio": [round(sample.width / sample.height, 3) for sample in scores.samples],
        "pdf": [pdfs[sample.pdf] for sample in scores.samples],
        "volume": [volumes[volume(sample)] for sample in scores.samples],
        "year": [year(sample) for sample in scores.samples],
        "page": [sample.page_index + 1 for sample in scores.samples],
        "label": [sample.page_label for sample in scores.samples],
        "picture": [pictures.get(_page(sample), "") for sample in scores.samples],
        "pageRatio": [round(s.page_size[0] / s.page_size[1], 4) for s in scores.samples],
        "box": [_box(sample) for sample in scores.samples],
        # Down, so that only a certain one is 1.
        "p": [floor(1e4 * float(value)) / 1e4 for value in scores.probability],
        "margin": [None if v != v else round(float(v), 2) for v in scores.margins.margin],
        "wanted": scores.margins.wanted,
        "unwanted": scores.margins.unwanted,
        "text": [round(measure.text_area, 3) for measure in scores.measures],
        "reason": [scores.reasons.get(at, "") for at in range(len(scores.samples))],
        "fault": [
            scores.faults[at].message if at in scores.faults else ""
            for at in range(len(scores.samples))
        ],
        "said": [scores.labels.get(sample.file_name) for sample in scores.samples],
        "cluster": scores.cluster.tolist(),
        "x": [round(float(x), 4) for x in scores.place[:, 0]],
        "y": [round(float(y), 4) for y in scores.place[:, 1]],
        "group": [group.get(at, -1) for at in range(len(scores.samples))],
        "rank": [scores.rank.get(at, 0) for at in range(len(scores.samples))],
    }
    return {
        "pdfs": list(pdfs),
        "volumes": list(volumes),
        "causes": CAUSES,
        "groups": scores.groups,
        "fields": list(fields),
        "samples": list(zip(*fields.values(), strict=True)),
    }


def _page(sample: Sample) -> PageKey:
    return sample.pdf, sample.page_index


def _box(sample: Sample) -> list[float]:
    """Left, top, width and height of a sample on its page, in per cent."""
    x0, y0, x1, y1 = sample.box
    width, height = sample.page_size
    sides = (x0 / width, y0 / height, (x1 - x0) / width, (y1 - y0) / height)
    return [round(100 * side, 2) for side in sides]


def _numbered(names: set[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(names))}
