"""Each trainer's buckets, against sizes worked out by hand, and the pre-flight."""

from __future__ import annotations

import csv
import io
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from models.handoff import Plan, Preflight
from tasks.captions.table import caption
from tasks.dataset import read_samples
from tasks.handoff.buckets import RULES
from tasks.handoff.plot import plot
from tasks.handoff.preflight import preflight
from tasks.handoff.words import pictures, rows
from tests.tasks.handoff.conftest import make_dataset


@pytest.mark.parametrize(
    ("trainer", "size", "bucket", "scale", "cropped"),
    [
        # Exact buckets stay as they are; sd-scripts cuts what is over, without resizing.
        ("kohya", (832, 1216), (832, 1216), 1, 0),
        ("kohya", (700, 900), (640, 896), 1, 1 - 640 * 896 / (700 * 900)),
        # 1254×836 has the area; of 1216×811 and 1248×832 the latter fits the steps better.
        ("kohya", (3000, 2000), (1216, 832), 1248 / 3000, 1 - 1216 / 1248),
        ("kohya", (2048, 2048), (1024, 1024), 0.5, 0),
        ("kohya", (20, 400), (64, 384), 3.2, 1 - 384 / 1280),
        ("builtin", (832, 1216), (832, 1216), 1, 0),
        ("diffusers", (832, 1216), (1024, 1024), 1024 / 832, 1 - 832 / 1216),
        ("diffusers", (2048, 1024), (1024, 1024), 1, 0.5),
        ("ai-toolkit", (832, 1216), (832, 1216), 1, 0),
        ("ai-toolkit", (512, 512), (512, 512), 1, 0),
        ("onetrainer", (1024, 1024), (1024, 1024), 1, 0),
        # 2:3 becomes 832×1280, which is not 2:3 any more.
        ("onetrainer", (800, 1200), (832, 1280), 1280 / 1200, 1 - 832 / (800 * 1280 / 1200)),
        ("onetrainer", (512, 512), (1024, 1024), 2, 0),
        ("simpletuner", (512, 512), (1024, 1024), 2, 0),
        ("simpletuner", (832, 1216), (832, 1216), 1, 0),
    ],
)
def test_a_picture_goes_where_its_trainer_puts_it(
    trainer: str, size: tuple[int, int], bucket: tuple[int, int], scale: float, cropped: float
) -> None:
    placed = RULES[trainer].place(*size, 1024, 64)
    assert (placed.width, placed.height) == bucket
    assert placed.scale == pytest.approx(scale, rel=1e-3)
    assert placed.cropped == pytest.approx(cropped, abs=2e-3)


@pytest.mark.parametrize("trainer", RULES)
def test_nothing_is_stretched_and_every_bucket_is_covered(trainer: str) -> None:
    for width in range(40, 2400, 177):
        for height in range(40, 2400, 191):
            placed = RULES[trainer].place(width, height, 1024, 64)
            assert 0 <= placed.cropped < 1
            assert width * placed.scale >= placed.width - 1
            assert height * placed.scale >= placed.height - 1
            area = placed.width * placed.height
            kept = (1 - placed.cropped) * width * height * placed.scale**2
            assert area == pytest.approx(kept, rel=0.03), (width, height)


def look(folder: Path, sizes: list[tuple[int, int]], **plan: Any) -> Preflight:
    samples = list(read_samples(make_dataset(folder / "d", sizes=sizes)))
    captions = {s.file_name: caption("intaglio, engraving", "template", s.sha256) for s in samples}
    captions[samples[0].file_name] = caption("a very long caption " * 20, "page", "0" * 64)
    trainers = ["kohya", "diffusers", "onetrainer", "simpletuner", "huggingface"]
    return preflight(Plan(**plan), trainers, samples, captions)


