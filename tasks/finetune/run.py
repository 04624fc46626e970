"""The stages of a training: pairs, the trainer, the model that is kept, and what it is worth."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from prefect import task
from pydantic import TypeAdapter

from models.clip.engine import ClipEngine
from models.clip.load import LOCAL
from models.clip.settings import SMALL, ClipSettings
from models.errors import BadSettings
from models.finetune import FinetuneSettings, Judged, Pairs, PrintFigures, Trained
from tasks.finetune.keep import keep
from tasks.finetune.launch import CHECKPOINTS, train
from tasks.finetune.measure import judge, measure
from tasks.finetune.model import configuration, image_side, model_argument
from tasks.finetune.pairs import RECORD
from tasks.finetune.prints import Print, make_prints
from tasks.finetune.source import is_shards, load_prints, prepare, shards
from tasks.progress import Progress
from tasks.retry import RETRIED
from tasks.storage import Storage

MODEL = "model"
"""Folder of the model that is kept."""
SETTINGS = "settings.json"
MADE = (RECORD, f"fold-0/{RECORD}", f"{CHECKPOINTS}/epoch_latest.pt")
"""Files of which one is there as soon as something was made: pairs, or of shards an epoch."""
FIGURES = "figures.json"
JUDGED = TypeAdapter(list[Judged])
DRAWN_ROUNDS = 8
"""Rounds of made-up prints a fold is measured on."""
logger = logging.getLogger("intaglio.finetune")


def remember(settings: FinetuneSettings, output: Storage) -> None:
    """Note the settings of this output, and refuse others once something was made with them.

    Raises:
        BadSettings: The output holds a training with other settings.
    """
    mine = settings.model_dump(mode="json", exclude={"cluster", "output", "pairs_only"})
    # A run that could not even read its source has made nothing: its settings may be corrected.
    if output.size(SETTINGS) and any(output.size(name) for name in MADE):
        theirs = json.loads(output.read(SETTINGS))
        if theirs != mine:
            changed = sorted(name for name in mine if theirs.get(name) != mine[name])
            raise BadSettings(
                f"output: {output.url} holds a training with other settings "
                f"({', '.join(changed)}).",
                "Choose another output, or give the same settings to go on.",
            )
    output.write(SETTINGS, json.dumps(mine, indent=1).encode())


def fit(
    settings: FinetuneSettings, output: Storage, prints: Sequence[Print] | None
) -> tuple[Pairs, Trained | None]:
    """Prepare pairs, train, and keep the best model in ``model/``; each only if not done yet.

    Args:
        settings: What the user asked for.
        output: Folder of this training.
        prints: Of a labelled folder; None for any other source.
    """
    config = configuration(settings)
    if is_shards(settings.source):
        pairs = shards(settings)
    else:
        pairs = prepare(settings, image_side(config), output, prints, Progress())
    if settings.pairs_only:
        return pairs, None
    model = model_argument(settings, config, output)
    trained = train(settings, model, pairs, output.path(), logger.info)
    if not settings.cluster.node_rank:
        new = settings.model == SMALL and not settings.pretrained and pairs.texts
        words = output.read(pairs.texts).decode().splitlines() if new else None
        keep(Path(output.path()), Storage(output.path(MODEL)), config, words)
    return pairs, trained


def cross_validate(
    settings: FinetuneSettings, output: Storage, prints: Sequence[Print]
) -> PrintFigures:
    """Train without a part of the works at a time, and measure on those.

    Args:
        settings: What the user asked for.
        output: Folder of the run; each training has one below it.
        prints: Of the labelled folder.
    """
    works = sorted({each.work for each in prints})
    order = np.random.default_rng(settings.training.seed).permutation(len(works))
    folds = settings.prints.folds
    judged: list[Judged] = []
    for fold in range(folds):
        logger.info("Fold %d of %d", fold + 1, folds)
        folder = Storage(output.path(f"fold-{fold}"))
        if not folder.size("judged.json"):
            held = {works[index] for index in order[fold::folds]}
            _judge_fold(settings, folder, prints, held, fold)
        judged += JUDGED.validate_json(folder.read("judged.json"))
    figures = measure(judged)
    output.write(FIGURES, figures.model_dump_json(indent=1).encode())
    return figures


def _judge_fold(
    settings: FinetuneSettings,
    folder: Storage,
    prints: Sequence[Print],
    held: set[str],
    fold: int,
) -> None:
    training = settings.training.model_copy(
        update={"epochs": settings.prints.fold_epochs, "seed": settings.training.seed + fold + 1}
    )
    own = settings.model_copy(update={"training": training})
    fit(own, folder, [each for each in prints if each.work not in held])
    unseen = [each for each in prints if each.work in held]
    unseen += make_prints(unseen, DRAWN_ROUNDS, np.random.default_rng(1_000_000 + fold))
    clip = ClipSettings(model="any", pretrained=f"{LOCAL}{folder.path(MODEL)}", device="cpu")
    with ClipEngine(clip) as engine:
        found = judge(engine, unseen)
    folder.write("judged.json", JUDGED.dump_json(found))


@task(name="load prints", **RETRIED)
def load_task(settings: FinetuneSettings) -> list[Print]:
    """The prints of a labelled folder."""
    return load_prints(settings)


@task(name="cross-validate", **RETRIED)
def cross_validate_task(
    settings: FinetuneSettings, output: Storage, prints: list[Print]
) -> PrintFigures:
    """What a model like this is worth on works it has not seen."""
    return cross_validate(settings, output, prints)


@task(name="train", **RETRIED)
def fit_task(
    settings: FinetuneSettings, output: Storage, prints: list[Print] | None
) -> tuple[Pairs, Trained | None]:
    """The training itself."""
    return fit(settings, output, prints)
