"""Running open_clip's trainer, and looking after it: best weights kept, stopped when it idles.

The trainer (``python -m open_clip_train.main`` under ``torchrun``) writes a line of figures and a
checkpoint after each epoch. This module keeps a link to the checkpoint of the best epoch, ends the
trainer after so many epochs without gain, and lets it resume where a kill left it.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from models.finetune import FinetuneSettings, Pairs, Trained
from models.train import TrainerFailed
from tasks.end import end
from tasks.storage import Storage

RUN = "run"
CHECKPOINTS = f"logs/{RUN}/checkpoints"
BEST = "best.pt"
RECORD = "trained.json"
EVERY_S = 0.3
"""Seconds between two looks at what the trainer has written."""
logger = logging.getLogger("intaglio.finetune")


def command(settings: FinetuneSettings, model: str, pairs: Pairs, output: str) -> list[str]:
    """The command line of the trainer.

    Args:
        settings: What the user asked for.
        model: As open_clip wants it: a name, or ``local-dir:`` with a folder.
        pairs: What to train on.
        output: Local folder of this training.
    """
    training, cluster = settings.training, settings.cluster
    ranks = cluster.nodes * cluster.processes
    meet = (
        ["--rdzv-backend", "c10d", "--rdzv-endpoint", cluster.rendezvous, "--rdzv-id", "intaglio"]
        if cluster.rendezvous
        else ["--standalone"]
    )
    launcher = [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(cluster.nodes), "--nproc-per-node", str(cluster.processes)),
        *("--node-rank", str(cluster.node_rank), *meet),
        # Without the dashes torchrun would take the trainer's --logs for one of its own.
        *("-m", "--", "open_clip_train.main"),
    ]
    data = [
        *("--train-data", pairs.train, "--train-num-samples", str(pairs.train_count)),
        *("--val-data", pairs.val, "--val-num-samples", str(pairs.val_count)),
        *("--dataset-type", "csv" if pairs.form == "tsv" else "webdataset"),
        *("--workers", str(training.readers)),
        *("--aug-cfg", "scale=(0.75,1.0)"),
    ]
    how = [
        *("--model", model, "--pretrained", settings.pretrained),
        *("--epochs", str(training.epochs), "--batch-size", str(training.batch_size)),
        *("--lr", str(training.learning_rate), "--wd", str(training.weight_decay)),
        *("--warmup", str(training.warmup), "--lr-scheduler", "cosine"),
        *("--grad-clip-norm", "1.0", "--precision", choose_precision(settings)),
        *("--seed", str(training.seed)),
        *(["--grad-checkpointing"] if training.grad_checkpointing else []),
        # Where there is one rank, there is nothing to gather.
        *(["--local-loss", "--gather-with-grad"] if ranks > 1 else []),
    ]
    keep = [
        *("--logs", f"{output}/logs", "--name", RUN, "--resume", "latest"),
        # One checkpoint, replaced in one piece: a kill while it is written harms nothing.
        *("--save-most-recent", "--save-frequency", "0", "--log-every-n-steps", "20"),
    ]
    return [*launcher, *data, *how, *keep]


def choose_precision(settings: FinetuneSettings) -> str:
    """What open_clip's ``--precision`` should be on this machine."""
    if settings.training.precision != "auto":
        return settings.training.precision
    import torch

    if not torch.cuda.is_available():
        return "fp32"
    return "amp_bf16" if torch.cuda.is_bf16_supported() else "amp"


def train(
    settings: FinetuneSettings, model: str, pairs: Pairs, output: str, note: Callable[[str], None]
) -> Trained:
    """Run the trainer to its end, or to where it stops getting better.

    Args:
        settings: What the user asked for.
        model: As open_clip wants it.
        pairs: What to train on.
        output: Local folder of this training; what is there is gone on with.
        note: Called with a sentence after each epoch.

    Raises:
        TrainerFailed: It ended with an error.
    """
    storage = Storage(output)
    done = storage.size(RECORD)
    if done:
        return Trained.model_validate_json(storage.read(RECORD))
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "trainer.log"
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command(settings, model, pairs, output),
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=_environment(settings),
            start_new_session=True,
        )
        try:
            stopped = _look_after(process, folder, settings.training.patience, note)
        finally:
            end(process)
    if process.returncode and not stopped:
        tail = log.read_text(errors="replace").splitlines()[-8:]
        said = f"open_clip's trainer ended with exit code {process.returncode}. {log} ends:"
        raise TrainerFailed("\n".join([said, *tail]))
    if settings.cluster.node_rank:
        # Machine 0 has the checkpoints and the figures.
        return Trained(epochs=0, best_epoch=0, best_loss=0, stopped_early=stopped)
    losses = read_losses(folder)
    best = epoch_of(folder / CHECKPOINTS / BEST)
    trained = Trained(
        epochs=max(losses), best_epoch=best, best_loss=losses[best], stopped_early=stopped
    )
    storage.write(RECORD, trained.model_dump_json(indent=1).encode())
    return trained


def read_losses(folder: Path) -> dict[int, float]:
    """Validation loss by epoch, counted from 1; of an epoch done twice, the last."""
    results = folder / CHECKPOINTS / "results.jsonl"
    if not results.exists():
        return {}
    lines = results.read_text().splitlines(keepends=True)
    figures = [json.loads(line) for line in lines if line.endswith("\n")]
    return {int(each["epoch"]): float(each["clip_val_loss"]) for each in figures}


def _look_after(
    process: subprocess.Popen[bytes], folder: Path, patience: int, note: Callable[[str], None]
) -> bool:
    """Follow the epochs; True if it ought to stop before its end."""
    latest = folder / CHECKPOINTS / "epoch_latest.pt"
    seen = None
    while True:
        ended = process.poll() is not None
        now = _identity(latest)
        if now != seen:
            seen = now
            losses = read_losses(folder)
            lowest = min(losses, key=lambda epoch: (losses[epoch], epoch))
            epoch = _keep_if(latest, lowest)
            note(f"epoch {epoch}: loss {losses[epoch]:.4f}, lowest {losses[lowest]:.4f}")
            if epoch - lowest >= patience and not ended:
                return True
        if ended:
            return False
        time.sleep(EVERY_S)


def epoch_of(checkpoint: Path) -> int:
    """After which epoch, counted from 1, a checkpoint was written."""
    import torch

    return int(torch.load(checkpoint, map_location="cpu", mmap=True, weights_only=True)["epoch"])


def _identity(path: Path) -> tuple[int, int] | None:
    """Changes whenever a file is replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _keep_if(latest: Path, wanted: int) -> int:
    """Keep the latest checkpoint as the best if it is of the wanted epoch; its epoch.

    The trainer replaces its file, not the content, so that a second name for it stays what it is.
    """
    partial, best = latest.with_name("best.partial"), latest.with_name(BEST)
    partial.unlink(missing_ok=True)
    os.link(latest, partial)
    epoch = epoch_of(partial)
    if epoch == wanted:
        os.replace(partial, best)
    else:
        partial.unlink()
    return epoch


def _environment(settings: FinetuneSettings) -> dict[str, str]:
    from models.clip.engine import processors

    threads = settings.training.threads or max(1, processors() // settings.cluster.processes)
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
