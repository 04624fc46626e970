"""Opening: every fault of a file gives its pages or the right error, and nothing escapes."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest

from models import errors
from models.errors import InputFault
from tasks import mupdf
from tasks.read import open_pdf
from tests.resources.fault_files import PASSWORD
from tests.resources.fault_pdf import (
    PLACE,
    coded,
    color_mark,
    image,
    jpeg_image,
    page,
    shown,
    write,
)
from tests.resources.make_faults import make
from tests.tasks.reading import COLOR, quadrants, show


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All faults, made once."""
    return make(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("empty", errors.EmptyFile, "0 bytes"),
        ("html", errors.NotAPdf, "an HTML page"),
        ("zip", errors.NotAPdf, "ZIP"),
        ("jpeg_as_pdf", errors.NotAPdf, "a JPEG image"),
        ("zero_bytes", errors.NotAPdf, "zero bytes"),
        ("noise", errors.NotAPdf, "it starts with"),
        ("truncated_nothing_left", errors.TruncatedPdf, "cut short"),
        ("zero_pages", errors.NoPages, "no pages"),
        ("broken_page", errors.DamagedPdf, "no page could be found"),
        ("user_password", errors.EncryptedPdf, "none was given"),
    ],
)
def test_refuses(faults: dict[str, Path], name: str, kind: type[InputFault], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        open_pdf(faults[name])
    assert str(faults[name]) in caught.value.message
    assert caught.value.cure
    # It must travel from a worker process.
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.message, copy.cure) == (
        kind, caught.value.message, caught.value.cure,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "heights", "repaired"),
    [
        ("broken_startxref", [241, 242, 243], True),
        ("broken_xref", [241, 242, 243], True),
        ("broken_xref_stream", [241, 242, 243], True),
        ("circular_prev", [241, 242, 243], False),
        ("junk_prefix", [241, 242, 243], False),
        ("no_eof", [241, 242, 243], False),
        ("circular_tree", [241, 242, 243], True),
        ("count_too_high", [241, 242, 243], True),
        ("endless_numbers", [241, 242, 243], True),
        ("count_too_low", [241, 242, 243], True),
        ("truncated_without_tree", [241, 242], True),
        ("truncated", [241, 242, None], True),
        ("missing_page", [241, None, 243], True),
    ],
)
def test_every_page_is_there_or_missed(
    faults: dict[str, Path], name: str, heights: list[int | None], repaired: bool
) -> None:
    reader = open_pdf(faults[name])
    assert reader.facts.repaired == repaired
    assert reader.facts.page_count == len(heights)
    for index, height in enumerate(heights):
        if height is None:
            with pytest.raises(errors.DamagedPage, match=f"page {index + 1} is listed"):
                reader.page(index)
        else:
            assert reader.page(index).height == height
            assert np.abs(quadrants(show(reader, index)) - np.array(COLOR)).max() < 12


def test_ten_thousand_pages(tmp_path: Path) -> None:
    objects = page(PLACE) | {10: jpeg_image(color_mark())}
    sheet = objects.pop(3)
    numbers = range(100, 10_100)
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects[2] = f"<</Type/Pages/Count {len(numbers)}/Kids[{kids}]>>".encode()
    path = tmp_path / "long.pdf"
    path.write_bytes(write(objects | dict.fromkeys(numbers, sheet)))
    reader = open_pdf(path)
    assert reader.facts.page_count == 10_000 and not reader.facts.repaired
    assert np.abs(quadrants(show(reader, 9_999)) - np.array(COLOR)).max() < 6


def test_passwords_are_tried_in_turn(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["user_password"], ("wrong", PASSWORD))
    assert reader.facts.encrypted
    assert np.abs(quadrants(show(reader)) - np.array(COLOR)).max() < 6
    with pytest.raises(errors.EncryptedPdf, match="none of the 2 given"):
        open_pdf(faults["user_password"], ("wrong", "worse"))
    assert open_pdf(faults["owner_only"]).facts.encrypted
    assert not open_pdf(faults["plain"]).facts.encrypted


@pytest.mark.parametrize("method", ["RC4_40", "RC4_128", "AES_128", "AES_256"])
@pytest.mark.parametrize("user", ["", PASSWORD])
def test_every_kind_of_encryption_opens(
    faults: dict[str, Path], tmp_path: Path, method: str, user: str
) -> None:
    path = tmp_path / "locked.pdf"
    kind = getattr(pymupdf, f"PDF_ENCRYPT_{method}")
    with pymupdf.open(faults["plain"]) as document:
        document.save(path, encryption=kind, user_pw=user, owner_pw="owner")
    if user:
        with pytest.raises(errors.EncryptedPdf, match="none was given"):
            open_pdf(path)
    reader = open_pdf(path, (user,) if user else ())
    assert reader.facts.encrypted
    assert np.abs(quadrants(show(reader)) - np.array(COLOR)).max() < 6


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"II*\0", "a TIFF image"),
        (b"\0\0\0\x0cjP  \r\n", "a JPEG 2000 image"),
        (b"AT&TFORM", "a DjVu document"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\xef\xbb\xbf \n<HTML>", "an HTML page"),
        (b'<?xml version="1.0"?>', "an XML document"),
        (b'{"error": "rate limit"}', "a JSON answer"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
    ],
)
def test_names_what_it_is_instead(tmp_path: Path, start: bytes, words: str) -> None:
    path = tmp_path / "other.pdf"
    path.write_bytes(start + bytes(100))
    with pytest.raises(errors.NotAPdf, match=words):
        open_pdf(path)


