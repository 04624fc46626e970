"""Reading: every fault gives the right picture or the right error, never a wrong picture."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from models import errors
from models.errors import InputFault
from models.records import RelativeBox
from tasks import mupdf
from tasks.read import Raster, Reader, open_pdf
from tests.resources.fault_files import PASSWORD
from tests.resources.fault_pdf import HIGH, WIDE, coded, color_mark, gray_mark, image, shown
from tests.resources.make_faults import make

COLOR = ((20, 20, 20), (220, 40, 40), (250, 250, 250), (40, 200, 40))
GRAY = tuple((v, v, v) for v in (20, 100, 250, 180))
BILEVEL = tuple((v, v, v) for v in (0, 255, 255, 128))
INKS = ((58, 58, 58), (213, 97, 72), (250, 250, 250), (75, 158, 112))
"""The colour mark in CMYK, which reaches neither full black nor full red. By the renderer's own
profile; PDFium gives the same within 3."""
BUDGET = 1_000_000


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All faults, made once."""
    return make(tmp_path_factory.mktemp("faults"))


def quadrants(raster: Raster) -> NDArray[np.float64]:
    """(4, 3) mean colours: top left, top right, bottom left, bottom right."""
    pixels = raster.pixels
    high, wide = pixels.shape[0] // 2, pixels.shape[1] // 2
    parts = (
        pixels[:high, :wide],
        pixels[:high, wide:],
        pixels[high:, :wide],
        pixels[high:, wide:],
    )
    return np.array([np.broadcast_to(part.mean(axis=(0, 1)), 3) for part in parts])


def show(reader: Reader, index: int = 0, gray: bool = False) -> Raster:
    return reader.render(index, 72, gray=gray, max_pixels=BUDGET)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, COLOR) for name in (
            "plain", "owner_only", "cropbox", "cropbox_outside", "userunit", "negative_mediabox",
            "zero_mediabox", "huge_page", "tiny_page", "rotate_0", "rotate_90", "rotate_180",
            "rotate_270", "rotate_-90", "rotate_450", "rotate_45", "layer_off",
            "annotated", "indexed", "jpx", "jpx_alpha", "garbage_in_contents", "inline",
            "form", "mirrored", "upside_down", "strips", "tiles",
        )),
        ("layers", COLOR),
        ("color_key", (*COLOR[:2], (255, 255, 255), COLOR[3])),
        *((name, GRAY) for name in (
            "gray_jpeg", "gray_jpeg_decode", "soft_mask", "indexed_gray", "jpx_16_bit",
            "hidden_text",
        )),
        *((name, BILEVEL) for name in ("image_mask", "image_mask_decode", "fax")),
        *((name, INKS) for name in ("cmyk_jpeg", "cmyk_jpeg_without_marker", "ycck_jpeg")),
    ],
)  # fmt: skip
def test_shows_what_a_viewer_shows(
    faults: dict[str, Path], name: str, expected: tuple[tuple[int, int, int], ...]
) -> None:
    reader = open_pdf(faults[name])
    facts = reader.page(0)
    raster = show(reader)
    assert np.abs(quadrants(raster) - np.array(expected)).max() < 6
    # The same page in grey is the same picture, and has colour only if it says so.
    gray = show(reader, gray=True)
    assert gray.pixels.shape == raster.pixels.shape[:2]
    weights = np.array([0.299, 0.587, 0.114])
    assert np.abs(quadrants(gray)[:, 0] - quadrants(raster) @ weights).max() < 2
    assert facts.color == (expected not in (GRAY, BILEVEL))


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
        ("junk_prefix", [241, 242, 243], False),
        ("no_eof", [241, 242, 243], False),
        ("circular_tree", [241, 242, 243], True),
        ("count_too_high", [241, 242, 243], True),
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


