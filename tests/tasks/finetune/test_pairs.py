"""Pairs for the trainer: whole pictures, works never split, what is broken left out and named."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("webdataset")

from models.errors import BadSettings, InputFault
from models.finetune import Cluster, FinetuneSettings, Training
from tasks.finetune.kinds import KINDS, caption, prompts
from tasks.finetune.launch import command
from tasks.finetune.pairs import read_table, split
from tasks.finetune.prints import Print, make_prints
from tasks.finetune.sample import sample_pairs
from tasks.finetune.source import check, prepare, shards
from tasks.progress import Progress
from tasks.storage import Storage

WORKS = 12


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """24 pairs of 12 works; one picture is cut short, one is missing."""
    lines = ["filepath\ttitle\twork"]
    for n in range(2 * WORKS):
        picture = Image.new("RGB", (60, 240), (255, 250, 240))
        picture.paste((n * 10, 0, 0), (10, 2, 50, 30))
        picture.save(tmp_path / f"{n}.png")
        lines.append(f"{n}.png\tcaption {n}\twork {n % WORKS}")
    (tmp_path / "3.png").write_bytes((tmp_path / "3.png").read_bytes()[:60])
    (tmp_path / "4.png").unlink()
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path / "pairs.tsv"


def settings(source: object, **changed: object) -> FinetuneSettings:
    return FinetuneSettings(source=str(source), output="unused", **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["webdataset", "tsv"])
def test_the_trainers_own_reader_takes_what_is_written(
    table: Path, tmp_path: Path, form: str
) -> None:
    from open_clip_train.data import get_data
    from open_clip_train.params import parse_args

    output = Storage(str(tmp_path / "out"))
    pairs = prepare(settings(table, form=form), 64, output, None, Progress())
    assert pairs.left_out == 2 and pairs.train_count + pairs.val_count == 22
    left_out = output.read("pairs/left-out.txt").decode()
    assert "3.png" in left_out and "4.png: there is no such file" in left_out

    line = command(settings("x", training=Training(batch_size=4)), "any", pairs, "out")
    arguments = parse_args(line[line.index("open_clip_train.main") + 1 :])
    arguments.distributed, arguments.world_size, arguments.rank = False, 1, 0
    seen: dict[str, list[str]] = {"train": [], "val": []}
    to_array = lambda picture: np.asarray(picture)  # noqa: E731
    # One of the readers gives the tokenizer a text, the other a list of one.
    as_list = lambda text: text if isinstance(text, list) else [text]  # noqa: E731
    data = get_data(arguments, (to_array, to_array), tokenizer=as_list)
    for part in seen:
        data[part].set_epoch(0)
        for images, texts in data[part].dataloader:
            assert images.shape[1:] == (74, 74, 3), "whole pictures, squared, with some room"
            assert np.asarray(images)[:, :8, 30:44].min() < 120, "the top is still there"
            seen[part] += texts
    works = {part: {int(text.split()[1]) % WORKS for text in texts} for part, texts in seen.items()}
    assert len(seen["val"]) == pairs.val_count and not works["train"] & works["val"]

    before = output.names("")
    again = prepare(settings(table, form=form), 64, output, None, Progress())
    assert again == pairs and output.names("") == before


def test_a_table_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"no .*gone\.tsv"):
        read_table(str(tmp_path / "gone.tsv"), 64)
    (tmp_path / "bad.tsv").write_text("file,caption\na.png,b\n")
    with pytest.raises(BadSettings, match="filepath and title"):
        read_table(str(tmp_path / "bad.tsv"), 64)
    (tmp_path / "latin.tsv").write_bytes(b"filepath\ttitle\na.png\t\xe9\n")
    with pytest.raises(BadSettings, match="not UTF-8"):
        read_table(str(tmp_path / "latin.tsv"), 64)
    (tmp_path / "short.tsv").write_text("\ufefffilepath\ttitle\twork\na.png\tb\nc.png\n")
    with pytest.raises(BadSettings, match="line 3: filepath or title is missing"):
        read_table(str(tmp_path / "short.tsv"), 64)


def test_a_missing_library_can_be_named() -> None:
    """The command can be imported without what it then finds missing."""
    missing = ("sklearn", "pandas", "webdataset", "open_clip_train", "torch")
    block = "".join(f"sys.modules[{name!r}] = None; " for name in missing)
    subprocess.run([sys.executable, "-c", f"import sys; {block}import flows.finetune"], check=True)


def test_works_are_held_out_by_name_alone_and_one_is_too_few() -> None:
    works = [f"work {n}" for n in range(40)]
    held = split(works, 0.1)
    assert len(held) == 4 and held == split(reversed(works), 0.1)
    assert len(split(works[:2], 0.01)) == 1
    with pytest.raises(BadSettings, match="two works"):
        split(["a", "a"], 0.5)


def test_a_cluster_gathers_gradients_and_one_process_does_not() -> None:
    pairs = shards(settings("train.tar", validation="val.tar", train_samples=100))
    alone = command(settings("x"), "ViT-B-32", pairs, "out")
    assert "--local-loss" not in alone and "--standalone" in alone
    big = Cluster(nodes=4, processes=8, node_rank=2, rendezvous="node0:29500")
    line = " ".join(command(settings("x", cluster=big), "ViT-B-32", pairs, "out"))
    assert "--nnodes 4 --nproc-per-node 8 --node-rank 2" in line
    assert "--rdzv-backend c10d --rdzv-endpoint node0:29500" in line
    assert "--local-loss --gather-with-grad" in line
    assert "--lr-scheduler cosine" in line and "--grad-checkpointing" in line


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"output": "s3://bucket/run"}, "output"),
        ({"cluster": Cluster(nodes=2)}, "rendezvous"),
        ({"source": "a.tar"}, "--validation"),
    ],
)
def test_what_does_not_go_together_is_said_at_once(changed: dict[str, object], says: str) -> None:
    with pytest.raises(BadSettings, match=says):
        check(settings("x").model_copy(update=changed))


def test_remote_shards_are_streamed_byte_for_byte(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(3_000_000)
    (tmp_path / "a.tar").write_bytes(content)
    remote = f"file://{tmp_path}/a.tar"
    pairs = shards(settings(remote, validation=remote, train_samples=9))
    assert pairs.train.startswith("pipe:") and pairs.train.endswith(remote)
    done = subprocess.run(
        [sys.executable, "-m", "tasks.finetune.stream", remote], capture_output=True, check=True
    )
    assert done.stdout == content


def test_every_kind_comes_and_captions_vary() -> None:
    rng = np.random.default_rng(0)
    text = (np.indices((300, 200)).sum(0) % 7 * 36).astype(np.uint8)
    real = [Print(kind, f"w{n}", text) for kind in KINDS for n in range(2)]
    pairs = sample_pairs([*real, *make_prints(real, 2, rng)], 300, seed=1)
    assert {pair.name.rsplit(" ", 1)[0] for pair in pairs} == set(KINDS)
    shapes = {np.asarray(pair.picture()).shape[2] for pair in pairs[:40]}
    assert shapes == {3}
    same = sample_pairs([*real, *make_prints(real, 2, np.random.default_rng(0))], 300, seed=1)
    assert np.array_equal(pairs[7].picture(), same[7].picture()) and pairs[7].text == same[7].text
    for kind in KINDS:
        assert len({caption(kind, rng) for _ in range(200)}) > 25
        assert len(prompts(kind)) >= 24


def test_a_damaged_picture_is_a_fault_of_its_own(table: Path) -> None:
    pairs = read_table(str(table), 64)
    with pytest.raises(InputFault):
        pairs[3].picture()
    stream = io.BytesIO()
    pairs[5].picture().save(stream, "PNG")
    assert stream.getvalue()
