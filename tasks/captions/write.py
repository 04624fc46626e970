"""Writing the captions of a dataset, leaving those that a person edited."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from models.clip.settings import SMALL
from models.errors import BadSettings
from models.handoff import Caption, HandoffSettings
from models.records import Sample
from tasks.captions.table import EDITED, caption, mark, read_captions
from tasks.captions.template import template
from tasks.captions.text import join
from tasks.progress import Progress
from tasks.storage import Storage

Writer = Callable[[Sequence[Sample]], Mapping[str, str]]
"""Captions by file name; a sample of which it can say nothing is left out."""
EXAMPLES = 3
SILENT = {
    "page": "no text stands under their figures in the PDF's text layer, and scans that no OCR has "
    "read have none",
    "clip": "no word of the vocabulary is as likely as --captions.certainty asks",
    "blip": "their pictures cannot be read",
}
"""Why a captioner says nothing."""
PRINT = "the model print knows kinds of print, not subjects; name another --clip.model"
logger = logging.getLogger("intaglio.captions")


def write_all(
    settings: HandoffSettings,
    output: Storage,
    samples: Sequence[Sample],
    edited: Mapping[str, Caption],
    progress: Progress,
) -> dict[str, Caption]:
    """The captions of all samples, in their order.

    Edited rows of samples that are not part of the dataset at present follow, and of pictures whose
    file name another picture has now, so that no edit is ever lost. Where the picture is back, so
    is its caption.

    Args:
        settings: Who writes them.
        output: The dataset.
        samples: Of the dataset.
        edited: Captions that a person wrote into ``.txt`` files since the last run, by file name;
            they replace all but what was written into the table since then. An empty one is
            written anew.
        progress: Where progress is told.

    Raises:
        BadSettings: A sample has no caption.
    """
    before = {n: c for n, c in read_captions(output).items() if c.source == EDITED}
    now = {sample.file_name: mark(sample.sha256) for sample in samples}
    new = {n: c for n, c in before.items() if c.new}
    kept = _by_picture(before, now) | _by_picture(edited, now) | _by_picture(new, now)
    kept = {name: said for name, said in kept.items() if said.text}
    if others := [name for name, c in kept.items() if name == _other(name, c)]:
        logger.warning(
            "%s edited captions are of pictures that are not there any more, %s for one: they stay "
            "in captions.csv and are not used.",
            f"{len(others):,}",
            others[0],
        )
    todo = [sample for sample in samples if sample.file_name not in kept]
    said = [_writer(by, settings, output, progress)(todo) for by in settings.captions.by]
    for by, written in zip(settings.captions.by, said, strict=True):
        if (silent := len(todo) - len(written)) > len(todo) / 2:
            why = PRINT if by == "clip" and settings.clip.model == SMALL else SILENT[by]
            logger.warning(
                "captions.by %s says nothing of %s of %s samples: %s.",
                by, f"{silent:,}", f"{len(todo):,}", why,
            )  # fmt: skip
    captions: dict[str, Caption] = {}
    for sample in samples:
        name = sample.file_name
        if name in kept:
            captions[name] = kept[name]
            continue
        parts = [written.get(name, "") for written in said]
        source = "+".join(by for by, part in zip(settings.captions.by, parts, strict=True) if part)
        text = join([settings.captions.trigger, *parts])
        captions[name] = caption(text, source or "trigger", sample.sha256)
    empty = [name for name, written in captions.items() if not written.text]
    if empty:
        raise BadSettings(
            f"captions: {len(empty):,} samples have none, {', '.join(empty[:EXAMPLES])} for one.",
            "Give a --captions.trigger, add --captions.by template, or fill them in in "
            "captions.csv.",
        )
    return captions | kept


def _by_picture(captions: Mapping[str, Caption], now: Mapping[str, str]) -> dict[str, Caption]:
    """Captions by file name, or by name and picture if the name is another picture's by now."""
    found: dict[str, Caption] = {}
    for name, said in captions.items():
        own = name.removesuffix(f"#{said.picture}") if said.picture else name
        if own not in now:
            found[name] = said
        elif said.picture in ("", now[own]):
            # Who wrote the row by hand meant the picture that is there.
            found[own] = said.model_copy(update={"picture": now[own]})
        else:
            found[_other(own, said)] = said
    return found


def _other(name: str, said: Caption) -> str:
    """How the table names a picture whose file name is another's."""
    return f"{name.removesuffix(f'#{said.picture}')}#{said.picture}"


def _writer(by: str, settings: HandoffSettings, output: Storage, progress: Progress) -> Writer:
    """Who writes; the costly ones are imported only when they are asked."""
    match by:
        case "page":
            from tasks.captions.printed import printed_captions

            return partial(printed_captions, output, progress=progress)
        case "clip":
            from tasks.captions.clip import clip_captions

            return partial(clip_captions, settings, output, progress=progress)
        case "blip":
            from tasks.captions.blip import blip_captions

            return partial(blip_captions, settings.captions, output, progress=progress)
        case _:
            return lambda samples: {s.file_name: template(s, settings.captions) for s in samples}
