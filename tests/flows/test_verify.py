"""A dataset that was tampered with is found out, and mended to the same bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.progress import Progress
from tasks.storage import Storage
from tasks.verify import verify as find_problems
from tests.resources.make_faults import MAKERS

ROOT = Path(__file__).resolve().parent.parent.parent
Verify = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def whole(demo: Path, extract: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished dataset of one PDF."""
    output = tmp_path_factory.mktemp("whole") / "dataset"
    code, printed = extract("--source", demo / "1887", "--output", output)
    assert code == 0, printed
    return output


@pytest.fixture
def dataset(whole: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "dataset"))


@pytest.fixture
def verify(prefect_url: str) -> Verify:
    """Run ``python -m flows.verify``: exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "flows.verify", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PREFECT_API_URL": prefect_url},
            capture_output=True,
            text=True,
            timeout=180,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def samples(dataset: Path) -> list[Path]:
    return sorted(dataset.glob("images/*/*.jpg"))


def hashes(dataset: Path) -> dict[str, str]:
    names = ["dataset.zip", "manifest.jsonl", "pages.jsonl", *map(str, samples(dataset))]
    return {Path(n).name: hashlib.sha256((dataset / n).read_bytes()).hexdigest() for n in names}


def lose_a_sample(dataset: Path) -> str:
    samples(dataset)[0].unlink()
    return "is missing"


def flip_a_bit(dataset: Path) -> str:
    path = samples(dataset)[-1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return "is not the file that was written"


def cut_the_zip(dataset: Path) -> str:
    path = dataset / "dataset.zip"
    path.write_bytes(path.read_bytes()[:-1000])
    return "is damaged"


def pack_other_files(dataset: Path) -> str:
    with zipfile.ZipFile(dataset / "dataset.zip", "w") as archive:
        archive.write(dataset / "manifest.jsonl", "manifest.jsonl")
    return "does not hold the samples"


def lose_a_page(dataset: Path) -> str:
    path = dataset / "pages.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    return "the archive has"


def lose_a_line(dataset: Path) -> str:
    path = dataset / "manifest.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    return "does not list the samples"


def test_a_whole_dataset_is_said_to_be_whole(whole: Path, verify: Verify) -> None:
    code, printed = verify("--output", whole)
    assert code == 0 and "All is as the records say" in printed


DAMAGES = [lose_a_sample, flip_a_bit, cut_the_zip, pack_other_files, lose_a_page, lose_a_line]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(damage: Callable[[Path], str], dataset: Path) -> None:
    words = damage(dataset)
    problems = find_problems(Storage(str(dataset)), Progress())
    assert any(words in problem.what for problem in problems)


def test_damage_is_mended_to_the_same_bytes(whole: Path, dataset: Path, verify: Verify) -> None:
    for damage in (lose_a_sample, flip_a_bit, cut_the_zip, lose_a_page):
        damage(dataset)
    code, printed = verify("--output", dataset)
    assert code == 1 and "--repair" in printed, printed
    code, printed = verify("--output", dataset, "--repair")
    assert code == 0, printed
    assert hashes(dataset) == hashes(whole)


def test_no_dataset_is_bad_usage(verify: Verify, tmp_path: Path) -> None:
    code, printed = verify("--output", tmp_path)
    assert code == 2 and "no finished dataset" in printed and "Traceback" not in printed


@pytest.mark.nightly
def test_samples_of_an_encrypted_pdf_are_made_again_with_its_password_only(
    extract: Callable, verify: Verify, tmp_path: Path
) -> None:
    import pymupdf

    folder, dataset = tmp_path / "in", tmp_path / "dataset"
    folder.mkdir()
    with pymupdf.open(stream=MAKERS["plain"]()) as plain:
        plain.save(folder / "a.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="sesame")
    words = ["--source", folder, "--output", dataset, "--read.passwords", "sesame"]
    code, printed = extract(*words, "--triage.method", "sigma", "--fit.min-side", "1")
    assert code == 0 and samples(dataset), printed
    before = hashes(dataset)
    lose_a_sample(dataset)
    for wrong in ([], ["--password", "wrong"]):
        code, printed = verify("--output", dataset, "--repair", *wrong)
        assert code == 2 and "a.pdf" in printed and "--password" in printed, printed
        assert (dataset / "dataset.zip").exists(), "nothing was changed"
    code, printed = verify("--output", dataset, "--repair", "--password", "sesame")
    assert code == 0, printed
    assert hashes(dataset) == before
