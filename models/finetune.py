"""Settings and records of training a CLIP model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from models.records import Record
from models.settings import Group

PairForm = Literal["webdataset", "tsv"]


class Cluster(Group):
    """The machines that train together; one process on one machine by default."""

    nodes: int = Field(default=1, ge=1, le=1024)
    """Machines."""
    processes: int = Field(default=1, ge=1, le=64)
    """Processes on each machine: one a GPU."""
    node_rank: int = Field(default=0, ge=0, le=1023)
    """Which of the machines this is, counted from 0."""
    rendezvous: str = ""
    """HOST:PORT where the machines meet, on machine 0; needed for more than one."""


class Training(Group):
    """How open_clip's trainer runs."""

    epochs: int = Field(default=20, ge=1, le=1000)
    """Most passes over the pairs."""
    patience: int = Field(default=5, ge=1, le=1000)
    """Stop after this many epochs without a lower validation loss."""
    batch_size: int = Field(default=64, ge=2, le=65536)
    """Pairs a batch and process."""
    learning_rate: float = Field(default=1e-3, gt=0, le=1)
    """Highest learning rate; 1e-5 or so to train on from pretrained weights."""
    warmup: int = Field(default=50, ge=0, le=100_000)
    """Steps until it is reached; it then falls along a cosine."""
    weight_decay: float = Field(default=0.2, ge=0, le=10)
    """AdamW's weight decay."""
    precision: Literal["auto", "fp32", "amp", "amp_bf16"] = "auto"
    """auto: bfloat16 or float16 autocast as the GPU has it, fp32 on a processor."""
    grad_checkpointing: bool = True
    """Compute activations twice rather than keep them (transformers only)."""
    readers: int = Field(default=0, ge=0, le=64)
    """Processes that read pairs, for each training process; 0 reads in the process itself."""
    threads: int = Field(default=0, ge=0, le=256)
    """Threads of each training process; 0 takes a share of the processors."""
    seed: int = Field(default=0, ge=0, le=2**31)
    """Of all chance."""


class Prints(Group):
    """Pairs made from a labelled folder of page scans."""

    annotations: str = ""
    """Table that adds to the folder's labels.csv."""
    kinds: str = ""
    """Table which says what kind of print a picture is; the project's own if empty."""
    pairs: int = Field(default=8000, ge=100, le=1_000_000)
    """How many to make."""
    folds: int = Field(default=0, ge=0, le=20)
    """Before training on everything, train this many times without a part of the works, and
    measure on those; 0: do not."""
    fold_epochs: int = Field(default=4, ge=1, le=1000)
    """Epochs of these trainings."""


class FinetuneSettings(Group):
    """Train a CLIP model on image-text pairs, with open_clip's own trainer."""

    source: str = Field(min_length=1)
    """A tab-separated table of pairs (columns filepath, title and perhaps work), WebDataset shards
    (a name with {00000..00009}.tar), each local or an fsspec URL; or a folder of labelled page
    scans, from which pairs are made."""
    output: str = Field(min_length=1)
    """Local folder of the training. Running again on the same output resumes."""
    validation: str = ""
    """Shards to validate on, where the source is shards; else a part of the works is held out."""
    train_samples: int = Field(default=0, ge=0, le=10_000_000_000)
    """Pairs in the shards of the source."""
    held_out: float = Field(default=0.1, ge=0.01, le=0.5)
    """Share of the works to validate on."""
    form: PairForm = "webdataset"
    """How prepared pairs are written: WebDataset shards, or a table with loose images."""
    pairs_only: bool = False
    """Write the pairs and stop: a cluster then takes the shards as its source."""
    model: str = Field(default="print", min_length=1)
    """Any architecture of open_clip; print: that of the small model that ships."""
    pretrained: str = ""
    """Tag or file of the weights to start from; from nothing if empty."""
    training: Training = Training()
    cluster: Cluster = Cluster()
    prints: Prints = Prints()


class Pairs(Record):
    """Pairs as the trainer takes them."""

    form: PairForm
    """How they are written."""
    train: str
    """Table, or shards with a brace range."""
    train_count: int
    """Pairs to train on."""
    val: str
    """Table or shards to validate on."""
    val_count: int
    """How many those are; 0 if nobody knows."""
    texts: str = ""
    """File with every caption, a line each, below the training's folder; empty if unknown."""
    left_out: int = 0
    """Pairs whose picture could not be read."""


class Trained(Record):
    """What a training came to."""

    epochs: int
    """Epochs run."""
    best_epoch: int
    """The one whose weights were kept, counted from 1."""
    best_loss: float
    """Its contrastive loss on the validation pairs."""
    stopped_early: bool
    """Whether it was ended for want of gain."""


class Judged(Record):
    """A print, and how a network that had not seen its work ranked the kinds."""

    kind: str
    """What it is."""
    work: str
    """The work it is from."""
    drawn: bool
    """Whether it was made up rather than scanned."""
    logits: list[float]
    """Of the prompts of each kind, in the order of ``KINDS``: cosines times the network's scale."""


class KindFigures(Record):
    """How well one kind of print is known."""

    kind: str
    """Which."""
    drawn: bool
    """Whether these prints were made up rather than scanned."""
    prints: int
    """How many were judged."""
    works: int
    """Of how many works."""
    right: float
    """Share whose nearest kind is the right one of all."""
    right_side: float
    """Share put on the right side of illustrations against all else."""


class PrintFigures(Record):
    """What networks found on prints of works that they had not seen."""

    auc: float
    """Of illustrations against text, blank paper and covers."""
    auc_by_work: float
    """The same with every work counting as much as every other."""
    auc_low: float
    """2.5 % of a bootstrap over works."""
    auc_high: float
    """97.5 % of it."""
    prints: int
    """How many it was taken from."""
    works: int
    """Of how many works."""
    kinds: list[KindFigures]
    """Kind by kind."""


class Outcome(Record):
    """What a run came to."""

    pairs: Pairs
    """What it trained on."""
    trained: Trained | None
    """How the training went; None if only pairs were wanted."""
    figures: PrintFigures | None
    """What a model like this is worth; None without folds."""
