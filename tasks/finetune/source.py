"""What to train on, whatever the source is: shards as they are, a table, or labelled scans."""

from __future__ import annotations

import importlib.util
import posixpath
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from models.clip.load import SHIPPED
from models.errors import BadSettings, InputFault
from models.finetune import FinetuneSettings, Pairs
from models.train import TrainerMissing
from tasks.finetune.pairs import RECORD, Pair, read_table, split, write_pairs
from tasks.finetune.prints import Print, make_prints, read_prints
from tasks.finetune.sample import sample_pairs
from tasks.places import filesystem
from tasks.progress import Progress
from tasks.storage import Storage

DRAWN_PER_PAIR = 0.012
"""Rounds of made-up prints for each pair wanted."""
READERS = 8
"""Least number of shards."""


def is_shards(source: str) -> bool:
    """Whether a source is WebDataset shards."""
    return source.endswith(".tar")


def is_prints(source: str) -> bool:
    """Whether a source is a folder of labelled page scans."""
    fs, path = filesystem(source)
    return bool(fs.isfile(posixpath.join(path, "labels.csv")))


def check(settings: FinetuneSettings) -> None:
    """Say what does not go together, before anything is started.

    Raises:
        BadSettings: Naming the setting.
        TrainerMissing: open_clip's trainer, or what it reads pairs with, is not installed.
    """
    for needed in ("open_clip_train", "pandas", "webdataset"):
        if importlib.util.find_spec(needed) is None:
            raise TrainerMissing(f"open_clip's trainer needs {needed}, which is not installed.")
    cluster = settings.cluster
    if "://" in settings.output:
        raise BadSettings("output: the trainer writes to a local folder only.")
    if cluster.nodes > 1 and not cluster.rendezvous:
        raise BadSettings("cluster.rendezvous: say HOST:PORT where the machines meet.")
    if cluster.nodes * cluster.processes > 1:
        import torch

        if not torch.cuda.is_available():
            raise BadSettings("cluster: several processes need GPUs.", "Use one process.")
        if not is_shards(settings.source):
            raise BadSettings(
                "source: several processes take WebDataset shards only.",
                "Write them on one machine with --pairs-only and give them as the source.",
            )
    if is_shards(settings.source):
        if not settings.validation or not settings.train_samples:
            raise BadSettings("source: shards need --validation SHARDS and --train-samples N too.")
    elif settings.prints.folds == 1:
        raise BadSettings("prints.folds: one fold leaves nothing to train on.")


def shards(settings: FinetuneSettings) -> Pairs:
    """Shards as the trainer takes them; remote ones are streamed."""
    train, val = (
        f"pipe:{shlex.quote(sys.executable)} -m tasks.finetune.stream {each}"
        if "://" in each
        else each
        for each in (settings.source, settings.validation)
    )
    count = settings.train_samples
    return Pairs(form="webdataset", train=train, train_count=count, val=val, val_count=0)


def load_prints(settings: FinetuneSettings) -> list[Print]:
    """The prints of a labelled folder."""
    prints = settings.prints
    annotations = Path(prints.annotations) if prints.annotations else None
    kinds = Path(prints.kinds) if prints.kinds else SHIPPED / "kinds.csv"
    return read_prints(Path(settings.source), annotations, kinds)


def pairs_of_prints(settings: FinetuneSettings, prints: Sequence[Print]) -> list[Pair]:
    """Pairs drawn from prints and from others made up after them."""
    seed, count = settings.training.seed, settings.prints.pairs
    rng = np.random.default_rng(seed)
    drawn = make_prints(prints, max(8, round(count * DRAWN_PER_PAIR)), rng)
    return sample_pairs([*prints, *drawn], count, seed)


def prepare(
    settings: FinetuneSettings,
    side: int,
    output: Storage,
    prints: Sequence[Print] | None,
    progress: Progress,
) -> Pairs:
    """Write the pairs, unless a run before has done so.

    Args:
        settings: What the user asked for.
        side: Of the model's images, in pixels.
        output: Folder of this training.
        prints: Of a labelled folder; None where the source is a table.
        progress: Told of each pair.
    """
    if output.size(RECORD):
        return Pairs.model_validate_json(output.read(RECORD))
    pairs = (
        read_table(settings.source, side) if prints is None else pairs_of_prints(settings, prints)
    )
    held = split((pair.work for pair in pairs), settings.held_out)
    parts = {
        "train": [pair for pair in pairs if pair.work not in held],
        "val": [pair for pair in pairs if pair.work in held],
    }
    faults: list[InputFault] = []

    def note(fault: InputFault | None) -> None:
        progress.advance()
        if fault:
            faults.append(fault)

    progress.start(len(pairs), "pairs")
    least = READERS * max(1, settings.training.readers)
    try:
        found = write_pairs(output, settings.form, side, parts, least, note)
    finally:
        progress.stop()
    if faults:
        lines = "".join(f"{fault.message} {fault.cure}\n" for fault in faults)
        output.write("pairs/left-out.txt", lines.encode())
    found = found.model_copy(update={"left_out": len(faults)})
    output.write(RECORD, found.model_dump_json(indent=1).encode())
    return found
