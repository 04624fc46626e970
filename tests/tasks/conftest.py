"""Small PDFs and sessions on them, without Prefect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pymupdf
import pytest

from models.settings import Settings
from tasks.progress import Progress
from tasks.session import Session

MakePdf = Callable[..., bytes]
OpenSession = Callable[..., Session]


@pytest.fixture(scope="session")
def picture() -> bytes:
    """A grey photograph-like picture, as JPEG."""
    from io import BytesIO

    import numpy as np
    from PIL import Image

    across, down = np.meshgrid(np.linspace(0, 9, 600), np.linspace(0, 7, 600))
    noise = np.random.default_rng(5).normal(0, 12, across.shape)
    pixels = np.clip(128 + 90 * np.sin(across) * np.cos(down) + noise, 0, 255).astype(np.uint8)
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=80)
    return stream.getvalue()


@pytest.fixture(scope="session")
def make_pdf(picture: bytes) -> MakePdf:
    """Make a PDF: a letter a page: p a plate, t text, b blank."""

    def make(pages: str = "pt", title: str = "") -> bytes:
        document = pymupdf.open()
        for kind in pages:
            page = document.new_page(width=300, height=400)
            if kind == "p":
                page.insert_image(pymupdf.Rect(30, 60, 270, 340), stream=picture, keep_proportion=0)
            elif kind == "t":
                page.insert_textbox(pymupdf.Rect(30, 30, 270, 370), "lorem ipsum " * 12, fontsize=8)
        document.set_metadata({"title": title})
        data: bytes = document.tobytes(no_new_id=True)
        document.close()
        return data

    return make


@pytest.fixture
def source(tmp_path: Path, make_pdf: MakePdf) -> Path:
    """An archive of four files: two PDFs, a copy of one, and what is none."""
    folder = tmp_path / "in"
    (folder / "1887").mkdir(parents=True)
    (folder / "1887" / "b.pdf").write_bytes(make_pdf("ptpb", title="B & <co>"))
    (folder / "a.pdf").write_bytes(make_pdf("btp", title="A"))
    (folder / "copy of a.pdf").write_bytes(make_pdf("btp", title="A"))
    (folder / "bad.pdf").write_bytes(b"<html>404")
    return folder


@pytest.fixture
def open_session() -> Iterator[OpenSession]:
    """Open sessions that are closed at the end of the test."""
    opened: list[Session] = []

    def open_one(source: object, output: object, **groups: Any) -> Session:
        groups.setdefault("run", {"workers": 1, "disk_reserve_mb": 0})
        groups.setdefault("triage", {"method": "sigma", "sigma_threshold": 45})
        settings = Settings(source=str(source), output=str(output), **groups)
        opened.append(Session(settings, Progress()))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture
def memory() -> Iterator[Any]:
    """The in-memory filesystem, empty."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder and what is in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(params=["local", "memory"])
def output(request: pytest.FixtureRequest, tmp_path: Path, memory: Any) -> str:
    """An output on the disk, and one on a filesystem that is not local."""
    return str(tmp_path / "the output") if request.param == "local" else "memory://bucket/out"