@pytest.mark.parametrize(
    "name",
    [
        "corrupt_picture", "corrupt_jpx", "cut_jpx", "cut_jpeg_most", "silent_jpeg", "cut_flate",
        "corrupt_contents", "missing_contents", "missing_picture",
    ],
)  # fmt: skip
def test_a_lost_picture_is_no_blank_page(faults: dict[str, Path], name: str) -> None:
    reader = open_pdf(faults[name])
    assert reader.page(0).width == 160
    with pytest.raises(errors.DamagedPage, match="page 1"):
        show(reader)
    # Asked again, or for a part, it does not become better.
    with pytest.raises(errors.DamagedPage):
        reader.render(0, 72, gray=True, box=(0, 0, 1, 0.1), max_pixels=BUDGET)


def test_a_picture_with_a_little_damage_is_kept_and_says_so(faults: dict[str, Path]) -> None:
    raster = show(open_pdf(faults["cut_jpeg_little"]))
    assert raster.transforms[0].startswith("picture damaged: about 20% missing")
    raster = show(open_pdf(faults["one_of_two_corrupt"]))
    assert raster.transforms[0].startswith("picture damaged: about 2% missing")


def test_an_even_part_of_a_page_is_not_taken_for_a_lost_one(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["garbage_in_contents"])
    raster = reader.render(0, 72, gray=False, box=(0.6, 0.1, 0.9, 0.4), max_pixels=BUDGET)
    assert raster.pixels.max(axis=(0, 1)).tolist() == pytest.approx(COLOR[1], abs=3)
    assert raster.transforms[0].startswith("damaged content: ")


@pytest.mark.parametrize("name", ["without_contents", "text_only"])
def test_pages_without_pictures_are_no_damage(faults: dict[str, Path], name: str) -> None:
    reader = open_pdf(faults[name])
    assert reader.page(0).native_dpi is None
    assert not reader.page(0).color
    assert show(reader).transforms == ()


def test_passwords_are_tried_in_turn(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["user_password"], ("wrong", PASSWORD))
    assert reader.facts.encrypted
    assert np.abs(quadrants(show(reader)) - np.array(COLOR)).max() < 6
    with pytest.raises(errors.EncryptedPdf, match="none of the 2 given"):
        open_pdf(faults["user_password"], ("wrong", "worse"))
    assert open_pdf(faults["owner_only"]).facts.encrypted
    assert not open_pdf(faults["plain"]).facts.encrypted


@pytest.mark.parametrize(
    ("name", "size", "rotation", "native"),
    [
        ("plain", (160, 240), 0, 72),
        ("cropbox", (160, 240), 0, 72),
        ("userunit", (640, 960), 0, 18),
        ("rotate_90", (160, 240), 90, 72),
        ("rotate_-90", (160, 240), 270, 72),
        ("rotate_450", (160, 240), 90, 72),
        ("rotate_45", (160, 240), 90, 72),
        ("negative_mediabox", (160, 240), 0, 72),
        ("zero_mediabox", (612, 792), 0, 21.8),
        ("tiny_page", (16, 24), 0, 720),
        ("huge_page", (14400, 14400), 0, 1.2),
        ("layers", (160, 240), 0, 144),
        ("strips", (160, 240), 0, 72),
        ("tiles", (160, 240), 0, 72),
        ("image_mask", (160, 240), 0, 72),
        ("soft_mask", (160, 240), 0, 72),
    ],
)
def test_facts_of_a_page(
    faults: dict[str, Path], name: str, size: tuple[int, int], rotation: int, native: float
) -> None:
    facts = open_pdf(faults[name]).page(0)
    assert (facts.width, facts.height) == size
    assert facts.rotation == rotation
    assert facts.native_dpi == pytest.approx(native, rel=0.01)


def test_page_labels(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["labels"])
    assert [reader.page(i).label for i in range(3)] == ["i", "ii", "pl. 7"]
    assert open_pdf(faults["plain"]).page(0).label == ""


