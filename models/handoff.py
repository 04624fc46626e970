"""The nouns of the hand-off: its settings, captions, buckets and bundles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from models.clip.settings import ClipSettings
from models.records import Record, Sha256
from models.settings import Group

Captioner = Literal["template", "page", "clip", "blip"]
TrainerName = Literal[
    "kohya",
    "diffusers",
    "ai-toolkit",
    "onetrainer",
    "simpletuner",
    "huggingface",
    "webdataset",
    "open-clip",
]
TRAINERS: tuple[TrainerName, ...] = TrainerName.__args__  # type: ignore[attr-defined]
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"


class Captions(Group):
    """What is said of each sample."""

    by: list[Captioner] = Field(default=["template"], min_length=1)
    """Who writes them, in this order; repeat the flag to combine. template: trigger, medium and
    decade; page: the caption printed under the figure, from the PDF's text layer; clip: tags from
    a vocabulary; blip: a sentence by a BLIP model."""
    trigger: Annotated[str, Field(pattern=r"^[^\r\n{}\[\],]*$")] = "intaglio"
    """The word that calls the style up; it begins every caption that nobody edited. Empty for
    none."""
    medium: str = ""
    """Name of the medium, the same for all; empty takes it from what triage saw."""
    vocabulary: str = ""
    """clip: a YAML file, path or fsspec URL, of lists (subject, garment, setting, medium or your
    own); empty takes ours, tasks/captions/vocabulary.yaml."""
    certainty: float = Field(default=0.5, ge=0, le=1)
    """clip: a tag is given when it is at least this likely among those of its list."""
    blip_model: str = "Salesforce/blip-image-captioning-base"
    """blip: a folder, or the name of a model on a hub."""


class Plan(Group):
    """What the bundles tell the trainers."""

    base_model: str = Field(default=SDXL, min_length=1)
    """The SDXL model to train on: a folder or the name on a hub."""
    resolution: int = Field(default=1024, ge=64, le=2048)
    """Side of the square whose area the buckets have, in pixels."""
    step: int = Field(default=64, ge=32, le=128, multiple_of=32)
    """Sides of buckets are multiples of this many pixels; SDXL needs multiples of 32."""
    batch_size: int = Field(default=1, ge=1, le=256)
    """Samples a step."""
    repeats: int = Field(default=1, ge=1, le=1000)
    """Times a sample is seen in an epoch."""
    steps: int = Field(default=2000, ge=1, le=10_000_000)
    """Steps to train."""
    save_every: int = Field(default=500, ge=1, le=1_000_000)
    """Steps between checkpoints."""
    rank: int = Field(default=16, ge=1, le=512)
    """Rank of the LoRA."""
    alpha: int = Field(default=16, ge=1, le=512)
    """Its strength is alpha/rank."""
    learning_rate: float = Field(default=1e-4, gt=0, le=1)
    """Learning rate of the U-Net's LoRA; the text encoders are not trained."""
    precision: Literal["fp16", "bf16"] = "fp16"
    """fp16 for a T4, bf16 for newer cards; SimpleTuner trains in bf16 alone."""
    seed: int = Field(default=1885, ge=0, le=2**31 - 1)
    """The same seed gives the same order and noise."""
    prompt: str = "a cyber monocle in the style of an 1890s engraving"
    """What sample images are made of; the trigger is put before it."""


class HandoffSettings(Group):
    """Hand a dataset over to LoRA trainers."""

    dataset: str = Field(min_length=1)
    """Folder or fsspec URL of a finished dataset: the output of flows.extract."""
    bundles: str = ""
    """Where the bundles go, a folder or fsspec URL; empty takes DATASET/bundles."""
    trainers: list[TrainerName] = Field(default=[*TRAINERS], min_length=1)
    """Trainers to make bundles for; repeat the flag for several."""
    captions: Captions = Captions()
    clip: ClipSettings = ClipSettings()
    plan: Plan = Plan()
    license: str = ""
    """Licence of the images as Hugging Face writes it (cc0-1.0, cc-by-4.0, ...); it is not
    guessed."""
    notes: str = ""
    """Where the scans come from and what else a user of the dataset should know."""
    zip: bool = False
    """Pack each bundle in a ZIP beside it, to take it to another machine."""
    dry_run: bool = False
    """Show captions and buckets, and write nothing."""

    @field_validator("trainers")
    @classmethod
    def _in_order(cls, trainers: list[TrainerName]) -> list[TrainerName]:
        return [name for name in TRAINERS if name in trainers]

    @property
    def place(self) -> str:
        """Where the bundles go."""
        return self.bundles or f"{self.dataset.rstrip('/')}/bundles"


