"""The sheet: one HTML file that opens from the disk, with the pictures in folders beside it."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from models.calibrate import CalibrateSettings, Calibration, SeenPage
from models.settings import fingerprint
from tasks.calibrate import thresholds
from tasks.calibrate.cards import filters, kept_by, make_cards, make_volumes
from tasks.calibrate.histogram import GROUPS, Histogram, histogram
from tasks.calibrate.words import commands, show_percent, show_rate, training_command

ENOUGH_TO_TRAIN = 100
"""Labelled pages from which on the sheet says how to train the network on them."""


def render(settings: CalibrateSettings, result: Calibration, seen: Sequence[SeenPage]) -> str:
    """The whole sheet.

    Args:
        settings: The run's settings.
        result: The verdicts.
        seen: What they were taken from, in the same order.
    """
    cards = make_cards(settings, result, seen)
    faulty = [(look.page, look.fault) for look in seen if look.fault]
    used_first = sorted(result.methods, key=lambda method: method.name != result.method)
    methods = [(method, _histogram(result, method.name)) for method in used_first]
    environment = Environment(
        loader=PackageLoader("tasks.calibrate"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"rate": show_rate, "percent": show_percent}
    return environment.get_template("index.html").render(
        settings=settings,
        result=result,
        cards=cards,
        faulty=faulty,
        methods=methods,
        tags=filters(cards),
        volumes=make_volumes(cards),
        kinds=sorted({box.kind for card in cards for box in card.boxes}),
        commands=commands(settings, result),
        training=training_command(settings),
        show=thresholds.show,
        names=GROUPS,
        enough_to_train=ENOUGH_TO_TRAIN,
        said=fingerprint(*[(p.pdf, p.page_index, p.label) for p in result.pages if p.label]),
    )


def _histogram(result: Calibration, method: str) -> Histogram:
    pages = [page for page in result.pages if page.figures]
    threshold = next(m.threshold for m in result.methods if m.name == method)
    if result.labelled:
        names = {True: "illustrated", False: "plain", None: "uncounted"}
        groups = [names[page.label.illustrated if page.label else None] for page in pages]
    else:
        groups = ["kept" if kept_by(method, page, threshold) else "dropped" for page in pages]
    return histogram(method, [page.figures[method] for page in pages], groups)