def test_the_preflight_adds_up_and_says_what_to_think_about(tmp_path: Path) -> None:
    found = look(tmp_path, [(832, 1216)] * 3 + [(512, 512)] * 2 + [(640, 960)], batch_size=2)
    by_name = {trainer.trainer: trainer for trainer in found.trainers}
    assert list(by_name) == ["kohya", "diffusers", "onetrainer", "simpletuner", "builtin"]
    assert all(sum(b.samples for b in t.buckets) == 6 for t in found.trainers)
    kohya, onetrainer = by_name["kohya"], by_name["onetrainer"]
    assert (kohya.steps_an_epoch, kohya.small_buckets, kohya.upscaled) == (2 + 1 + 1, 1, 0)
    assert kohya.epochs == 500
    # 832×1280 gets four pictures, 1024×1024 two; none is left out of a batch of two.
    assert (onetrainer.steps_an_epoch, onetrainer.left_out) == (3, 0)
    assert by_name["diffusers"].upscaled == 6
    said = "\n".join(found.warnings)
    assert "1 captions have more than 75 tokens" in said
    assert "diffusers: 6 of 6 samples would be enlarged. At --plan.resolution 512 none" in said
    assert [line[0] for line in rows(found)[1:]] == list(by_name)


def test_every_picture_is_listed_with_its_bucket_and_what_it_loses(tmp_path: Path) -> None:
    found = look(tmp_path, [(1024, 1024), (700, 900), (1024, 1024)])
    kohya = next(trainer for trainer in found.trainers if trainer.trainer == "kohya")
    odd = "images/ladies-mirror-1887-03/p0002-1.jpg"
    lost = 1 - 640 * 896 / (700 * 900)
    assert kohya.placed[odd].cropped == pytest.approx(lost) and len(kohya.placed) == 3
    lines = list(csv.DictReader(io.StringIO(pictures(found))))
    assert len(lines) == 3 * len(found.trainers)
    assert lines[0] == {
        "trainer": "kohya", "file_name": odd, "bucket": "640x896", "scale": "1.0000",
        "cropped": f"{lost:.4f}",
    }  # fmt: skip


def test_a_bucket_with_a_single_sample_is_said(tmp_path: Path) -> None:
    found = look(tmp_path, [(1024, 1024), (640, 896), (1024, 1024), (832, 1216)])
    assert (
        "kohya: 2 buckets have a single sample (images/ladies-mirror-1887-03/p0002-1.jpg for "
        "one)." in found.warnings
    )
    assert not [
        said for said in found.warnings if said.startswith("diffusers") and "single" in said
    ]


@pytest.mark.parametrize(("precision", "said"), [("fp16", True), ("bf16", False)])
def test_simpletuner_takes_bf16_alone(tmp_path: Path, precision: str, said: bool) -> None:
    found = look(tmp_path, [(1024, 1024)], precision=precision)
    warning = "simpletuner: it trains in bf16, not in fp16: a T4 will not do."
    assert (warning in found.warnings) is said


def test_onetrainer_leaves_out_what_fills_no_batch(tmp_path: Path) -> None:
    found = look(tmp_path, [(1024, 1024)] * 5, batch_size=8)
    onetrainer = next(t for t in found.trainers if t.trainer == "onetrainer")
    assert (onetrainer.left_out, onetrainer.steps_an_epoch, onetrainer.epochs) == (5, 0, 0)
    assert "onetrainer: no bucket fills a batch: nothing would be trained." in found.warnings


def test_more_memory_is_wanted_for_larger_batches(tmp_path: Path) -> None:
    one, many = (
        next(t.vram_gb for t in look(tmp_path, [(1024, 1024)], batch_size=size).trainers)
        for size in (1, 8)
    )
    assert one <= 16 < many


def test_the_plot_shows_every_trainer(tmp_path: Path) -> None:
    found = look(tmp_path, [(1024, 1024), (832, 1216)])
    image = Image.open(BytesIO(plot(found)))
    assert image.format == "PNG" and image.height > 200
    assert len(image.convert("RGB").getcolors(100_000) or []) > 2
    assert json.loads(found.model_dump_json())["samples"] == 2


def test_what_diffusers_scripts_cannot_be_told_is_said(tmp_path: Path) -> None:
    found = look(tmp_path, [(1024, 1024)] * 10, batch_size=4, repeats=10, alpha=8)
    steps = {trainer.trainer: trainer.steps_an_epoch for trainer in found.trainers}
    assert (steps["diffusers"], steps["kohya"], steps["onetrainer"]) == (3, 25, 25)
    said = [warning for warning in found.warnings if warning.startswith("diffusers: its")]
    assert len(said) == 2 and "no repeats" in said[0] and "the rank, 16, for alpha" in said[1]