class Caption(Record):
    """A sample's caption.

    Attributes:
        text: One line, never empty.
        source: Who wrote it: captioners joined by ``+``, or ``edited`` for a person.
        tokens: CLIP tokens, without the two that begin and end every prompt.
        picture: The picture it is of: ``s`` and 16 digits of its SHA-256; empty if nobody said.
        new: Whether a person wrote it into the table after our last run.
    """

    text: str
    source: str
    tokens: int
    picture: str = ""
    new: bool = False


class Placed(Record):
    """Where a trainer puts a picture.

    Attributes:
        width: Of the bucket, in pixels.
        height: Of the bucket, in pixels.
        scale: What the picture is resized by before it is cropped; over 1 is upscaling.
        cropped: Share of the picture's area that is cut off (0 to 1).
    """

    width: int
    height: int
    scale: float
    cropped: float


class Bucket(Record):
    """A bucket and how many samples are in it, repeats not counted."""

    width: int
    height: int
    samples: int


class TrainerPreflight(Record):
    """What a trainer would do to a dataset.

    Attributes:
        trainer: Its name; ``builtin`` is the trainer of this project.
        rule: How it chooses, in words.
        buckets: By size, largest first.
        upscaled: Samples that it would enlarge.
        cropped_mean: Share of a sample's pixels cut off, on average (0 to 1).
        cropped_most: The largest share, and ``cropped_file`` whose it is.
        placed: Where each picture goes, by file name.
        small_buckets: Buckets with fewer samples, repeats counted, than a batch.
        left_out: Samples an epoch that are dropped because they fill no batch.
        steps_an_epoch: Optimiser steps.
        epochs: That the steps of the plan come to, rounded up.
        vram_gb: Memory class of the graphics card that this should fit, in GB: an estimate.
    """

    trainer: str
    rule: str
    buckets: list[Bucket]
    upscaled: int
    cropped_mean: float
    cropped_most: float
    cropped_file: str
    placed: dict[str, Placed]
    small_buckets: int
    left_out: int
    steps_an_epoch: int
    epochs: int
    vram_gb: int


class Preflight(Record):
    """``preflight.json``: what each trainer would do to the dataset.

    Attributes:
        samples: How many there are.
        batch_size: Samples a step.
        repeats: Times a sample is seen in an epoch.
        long_captions: Files whose caption has more than 75 tokens; trainers cut it there.
        trainers: One entry for each that has buckets.
        warnings: Sentences for a person.
    """

    samples: int
    batch_size: int
    repeats: int
    long_captions: list[str]
    trainers: list[TrainerPreflight]
    warnings: list[str]


class BundleSample(Record):
    """One line of a bundle's ``samples.jsonl``.

    Attributes:
        image: Name of the picture in the bundle, without folder.
        caption: As written into this bundle.
        file_name: Of the sample in the dataset.
        width: Pixels.
        height: Pixels.
        sha256: Of the picture's bytes.
        pdf: Where it comes from.
    """

    image: str
    caption: str
    file_name: str
    width: int
    height: int
    bytes: int
    sha256: Sha256
    pdf: str
    page_index: int
    kind: str

    @property
    def stem(self) -> str:
        """The picture's name without suffix."""
        return self.image.rpartition(".")[0]


class Bundle(Record):
    """``bundle.json``: what a bundle is and where it comes from; written last.

    Attributes:
        dataset_sha256: Over the names and hashes of all samples.
        captions_sha256: Over their captions.
        images: Folder of the pictures in the bundle; empty where they are in shards.
        trigger: The word that begins every caption that nobody edited.
        purity: What scoring said of the dataset, if it was scored; nothing of the run itself.
        program: File that must lie in the trainer's folder, if it is launched from there.
        home: Environment variable that names the trainer's folder.
    """

    format: Literal[1] = 1
    trainer: TrainerName
    dataset_sha256: Sha256
    captions_sha256: Sha256
    samples: int
    images: str
    trigger: str
    purity: dict[str, object] | None
    license: str
    notes: str
    plan: Plan
    home: str = ""
    program: str = ""
