"""Writing the captions of a dataset, leaving those that a person edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from models.errors import BadSettings
from models.handoff import Caption, HandoffSettings
from models.records import Sample
from tasks.captions.table import EDITED, caption, read_captions
from tasks.captions.template import template
from tasks.captions.text import join, tidy
from tasks.progress import Progress
from tasks.storage import Storage

Writer = Callable[[Sequence[Sample]], Mapping[str, str]]
"""Captions by file name; a sample of which it can say nothing is left out."""
EXAMPLES = 3


def write_all(
    settings: HandoffSettings,
    output: Storage,
    samples: Sequence[Sample],
    edited: Mapping[str, str],
    progress: Progress,
) -> dict[str, Caption]:
    """The captions of all samples, in their order.

    Edited rows of samples that are not part of the dataset at present follow, so that no edit is
    ever lost.

    Args:
        settings: Who writes them.
        output: The dataset.
        samples: Of the dataset.
        edited: What a person wrote into ``.txt`` files, by file name.
        progress: Where progress is told.

    Raises:
        BadSettings: A sample has no caption.
    """
    before = {n: c for n, c in read_captions(output).items() if c.source == EDITED}
    kept = {name: caption(tidy(text), EDITED) for name, text in edited.items()} | before
    todo = [sample for sample in samples if sample.file_name not in kept]
    said = [_writer(by, settings, output, progress)(todo) for by in settings.captions.by]
    captions: dict[str, Caption] = {}
    for sample in samples:
        name = sample.file_name
        if name in kept:
            captions[name] = kept[name]
            continue
        parts = [written.get(name, "") for written in said]
        source = "+".join(by for by, part in zip(settings.captions.by, parts, strict=True) if part)
        text = join([settings.captions.trigger, *parts])
        captions[name] = caption(text, source or "trigger")
    empty = [name for name, written in captions.items() if not written.text]
    if empty:
        raise BadSettings(
            f"captions: {len(empty):,} samples have none, {', '.join(empty[:EXAMPLES])} for one.",
            "Give a --captions.trigger, add --captions.by template, or fill them in in "
            "captions.csv.",
        )
    return captions | kept


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