@pytest.mark.parametrize("name", ["plain", "rotate_90", "cropbox", "userunit", "tiles"])
@pytest.mark.parametrize("gray", [True, False])
def test_a_part_is_a_crop_of_the_whole(faults: dict[str, Path], name: str, gray: bool) -> None:
    reader = open_pdf(faults[name])
    dpi = reader.page(0).native_dpi or 0
    whole = reader.render(0, dpi, gray=gray, max_pixels=BUDGET).pixels
    box = (0.31, 0.22, 0.64, 0.87)
    part = reader.render(0, dpi, gray=gray, box=box, max_pixels=BUDGET)
    high, wide = whole.shape[:2]
    left, right = round(0.31 * wide), round(0.64 * wide)
    top, bottom = round(0.22 * high), round(0.87 * high)
    assert part.pixels.shape[:2] == (bottom - top, right - left)
    assert np.array_equal(part.pixels, whole[top:bottom, left:right])


def test_a_scan_at_its_own_resolution_is_copied_pixel_by_pixel(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["indexed"])
    native = reader.page(0).native_dpi
    assert native is not None
    pixels = reader.render(0, native, gray=False, max_pixels=BUDGET).pixels
    assert pixels.shape == (240, 160, 3)
    assert np.unique(pixels.reshape(-1, 3), axis=0).tolist() == sorted(map(list, COLOR))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_quick_look_at_jpeg_2000_is_the_same_picture(tmp_path: Path, channels: int) -> None:
    """It goes another way than the full picture, which the part still takes."""
    mark = color_mark() if channels == 3 else gray_mark()
    large = np.repeat(np.repeat(mark, 4, axis=0), 4, axis=1)
    path = tmp_path / "large.pdf"
    picture = image(coded(large, "JPEG2000"), "JPXDecode", "", (4 * WIDE, 4 * HIGH))
    path.write_bytes(shown(picture))
    reader = open_pdf(path)
    assert reader.page(0).native_dpi == 288
    for gray in (True, False):
        quick = show(reader, gray=gray).pixels
        slow = reader.render(0, 72, gray=gray, box=(0, 0, 1, 0.999), max_pixels=BUDGET).pixels
        assert quick.shape == slow.shape
        assert np.abs(quick.astype(int) - slow).mean() < 1


def test_the_budget_lowers_the_resolution_and_says_so(faults: dict[str, Path]) -> None:
    reader = open_pdf(faults["plain"])
    raster = reader.render(0, 600, gray=True, max_pixels=200_000)
    assert 190_000 < raster.pixels.size <= 200_000
    assert raster.dpi == pytest.approx(164, abs=1)
    assert raster.transforms == (f"dpi lowered from 600 to {raster.dpi:.0f}: pixel budget",)
    # A part may have what the whole may not.
    part = reader.render(0, 600, gray=True, box=(0, 0, 0.1, 0.1), max_pixels=200_000)
    assert part.dpi == pytest.approx(600, rel=0.001)
    assert part.transforms == ()


def test_a_page_no_budget_shows(faults: dict[str, Path]) -> None:
    with pytest.raises(errors.PageTooLarge, match="megapixels"):
        show(open_pdf(faults["ribbon"]))


def test_an_endless_page_has_some_size(faults: dict[str, Path]) -> None:
    facts = open_pdf(faults["endless_mediabox"]).page(0)
    assert 0 < facts.width < 20_000


@pytest.mark.parametrize(
    ("degrees", "lower"),
    [
        (0, (0, 0.5, 1, 1)),
        (90, (0, 0, 0.5, 1)),
        (180, (0, 0, 1, 0.5)),
        (270, (0.5, 0, 1, 1)),
    ],
)
def test_text_is_where_it_is_displayed(
    faults: dict[str, Path], tmp_path: Path, degrees: int, lower: RelativeBox
) -> None:
    path = tmp_path / "turned.pdf"
    turned = f"/Rotate {degrees} /Contents".encode()
    path.write_bytes(faults["hidden_text"].read_bytes().replace(b"/Contents", turned))
    reader = open_pdf(path)
    assert reader.text(0).split() == ["Upper", "Lower"]
    assert reader.text(0, lower).split() == ["Lower"]
    assert open_pdf(faults["plain"]).text(0).strip() == ""


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
    reader = open_pdf(faults["plain"])
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


def test_faults_are_always_the_same(faults: dict[str, Path], tmp_path: Path) -> None:
    again = make(tmp_path)
    assert [path.read_bytes() for path in again.values()] == [
        path.read_bytes() for path in faults.values()
    ]
