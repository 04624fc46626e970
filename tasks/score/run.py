"""The stages of scoring, and what they hand to each other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from prefect import task

from models.clip.engine import ClipEngine
from models.clip.errors import ClipMissing
from models.clip.int8 import check_int8
from models.errors import BadSettings
from models.records import Sample
from models.score import Measure, ScoreSettings, Verdict
from tasks.dataset import read_all, read_file, settle
from tasks.retry import RETRIED
from tasks.score import judge, report, words
from tasks.score.calibration import SHIPPED, calibrate
from tasks.score.duplicates import SIDE, Picture
from tasks.score.labels import read_labels
from tasks.score.look import embed, embed_examples, say_faults, take_measures
from tasks.score.map import lay_out
from tasks.score.measure import small_picture
from tasks.score.prompts import Prompts, read_prompts
from tasks.score.purity import Margins, by_examples, by_prompts
from tasks.score.vectors import Vectors
from tasks.score.write import VERDICT, drop, write_scores
from tasks.session import Session
from tasks.worker import peak_bytes

LIBRARIES = ("open_clip", "sklearn", "pyarrow")
CHECKED = 200
"""Samples on which INT8 is compared with fp32, at most."""
PICTURES = 2048
"""Pictures of copies kept in memory, 64 KB each."""
SMALL_NOTE = (
    "Scored with the small model that ships, which knows kinds of print and little else: it tells "
    "illustrations from text, blank paper and covers. A full model (--clip.model ViT-B-32-256 "
    "--clip.pretrained datacomp_s34b_b86k) would also understand prompts of your own and what a "
    "picture shows, and measure likeness and variety by subject."
)
logger = logging.getLogger("intaglio.score")


def check_libraries() -> None:
    """See that scoring's libraries are installed.

    Raises:
        ClipMissing: Naming those that are not.
    """
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise ClipMissing(f"Scoring needs libraries that are not installed: {', '.join(missing)}.")


class Scoring:
    """One scoring of a dataset; its methods are the stages in their order.

    Not a dataclass on purpose: Prefect would search it for futures.

    Args:
        run: The session of the dataset.
        settings: The settings.

    Attributes:
        scores: What is known of the samples, once they are judged.
        verdict: The sums, once they are judged.

    Raises:
        BadSettings: Prompts or labels are missing or wrong, or there is no sample.
    """

    scores: judge.Scores
    verdict: Verdict

    def __init__(self, run: Session, settings: ScoreSettings) -> None:
        self.begun = monotonic()
        self.run = run
        self.settings = settings
        self.prompts: Prompts = read_prompts(settings.prompts)
        self.samples: list[Sample] = list(read_all(run.output))
        if not self.samples:
            raise BadSettings(
                f"dataset: {run.output.url} has no sample.", "There is none to judge."
            )
        names = {sample.file_name for sample in self.samples}
        self.labels = read_labels(settings.labels, self.prompts, names)
        self.measures: list[Measure] = []

    def look(self) -> None:
        """Measure the samples."""
        settle(self.run.output)
        self.run.check_space()
        self.measures = take_measures(self.run, self.samples)

    def embed(self) -> None:
        """Have CLIP look at them; the model is given back at the end."""
        faults = {i: m.fault for i, m in enumerate(self.measures) if m.fault}
        good = [i for i in range(len(self.samples)) if i not in faults]
        with ClipEngine(self.settings.clip) as clip:
            anchors, compare = self._comparison(clip)
            if self.settings.clip.precision == "int8" and good:
                # One model at a time.
                clip.close()
                self._check_int8(good, compare)
            vectors, broken, self.embedded = embed(self.run, clip, [self.samples[i] for i in good])
            vectors = vectors.reshape(len(good), anchors.shape[1])
            margins = compare(vectors)
            self.scored_by, self.small = clip.name, clip.small
        faults |= {good[i]: fault for i, fault in broken.items()}
        say_faults(faults)
        self.scores = judge.Scores(
            samples=self.samples,
            measures=self.measures,
            faults=faults,
            vectors=np.zeros((len(self.samples), vectors.shape[1]), np.float32),
            margins=margins.scattered(good, len(self.samples)),
            labels=self.labels,
        )
        self.scores.vectors[good] = vectors

    def _comparison(self, clip: ClipEngine) -> tuple[Vectors, Callable[[Vectors], Margins]]:
        """What samples are compared with, and how."""
        if self.settings.like:
            examples = embed_examples(clip, self.settings.like)
            return examples, partial(by_examples, examples=examples)
        classes = clip.embed_prompts(self.prompts.ensembles())
        scale = clip.logit_scale
        return classes, partial(by_prompts, classes=classes, prompts=self.prompts, scale=scale)

    def _check_int8(self, good: list[int], compare: Callable[[Vectors], Margins]) -> None:
        """See that INT8 decides as fp32 does, on samples from all over the dataset.

        Raises:
            Int8Refused: It does not.
        """
        checked = {self.samples[i].file_name for i in good[:: -(-len(good) // CHECKED)]}
        names = [self.samples[i].file_name for i in good]
        # Labelled ones as well: they make probabilities of the margins, which then decide.
        some = [name for name in names if name in checked or name in self.labels]
        self.run.progress.start(2 * len(some), "checking int8")

        def read(name: str) -> bytes:
            self.run.progress.advance()
            return read_file(self.run.output, name)

        images = [(name, partial(read, name)) for name in some]
        check_int8(self.settings.clip, images, partial(self.decide, compare))
        self.run.progress.stop()

    def decide(
        self, compare: Callable[[Vectors], Margins], names: Sequence[str], vectors: Vectors
    ) -> NDArray[np.bool_]:
        """Which samples would stay for their probability, were these all there are."""
        labelled = judge.with_labels(names, self.labels)
        found = calibrate(compare(vectors).margin, *labelled, self._shipped())
        return found.probability >= self.settings.purity.threshold

    def _shipped(self) -> tuple[float, float] | None:
        """Slope and intercept of the model card, where it is about these prompts."""
        settings = self.settings
        if settings.like or settings.prompts:
            return None
        return SHIPPED.get(settings.clip.model)

    def judge(self) -> None:
        """Decide what becomes of each sample."""
        scores, settings = self.scores, self.settings
        purity = judge.judge_purity(scores, settings, self._shipped())
        if purity.contrary:
            logger.warning("labels: %s.", words.CONTRARY.format(purity.labelled))
        judge.judge_duplicates(scores, settings, lru_cache(PICTURES)(self._picture))
        selection = judge.judge_selection(scores, settings.select)
        purity = purity.model_copy(update={"estimate": judge.estimate(scores)})
        spread = judge.judge_spread(scores, settings)
        scores.place = np.zeros((len(scores.samples), 2), np.float32)
        scores.place[scores.good] = lay_out(scores.vectors[scores.good])
        self.verdict = Verdict(
            scored_by=self.scored_by,
            note=SMALL_NOTE if self.small else "",
            samples=len(scores.samples),
            kept=len(scores.kept()),
            dropped=scores.dropped(),
            purity=purity,
            duplicate_groups=len(scores.groups),
            duplicates=sum(len(group) - 1 for group in scores.groups),
            spread=spread,
            selection=selection,
            embedded=self.embedded,
            settings=settings.model_dump(mode="json"),
        )

    def write(self) -> None:
        """Write the scores, and take out what does not belong."""
        self.run.check_space(self.scores.vectors.nbytes)
        write_scores(self.run.output, self.scores)
        drop(self.run.output, self.scores)

    def report(self) -> None:
        """Write the report and, last of all, the verdict."""
        report.write(self.run, self.settings, self.scores, self.verdict)
        self.verdict = self.verdict.model_copy(
            update={"seconds": round(monotonic() - self.begun, 1), "peak_bytes": peak_bytes()}
        )
        self.run.output.write(VERDICT, self.verdict.model_dump_json(indent=1).encode())

    def _picture(self, at: int) -> Picture:
        name = self.samples[at].file_name
        return small_picture(read_file(self.run.output, name), name, SIDE)


@task(name="measure", **RETRIED)
def look_task(scoring: Scoring) -> None:
    """Measure the samples."""
    scoring.look()


@task(name="embed", **RETRIED)
def embed_task(scoring: Scoring) -> None:
    """Have CLIP look at the samples."""
    scoring.embed()


@task(name="judge", **RETRIED)
def judge_task(scoring: Scoring) -> None:
    """Decide what becomes of each sample."""
    scoring.judge()


@task(name="write", **RETRIED)
def write_task(scoring: Scoring) -> None:
    """Write the scores and take out what does not belong."""
    scoring.write()


@task(name="report", **RETRIED)
def report_task(scoring: Scoring) -> Verdict:
    """Write the report, and show the same figures in the Prefect UI."""
    scoring.report()
    words.show_artifacts(scoring.verdict)
    return scoring.verdict
