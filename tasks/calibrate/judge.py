"""From what was seen to what is said: verdicts, sums and suggestions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.calibrate import (
    CalibrateSettings,
    Calibration,
    JudgedPage,
    Label,
    Method,
    Rate,
    SeenPage,
    Suggestion,
)
from models.records import Outcome, Pdf
from models.settings import Settings
from tasks.calibrate import sample, thresholds
from tasks.calibrate.figures import as_array, keeps, measure, wilson
from tasks.decide import decide, figure
from tasks.detect import METHODS

PLATE = 0.45
"""A kept page with at least this share of pictures is guessed to be a plate."""
REASONS = {"blank": Label.BLANK, "other_kind": Label.OTHER}


def judge(settings: CalibrateSettings, archive: list[Pdf], seen: Sequence[SeenPage]) -> Calibration:
    """Judge all pages and add up.

    Args:
        settings: The run's settings.
        archive: All PDFs.
        seen: The pages looked at, drawn or labelled.
    """
    pages = [judge_page(settings, page) for page in seen]
    methods = [_method(settings, name, seen, pages) for name in METHODS]
    drawn = [page for page in pages if page.drawn]
    readable = [page for page in drawn if page.kept is not None]
    kept = sum(bool(page.kept) for page in readable)
    archive_pages = sample.count(sample.usable(archive))
    share = wilson(kept, len(readable))
    if len(drawn) == archive_pages and readable:
        # Every page was looked at: nothing is estimated.
        share = Rate(value=share.value, low=share.value, high=share.value)
    return Calibration(
        archive_pages=archive_pages,
        drawn=len(drawn),
        kept=kept,
        dropped=len(readable) - kept,
        uncertain=sum(page.uncertain for page in drawn),
        unreadable=len(drawn) - len(readable),
        labelled=sum(page.label is not None for page in pages),
        kept_share=share,
        method=settings.triage.method,
        methods=methods,
        pages=pages,
        unreadable_pdfs={pdf.name: pdf.fault for pdf in archive if pdf.fault},
        settings=settings.model_dump(mode="json"),
    )


def judge_page(settings: CalibrateSettings, seen: SeenPage) -> JudgedPage:
    """The verdict on a page, with what each method would go by."""
    page = seen.page
    detection = seen.detections.get(settings.triage.method)
    if seen.fault or detection is None:
        return JudgedPage(
            pdf=page.pdf,
            page_index=page.page_index,
            drawn=page.drawn,
            kept=None,
            reason=seen.fault.kind if seen.fault else "",
            label=page.label,
        )
    figures = {
        name: round(figure(found, with_method(settings, name)), 5)
        for name, found in seen.detections.items()
    }
    verdict = decide(detection, settings)
    kept = verdict.outcome is Outcome.KEPT
    if kept:
        guess = Label.ILLUSTRATION if figures["layout"] >= PLATE else Label.MIXED
    else:
        guess = REASONS.get(verdict.reason, Label.TEXT)
    method = settings.triage.method
    near = thresholds.uncertain(method, as_array([figures[method]]), threshold(settings, method))
    return JudgedPage(
        pdf=page.pdf,
        page_index=page.page_index,
        page_label=seen.facts.label if seen.facts else "",
        drawn=page.drawn,
        kept=kept,
        reason=verdict.reason,
        uncertain=bool(near[0]),
        figures=figures,
        guess=guess,
        label=page.label,
    )


def with_method(settings: Settings, method: str) -> Settings:
    """The same settings with another triage method."""
    triage = settings.triage.model_copy(update={"method": method})
    return settings.model_copy(update={"triage": triage})


def threshold(settings: Settings, method: str) -> float:
    """A method's present threshold."""
    triage = settings.triage
    return triage.sigma_threshold if method == "sigma" else triage.min_area


def _method(
    settings: CalibrateSettings,
    name: str,
    seen: Sequence[SeenPage],
    pages: Sequence[JudgedPage],
) -> Method:
    present = threshold(settings, name)
    drawn = as_array([page.figures[name] for page in pages if page.drawn and page.figures])
    inked = [
        page.figures[name]
        for look, page in zip(seen, pages, strict=True)
        if page.drawn and page.figures and not look.detections[name].blank
    ]
    judged = [
        (page.pdf, page.figures[name], page.label.illustrated)
        for page in pages
        if page.figures and page.label is not None and page.label.illustrated is not None
    ]
    groups = [pdf for pdf, _, _ in judged]
    labelled = as_array([value for _, value, _ in judged])
    truth = np.array([wanted for _, _, wanted in judged], bool)
    sides = (int(truth.sum()), int((~truth).sum()))
    suggestion: Suggestion
    if len(truth) >= thresholds.FEWEST_PAGES and min(sides) >= thresholds.FEWEST_OF_A_SIDE:
        suggestion = thresholds.suggest_from_labels(name, labelled, truth, groups, present)
    else:
        suggestion = thresholds.suggest(name, as_array(inked), present)
    suggested = suggestion.threshold
    return Method(
        name=name,
        setting="triage.sigma_threshold" if name == "sigma" else "triage.min_area",
        threshold=present,
        kept=int(keeps(name, drawn, present).sum()),
        uncertain=int(thresholds.uncertain(name, drawn, present).sum()),
        band=thresholds.band(name, present),
        suggestion=suggestion,
        measured=measure(name, labelled, truth, present) if judged else None,
        measured_suggested=(
            measure(name, labelled, truth, suggested) if judged and suggested is not None else None
        ),
    )
