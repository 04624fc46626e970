"""A real training under torchrun: killed, gone on with, stopped when it idles, kept and used."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

pytest.importorskip("open_clip")
pytest.importorskip("webdataset")

from models.clip.engine import ClipEngine
from models.clip.load import SHIPPED
from models.clip.settings import ClipSettings
from models.errors import BadSettings
from models.finetune import FinetuneSettings, Judged, Training
from models.train import TrainerFailed
from tasks.finetune.keep import CONFIG, WEIGHTS
from tasks.finetune.kinds import ILLUSTRATIONS, KINDS
from tasks.finetune.launch import epoch_of, read_losses
from tasks.finetune.measure import measure
from tasks.finetune.run import MODEL, fit, remember
from tasks.score.prompts import read_prompts
from tasks.storage import Storage


class Killer(logging.Handler):
    """Kills the trainer when it hears of an epoch."""

    def emit(self, record: logging.LogRecord) -> None:
        for child in psutil.Process().children(recursive=True):
            if "open_clip_train.main" in " ".join(child.cmdline()):
                child.kill()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> FinetuneSettings:
    """Red and blue squares with captions that say so, and a rate at which nothing is learnt."""
    folder = tmp_path_factory.mktemp("finetune")
    lines = ["filepath\ttitle\twork"]
    for n in range(24):
        Image.new("RGB", (40, 60), ("red", "blue")[n % 2]).save(folder / f"{n}.png")
        lines.append(f"{n}.png\ta {('red', 'blue')[n % 2]} square\t{n // 2}")
    (folder / "pairs.tsv").write_text("\n".join(lines))
    training = Training(epochs=60, patience=2, batch_size=8, learning_rate=1e-12, threads=1)
    return FinetuneSettings(
        source=str(folder / "pairs.tsv"), output=str(folder / "out"), training=training
    )


def test_killed_it_goes_on_and_without_gain_it_stops(settings: FinetuneSettings) -> None:
    output = Storage(settings.output)
    folder = Path(settings.output)
    others = psutil.Process().children(recursive=True)
    told = logging.getLogger("intaglio.finetune")
    told.setLevel(logging.INFO)
    killer = Killer()
    told.addHandler(killer)
    try:
        with pytest.raises(TrainerFailed, match=r"trainer\.log"):
            fit(settings, output, None)
    finally:
        told.removeHandler(killer)
    first = epoch_of(folder / "logs/run/checkpoints/epoch_latest.pt")
    _, trained = fit(settings, output, None)

    log = (folder / "trainer.log").read_text()
    assert f"(epoch {first})" in log and f"Start epoch {first}\n" in log, "it went on from there"
    assert trained is not None and trained.stopped_early and trained.epochs < 60
    losses = read_losses(folder)
    assert trained.best_loss == losses[trained.best_epoch] == min(losses.values())
    assert trained.epochs - trained.best_epoch >= 2
    assert epoch_of(folder / "logs/run/checkpoints/best.pt") == trained.best_epoch
    left = [p for p in psutil.Process().children(recursive=True) if p.status() != "zombie"]
    assert not set(left) - set(others), "it leaves no process of its own behind"

    # Once more is nothing to do.
    stamp = (folder / "trainer.log").stat().st_mtime_ns
    assert fit(settings, output, None)[1] == trained
    assert (folder / "trainer.log").stat().st_mtime_ns == stamp

    # What is kept is a model like any other.
    clip = ClipSettings(model="any", pretrained=f"local-dir:{output.path(MODEL)}", device="cpu")
    with ClipEngine(clip) as engine:
        known = engine.embed_texts(["a red square", "a blue square"])
        unknown = engine.embed_texts(["zebra", "tiger"])
        assert known.shape == (2, 128) and not np.allclose(known[0], known[1])
        np.testing.assert_allclose(unknown[0], unknown[1], atol=1e-6)
    assert json.loads(output.read(f"{MODEL}/{CONFIG}"))["model_cfg"]["embed_dim"] == 128
    assert (output.size(f"{MODEL}/{WEIGHTS}") or 0) < 10e6


def test_an_output_keeps_its_settings(settings: FinetuneSettings, tmp_path: Path) -> None:
    output = Storage(str(tmp_path))
    mistyped = settings.model_copy(update={"source": f"{settings.source}x"})
    remember(mistyped, output)
    with pytest.raises(BadSettings, match="there is no"):
        fit(mistyped, output, None)
    pairs_only = settings.model_copy(update={"pairs_only": True})
    remember(pairs_only, output)
    fit(pairs_only, output, None)
    remember(settings, output)
    with pytest.raises(BadSettings, match="model"):
        remember(settings.model_copy(update={"model": "ViT-B-32"}), output)


def test_figures_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    judged = []
    for n in range(300):
        kind = KINDS[n % len(KINDS)]
        logits = rng.normal(0, 0.1, len(KINDS))
        logits[KINDS.index(kind)] += 1
        judged.append(Judged(kind=kind, work=f"w{n % 30}", drawn=False, logits=logits.tolist()))
    figures = measure(judged)
    assert figures.auc == 1 and all(each.right == 1 for each in figures.kinds)
    blind = [each.model_copy(update={"logits": rng.normal(0, 1, 15).tolist()}) for each in judged]
    chance = measure(blind)
    assert chance.auc_low < 0.5 < chance.auc_high < 0.75
    assert sum(each.prints for each in chance.kinds) == 300


def test_the_model_that_ships_knows_the_words_it_is_asked_for() -> None:
    import open_clip
    from safetensors.numpy import load_file

    embedding = load_file(SHIPPED / WEIGHTS)["token_embedding.weight"]
    known = np.abs(embedding).sum(axis=1) > 0
    shipped = read_prompts("").ensembles()
    tokens = open_clip.SimpleTokenizer()([text for texts in shipped.values() for text in texts])
    words = {int(token) for token in np.unique(tokens.numpy())} - {0}
    unknown = {token for token in words if not known[token]}
    assert len(unknown) <= 0.1 * len(words), [
        open_clip.SimpleTokenizer().decode([token]) for token in sorted(unknown)
    ]
    assert set(ILLUSTRATIONS) <= set(shipped)
