"""The nouns of scoring: its settings, what is measured on a sample, and the verdict."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from models.calibrate import Rate
from models.clip.settings import ClipSettings
from models.handoff import Captions, HandoffSettings, Plan, TrainerName
from models.records import Fault, Record, Sha256
from models.settings import Group, Settings
from models.train import Lora, TrainSettings


class Purity(Group):
    """Telling illustrations from everything else."""

    threshold: float = Field(default=0.5, ge=0, le=1)
    """A sample stays when the probability that it is an illustration is at least this."""
    most_text: float = Field(default=0.25, ge=0, le=1)
    """A sample goes when lines of letters, measured on its pixels, cover more than this fraction
    of it, whatever CLIP says."""


class Duplicates(Group):
    """Finding pictures that are there twice, within a volume or across them."""

    drop: bool = True
    """Keep the best copy of each picture and drop the others; off, they are only reported."""
    likeness: float = Field(default=0.7, ge=0.5, le=1)
    """Correlation of the lines of two pictures, laid upon each other, from which on they are the
    same picture."""


class Spread(Group):
    """Measuring how well the kept samples stand for all illustrations."""

    neighbours: int = Field(default=5, ge=1, le=100)
    """An illustration is covered when a kept one is among its nearest, this many."""
    clusters: Annotated[int, Field(ge=2, le=1000)] | Literal["auto"] = "auto"
    """Groups of like pictures, 2 to 1000; auto grows with the dataset, 4 to 24."""


class Sheet(Group):
    """The report."""

    pages: int = Field(default=1000, ge=0, le=100_000)
    """Pages shown as pictures at most, those of the worst samples first; of the others their
    place is named."""


class Judging(Group):
    """How samples are judged; see `ScoreSettings`."""

    like: str = ""
    """Folder with pictures of what you want, three or more: samples are then judged by their
    likeness to these instead of by prompts."""
    labels: str = ""
    """CSV with the columns file_name and label (illustration, or what else it is; empty where
    unsure): it decides for these samples, calibrates the probabilities of the others, and
    measures the purity."""
    prompts: str = ""
    """YAML file with your own prompts; tasks/score/prompts.yaml is the form."""
    select: int = Field(default=0, ge=0, le=10_000_000)
    """Keep just this many samples, those which stand best for all; 0 keeps every good one."""
    clip: ClipSettings = ClipSettings()
    purity: Purity = Purity()
    duplicates: Duplicates = Duplicates()
    spread: Spread = Spread()
    sheet: Sheet = Sheet()


class ScoreSettings(Judging):
    """Judge with CLIP how pure and representative a dataset is; drop what does not belong."""

    dataset: str = Field(min_length=1)
    """Folder or fsspec URL of a finished dataset: the --output of flows.extract."""


class PipelineSettings(Settings, Judging):
    """From an archive to a scored dataset, and to bundles for trainers: all flows in a row."""

    trainers: list[TrainerName] = Field(default=[])
    """Trainers to make bundles for (python -m flows.handoff --help names them); none by default.
    Repeat the flag for several."""
    captions: Captions = Captions()
    plan: Plan = Plan()
    train: bool = False
    """Train a LoRA on the first of the bundles that has a folder of pictures, or on kohya's."""
    lora: Lora = Lora()

    @property
    def scoring(self) -> ScoreSettings:
        """What scoring needs of them."""
        own = {name: getattr(self, name) for name in Judging.model_fields}
        return ScoreSettings(dataset=self.output, **own)

    @property
    def handoff(self) -> HandoffSettings:
        """What the hand-off needs of them."""
        return HandoffSettings(
            dataset=self.output,
            trainers=self.trainers or ["kohya"],
            captions=self.captions,
            plan=self.plan,
            clip=self.clip,
        )

    @property
    def training(self) -> TrainSettings:
        """What the training needs of them."""
        handoff = self.handoff
        fit = (name for name in handoff.trainers if name != "webdataset")
        return TrainSettings(
            bundle=f"{handoff.place}/{next(fit, handoff.trainers[0])}", lora=self.lora
        )


class Measure(Record):
    """What the pixels of a sample say, without any model.

    Attributes:
        sha256: Of the file.
        pixels_sha256: Of the decoded pixels: equal pictures in different files have the same.
        phash: Perceptual hash of the picture without its paper margin, 64 bits in hexadecimal.
        text_area: Fraction of the sample that lines of letters cover.
        fault: Why it cannot be looked at; the rest is then empty.
    """

    sha256: Sha256
    pixels_sha256: str = ""
    phash: str = ""
    text_area: float = 0.0
    fault: Fault | None = None


class PurityVerdict(Record):
    """How pure the dataset is.

    Attributes:
        estimate: Mean probability of the kept samples; no labels needed.
        estimate_before: The same of all samples.
        measured: Share of illustrations among the labelled samples that would be kept without
            their labels, with a 95 % interval (Wilson); without a value where none is labelled.
        labelled: Samples with a label.
        calibrated_by: ``labels`` (these), ``model card`` (those of the small model) or ``nothing``.
        method: ``platt``, ``isotonic`` or ``none``.
        contrary: Whether the labels say the opposite of the scores and so calibrate nothing.
        ece: Expected calibration error on labelled samples that had no say; None without labels.
        auc: Area under the ROC curve of the margin on the labelled samples.
    """

    estimate: float | None
    estimate_before: float | None
    measured: Rate
    labelled: int = 0
    calibrated_by: str = "nothing"
    method: str = "none"
    contrary: bool = False
    ece: float | None = None
    auc: float | None = None


class Balance(Record):
    """How evenly kept samples are spread over groups, against the whole archive.

    Attributes:
        groups: Kept samples and illustrations altogether, by group.
        evenness: Entropy of the kept samples over its maximum (Pielou), 0 to 1.
        drift: Kullback-Leibler divergence of the kept from all, in bits; 0 is the same mixture.
    """

    groups: dict[str, tuple[int, int]]
    evenness: float
    drift: float


class SpreadVerdict(Record):
    """How well the kept samples stand for all illustrations that were extracted.

    Attributes:
        coverage: Share of the illustrations that are kept or have a kept one among their nearest.
        vendi_kept: Effective number of distinct pictures among the kept ones.
        vendi_all: The same of all illustrations.
        balance: By volumes, years and clusters.
    """

    coverage: float | None
    vendi_kept: float
    vendi_all: float
    balance: dict[str, Balance]


class Selection(Record):
    """What ``select`` chose.

    Attributes:
        chosen: How many.
        value: What the chosen ones cover, as a share of what all would.
        bound: No choice of as many can cover more than this share.
        curve: Number chosen and value, on the way there.
        knee: Up to this many each adds more than all chosen do on average, from there on less.
    """

    chosen: int
    value: float
    bound: float
    curve: list[tuple[int, float]]
    knee: int


class Verdict(Record):
    """``verdict.json``.

    Attributes:
        scored_by: Model, weights and precision.
        note: What to know about it.
        dropped: Dropped samples by reason.
        duplicate_groups: Pictures that are there more than once.
        duplicates: Copies of them beyond the first.
        embedded: Samples this run had to embed; the others were known.
        settings: All settings of the run.
        seconds: Wall time.
        peak_bytes: Largest resident size of the main process, model included.
    """

    scored_by: str
    note: str = ""
    samples: int
    kept: int
    dropped: dict[str, int]
    purity: PurityVerdict
    duplicate_groups: int
    duplicates: int
    spread: SpreadVerdict
    selection: Selection | None = None
    embedded: int = 0
    settings: dict[str, Any]
    seconds: float = 0.0
    peak_bytes: int = 0
