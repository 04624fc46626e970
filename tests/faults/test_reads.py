"""A disk that cannot be read for a while; see :mod:`tests.faults.reads`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.record import ROOT, SAME, record
from tests.faults.stages import make_archive, settings_for, tree, work
from tests.tasks.conftest import MakePdf, make_pdf, picture  # noqa: F401

STAGES = {"open", "look", "cut"}


@pytest.fixture(scope="session")
def bad_reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes reading fail."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux to make the disk fail")
    library = tmp_path_factory.mktemp("bad-reads") / "bad_reads.so"
    code = str(Path(__file__).with_name("bad_reads.c"))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, code, "-ldl"], check=True)
    return library


def test_a_read_error_of_the_disk_is_no_damage(
    tmp_path: Path,
    bad_reads: Path,
    make_pdf: MakePdf,  # noqa: F811
) -> None:
    source = make_archive(tmp_path / "archive")
    (source / "drawn.pdf").write_bytes(make_pdf("ppt"))
    work(settings_for(source, tmp_path / "reference"))
    reference = tree(tmp_path / "reference")
    preloaded = os.environ | {"LD_PRELOAD": str(bad_reads), "BAD_READS": str(tmp_path / "switch")}
    total = 0
    for share in (0, 0.02, 0.3, 0.6, 0.95):
        output = tmp_path / f"out-{share}"
        command = [sys.executable, "-m", "tests.faults.reads", source, output, str(share)]
        ended = subprocess.run(
            command, cwd=ROOT, env=preloaded, capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == 0, ended.stderr
        failed = json.loads(ended.stdout)
        assert share or set(failed) == STAGES, "each stage met the bad disk"
        assert failed.get("open"), share
        assert tree(output) == reference, f"from {share} of each PDF on"
        total += sum(failed.values())
    record(
        "Process and disk",
        "input/output error (EIO) while a PDF is read",
        total,
        f"{total} stopped with 3; {SAME}",
        "pytest tests/faults/test_reads.py",
    )
