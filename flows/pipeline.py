"""All in a row: extract the illustrations, score and pack them, hand them over to trainers.

python -m flows.pipeline --source scans/ --output dataset/
python -m flows.pipeline --source scans/ --output dataset/ --clip.model print
python -m flows.pipeline --source scans/ --output dataset/ --trainers kohya --trainers diffusers
python -m flows.pipeline --source scans/ --output dataset/ --train

The same as flows.extract, flows.score, (with --trainers) flows.handoff and (with --train)
flows.train one after the other, with the settings of all; their own --help says more. Running the
same command again resumes wherever it was stopped: finished pages are not read, known samples not
embedded again, and a training goes on from its last checkpoint.

Exit codes: 0 done, 2 bad usage or settings, 3 stopped and resumable (disk low, storage gone, output
in use, weights unreachable), 4 nothing usable in SRC, or anything quarantined under --strict,
130 interrupted and resumable.
"""

from __future__ import annotations

import sys

from prefect import flow

from flows.command import ExtractionLine, parse_as, run_command, start_prefect, tree_of
from flows.extract import count_or_explain, extract
from flows.handoff import handoff
from flows.score import print_verdict, score
from flows.train import train
from models.clip.check import check_model
from models.errors import BadSettings, ExitCode
from models.records import Summary
from models.score import PipelineSettings, Verdict
from models.settings import Settings
from tasks import session
from tasks.captions.blip import check_blip
from tasks.captions.clip import read_vocabulary
from tasks.discover import discover
from tasks.handoff.ai_toolkit import READS
from tasks.lora.base import choose_device
from tasks.lora.log import check_tracking
from tasks.lora.sdxl import check_base
from tasks.plan import finished
from tasks.report import print_table
from tasks.score.labels import read_labels
from tasks.score.look import REPORT, examples
from tasks.score.prompts import read_prompts
from tasks.score.run import check_libraries
from tasks.storage import Storage


class Command(PipelineSettings, ExtractionLine):
    """The settings of ``python -m flows.pipeline``."""

    model_config = ExtractionLine.model_config


@flow(name="pipeline", persist_result=False)
def pipeline(settings: PipelineSettings) -> tuple[Summary, Verdict]:
    """From an archive to a scored dataset, and to bundles for trainers."""
    check(settings)
    extraction = Settings(**{name: getattr(settings, name) for name in Settings.model_fields})
    try:
        run = session.begin(extraction)
        archive = discover(run)
        count_or_explain(run, archive)
        # Else the flow takes this session over.
        summary = finished(run, archive) or extract(extraction)
    finally:
        session.end()
    if summary is None:
        raise BadSettings(
            f"shard: {settings.shard} is worked, but a shard is no dataset that could be scored.",
            "When all shards are worked, run the same command without --shard.",
        )
    verdict = score(settings.scoring)
    if settings.trainers or settings.train:
        handoff(settings.handoff)
    if settings.train:
        train(settings.training)
    return summary, verdict


def check(settings: PipelineSettings) -> None:
    """See that no later stage will lack what it needs, before hours of extraction.

    Raises:
        StopRun: A library, a file, a GPU or a model is missing or will not do.
    """
    check_libraries()
    check_model(settings.clip)
    read_labels(settings.labels, read_prompts(settings.prompts))
    if settings.like:
        examples(settings.like)
    if settings.trainers or settings.train:
        if "ai-toolkit" in settings.trainers and settings.encode.format not in READS:
            raise BadSettings(
                f"trainers: ai-toolkit does not read {settings.encode.format}.",
                "Say --encode.format jpeg or png, or name the other --trainers.",
            )
        if "clip" in settings.captions.by:
            read_vocabulary(settings.captions.vocabulary)
        if "blip" in settings.captions.by:
            check_blip(settings.captions.blip_model)
    if settings.train:
        if settings.trainers == ["webdataset"]:
            raise BadSettings(
                "train: the bundle of webdataset has no folder of pictures to train on.",
                "Add --trainers kohya, or leave --trainers out.",
            )
        check_tracking(settings.training.tracking_uri)
        choose_device(settings.plan.precision, settings.lora.allow_cpu)
        check_base(settings.lora.base_model or settings.plan.base_model)


def main(arguments: list[str]) -> ExitCode:
    """The command ``python -m flows.pipeline``."""
    command = parse_as(Command, "python -m flows.pipeline", __doc__ or "", arguments)
    settings = tree_of(command, PipelineSettings)
    check(settings)
    start_prefect()
    summary, verdict = pipeline(settings)
    print_table(summary, settings.output)
    print_verdict(verdict, Storage(settings.output).path(f"{REPORT}/index.html"))
    quarantined = summary.pages.quarantined + summary.pdfs.quarantined
    return ExitCode.UNUSABLE if settings.strict and quarantined else ExitCode.OK


if __name__ == "__main__":
    sys.exit(run_command(main))