def test_missing_and_forbidden_files(tmp_path: Path) -> None:
    with pytest.raises(errors.UnreadableFile, match="No such file"):
        open_pdf(tmp_path / "gone.pdf")
    with pytest.raises(errors.UnreadableFile, match="not a regular file"):
        open_pdf(tmp_path)
    locked = tmp_path / "locked.pdf"
    locked.write_bytes(b"%PDF-1.4")
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(errors.UnreadableFile, match="denied"):
        open_pdf(locked)


@pytest.mark.parametrize(
    "name",
    [
        b"with space.pdf", "caf\u00e9.pdf".encode(), "cafe\u0301.pdf".encode(), b"new\nline.pdf",
        b"-dash.pdf", b"not\xffutf8.pdf", b"a" * 251 + b".pdf", b"noending", b"picture.jpg",
    ],
)  # fmt: skip
def test_any_file_name(faults: dict[str, Path], tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    try:
        path.write_bytes(faults["plain"].read_bytes())
    except OSError:
        pytest.skip("this file system does not take the name")
    assert open_pdf(path).page(0).width == 160


def test_a_vanished_file_is_read_to_its_end(faults: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "going.pdf"
    path.write_bytes(faults["plain"].read_bytes())
    reader = open_pdf(path)
    path.unlink()
    assert np.abs(quadrants(show(reader)) - np.array(COLOR)).max() < 6


def test_closing_twice(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["plain"])
    reader.close()
    reader.close()


_HUNGRY = """
import resource, sys
from pathlib import Path
import cv2
cv2.setNumThreads(1)  # As in a worker.
from models.errors import OutOfMemory
from tasks.read import open_pdf
reader = open_pdf(Path(sys.argv[1]))
reader.page(0)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20),) * 2)
try:
    reader.render(0, 72, gray=False, box=(0, 0, 1, 0.5), max_pixels=10**9)
except OutOfMemory as error:
    sys.exit(f"OutOfMemory: {error}")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("picture", ["raster", "jpx"])
def test_want_of_memory_is_no_damage(faults: dict[str, Path], tmp_path: Path, picture: str) -> None:
    path = faults["huge_page"]
    if picture == "jpx":
        # The raster is small, the decoder's own memory is not.
        path = tmp_path / "large.pdf"
        data = coded(np.zeros((3000, 3000), np.uint8), "JPEG2000")
        path.write_bytes(shown(image(data, "JPXDecode", "", (3000, 3000))))
    run = subprocess.run(
        [sys.executable, "-c", _HUNGRY, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert run.stderr.startswith("OutOfMemory: "), run.stderr


def test_a_second_thread_is_kept_out(
    faults: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = open_pdf(faults["strips"])
    draw, caught = mupdf._draw, []

    def meanwhile(*args: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            caught.append(pool.submit(reader.page, 0).exception())
        return draw(*args)

    monkeypatch.setattr(mupdf, "_draw", meanwhile)
    show(reader)
    assert isinstance(caught[0], RuntimeError)


def test_nothing_reaches_stderr(faults: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    for path in faults.values():
        try:
            reader = open_pdf(path)
            for index in range(min(3, reader.facts.page_count)):
                show(reader, index)
            reader.close()
        except InputFault:
            pass
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_no_damage_escapes_as_another_error(faults: dict[str, Path], tmp_path: Path) -> None:
    """A little fuzzing: whatever happens to a file, it opens or is refused in our own words."""
    chance = random.Random(1)
    path = tmp_path / "fuzzed.pdf"
    originals = [path.read_bytes() for path in faults.values() if path.stat().st_size > 300]
    for _ in range(300):
        data = bytearray(chance.choice(originals))
        for _ in range(chance.choice((1, 3, 10, 40))):
            at = chance.randrange(len(data))
            damage = (bytes([chance.randrange(256)]), b"", b"-1", b"99999999999")
            data[at : at + 1] = chance.choice(damage)
        path.write_bytes(data)
        try:
            reader = open_pdf(path)
        except InputFault as error:
            error.message.encode()
            continue
        for index in range(min(3, reader.facts.page_count)):
            try:
                reader.page(index)
                show(reader, index, gray=True)
                reader.text(index)
            except InputFault as error:
                error.message.encode()
        reader.close()


def test_faults_are_always_the_same(faults: dict[str, Path], tmp_path: Path) -> None:
    again = make(tmp_path)
    assert [path.read_bytes() for path in again.values()] == [
        path.read_bytes() for path in faults.values()
    ]
