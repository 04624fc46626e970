"""Pictures decoded directly are those the renderer shows, and in doubt the renderer is asked."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from models.errors import DamagedPage
from models.records import RelativeBox
from tasks import mupdf
from tasks.read import Reader, open_pdf
from tests.resources.fault_pdf import (
    HIGH,
    PLACE,
    WIDE,
    coded,
    color_mark,
    image,
    jpeg_image,
    page,
    shown,
    stream,
    write,
)
from tests.resources.make_faults import make
from tests.tasks.reading import BUDGET

SIDE_X, SIDE_Y = 968, 1452
"""Of the pictures, in pixels: not a multiple of a block."""
SCALES = (0.9, 0.5, 0.37, 0.21, 0.12)
"""Resolutions as shares of the scan's own, which call for every way of decoding."""
WHOLE: RelativeBox = (0, 0, 1, 1)
PART: RelativeBox = (0.2, 0.1, 0.71, 0.83)


def scene(channels: int) -> NDArray[np.uint8]:
    """A picture with soft and hard edges, fine hatching and no symmetry."""
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 255, (12, 8, channels), dtype=np.uint8)
    pixels = cv2.resize(pixels, (SIDE_X, SIDE_Y), interpolation=cv2.INTER_CUBIC)
    pixels = pixels.reshape(SIDE_Y, SIDE_X, channels)
    for n in range(60):
        x, y = (int(v) for v in rng.integers(0, (SIDE_X, SIDE_Y)))
        ink = [int(v) for v in rng.integers(0, 255, 3)][:channels]
        pixels = cv2.line(pixels, (x, y), (x + 90, y + 7 * n), ink, 1 + n % 5)
    return np.ascontiguousarray(pixels.reshape(SIDE_Y, SIDE_X, channels).squeeze())


def srgb() -> bytes:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return stream(profile, N="3")


def scan(data: bytes, space: str, code: str = "DCTDecode", **keys: str) -> bytes:
    return image(data, code, space, (SIDE_X, SIDE_Y), **keys)


def coded_scan(channels: int, form: str = "JPEG", **options: Any) -> bytes:
    options = ({"quality": 90} if form == "JPEG" else {}) | options
    return coded(scene(channels), form, **options)


def turned(degrees: int) -> bytes:
    objects = page(PLACE, f"/Rotate {degrees}") | {10: scan(coded_scan(3), "/DeviceRGB")}
    return write(objects)


def diagonal() -> bytes:
    """A picture stored with rows for columns."""
    stored = np.ascontiguousarray(scene(3).swapaxes(0, 1))
    picture = jpeg_image(stored, coded(stored, "JPEG", quality=90))
    return shown(picture, f"q 0 {-HIGH} {-WIDE} 0 {WIDE} {HIGH} cm /Im Do Q")


def exif_turned() -> bytes:
    """A JPEG that asks to be turned, which no PDF viewer does."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return coded_scan(3, exif=exif)


GRAY, RGB, ICC = "/DeviceGray", "/DeviceRGB", "[/ICCBased 30 0 R]"
DIRECT = {
    "gray": lambda: shown(scan(coded_scan(1), GRAY)),
    "color": lambda: shown(scan(coded_scan(3), RGB)),
    "full_color": lambda: shown(scan(coded_scan(3, subsampling=0), RGB)),
    "half_color": lambda: shown(scan(coded_scan(3, subsampling=1), RGB)),
    "progressive": lambda: shown(scan(coded_scan(3, progressive=True), RGB)),
    "restarts": lambda: shown(scan(coded_scan(3, restart_marker_rows=2), RGB)),
    "exif": lambda: shown(scan(exif_turned(), RGB)),
    "srgb": lambda: shown(scan(coded_scan(3), ICC), o30=srgb()),
    "turned_90": lambda: turned(90),
    "turned_180": lambda: turned(180),
    "turned_270": lambda: turned(270),
    "mirrored": lambda: shown(
        scan(coded_scan(3), RGB), f"q {-WIDE} 0 0 {HIGH} {WIDE} 0 cm /Im Do Q"
    ),
    "upside_down": lambda: shown(
        scan(coded_scan(1), GRAY), f"q {WIDE} 0 0 {-HIGH} 0 {HIGH} cm /Im Do Q"
    ),
    "diagonal": lambda: diagonal(),
    "hidden_text": lambda: shown(
        scan(coded_scan(3), RGB), f"{PLACE} BT 3 Tr /F 20 Tf 20 20 Td (Text) Tj ET"
    ),
    "jpx_gray": lambda: shown(scan(coded_scan(1, "JPEG2000"), GRAY, "JPXDecode")),
    "jpx_color": lambda: shown(scan(coded_scan(3, "JPEG2000"), RGB, "JPXDecode")),
}
"""Pages which are one picture."""


def adobe_rgb(jfif: bool) -> bytes:
    """A JPEG that stores red, green and blue, and says so to Adobe's readers."""
    data = coded_scan(3, keep_rgb=True)
    assert b"Adobe" in data and b"JFIF" not in data
    # To libjpeg this marker says the contrary, and it believes it first.
    marker = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    return data[:2] + marker + data[2:] if jfif else data


def without_jfif(data: bytes) -> bytes:
    start = data.index(b"\xff\xe0")
    return data[:start] + data[start + 2 + int.from_bytes(data[start + 2 : start + 4], "big") :]


def other_profile() -> bytes:
    """The profile of a screen with a gamma of 1: what it says must be converted."""
    gray = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    return stream(gray, N="3")


def state(keys: str) -> bytes:
    """The picture under a graphics state."""
    objects = page(f"/S gs {PLACE}") | {10: scan(coded_scan(3), RGB)}
    objects[3] = objects[3].replace(
        b"/Resources<<", f"/Resources<</ExtGState<</S<<{keys}>>>>".encode()
    )
    return write(objects)


def layered(shown_first: str) -> bytes:
    """A second picture over the first, in a layer that is on or off."""
    objects = page(f"{PLACE} /OC /Layer BDC q 60 0 0 60 0 0 cm /Im1 Do Q EMC")
    objects[1] = (
        f"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[6 0 R]/D<</{shown_first}[6 0 R]>>>>>>"
    ).encode()
    objects[6] = b"<</Type/OCG/Name(Layer)>>"
    return write(objects | {10: scan(coded_scan(3), RGB), 11: jpeg_image(color_mark())})


DIRECT["layer_off"] = lambda: layered("OFF")

PLAIN = scan(coded_scan(3), RGB)
RENDERED = {
    "decode": lambda: shown(scan(coded_scan(1), GRAY, Decode="[1 0]")),
    "soft_mask": lambda: shown(
        scan(coded_scan(3), RGB, SMask="11 0 R"), o11=scan(coded_scan(1), GRAY)
    ),
    "color_key": lambda: shown(scan(coded_scan(1), GRAY, Mask="[0 20]")),
    "text_over_it": lambda: shown(PLAIN, f"{PLACE} BT /F 40 Tf 20 90 Td (Text) Tj ET"),
    "line_over_it": lambda: shown(PLAIN, f"{PLACE} 9 w 0 0 m 160 240 l S"),
    "box_over_it": lambda: shown(PLAIN, f"{PLACE} 1 g 20 20 80 80 re f"),
    "shade_over_it": lambda: shown(
        PLAIN, f"{PLACE} q 60 0 0 60 0 0 cm /Im1 Do Q", o11=jpeg_image(color_mark())
    ),
    "clipped": lambda: shown(PLAIN, f"q 20 20 80 80 re W n {PLACE} Q"),
    "half_transparent": lambda: state("/ca 0.5"),
    "multiplied": lambda: state("/BM/Multiply"),
    "smaller_than_the_page": lambda: shown(PLAIN, "q 150 0 0 230 5 5 cm /Im Do Q"),
    "larger_than_the_page": lambda: shown(PLAIN, "q 170 0 0 250 -5 -5 cm /Im Do Q"),
    "askew": lambda: shown(PLAIN, "q 159 4 -4 239 2 0 cm /Im Do Q"),
    "crop_box": lambda: write(page(PLACE, "/CropBox[20 30 140 200]") | {10: PLAIN}),
    "layer_on": lambda: layered("ON"),
    "profile": lambda: shown(scan(coded_scan(3), ICC), o30=other_profile()),
    "adobe_rgb": lambda: shown(scan(adobe_rgb(jfif=False), RGB)),
    "adobe_rgb_and_jfif": lambda: shown(scan(adobe_rgb(jfif=True), RGB)),
    "color_transform": lambda: shown(
        scan(without_jfif(coded_scan(3)), RGB, DecodeParms="<</ColorTransform 0>>")
    ),
    "gray_said_to_be_color": lambda: shown(scan(coded_scan(1), RGB)),
    "another_size": lambda: shown(image(coded_scan(1), "DCTDecode", GRAY, (SIDE_X, SIDE_Y - 9))),
    "cut": lambda: shown(scan(coded_scan(3)[:-3000], RGB)),
}
"""Pages which look as if they were one picture, and are not, or not as stored."""
FAULTS = (
    "cmyk_jpeg", "ycck_jpeg", "cmyk_jpeg_without_marker", "gray_jpeg_decode", "soft_mask",
    "image_mask", "strips", "tiles", "layers", "form", "inline", "indexed", "color_key", "fax",
    "jpx_16_bit", "jpx_alpha", "cropbox",
)  # fmt: skip


def opened(folder: Path, data: bytes) -> Reader:
    path = folder / "scan.pdf"
    path.write_bytes(data)
    return open_pdf(path)


def both_ways(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, dpi: float, gray: bool, box: RelativeBox
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """A part decoded directly, and the same rendered."""
    with monkeypatch.context() as patch:
        patch.setattr(mupdf, "_draw", None)
        direct = reader.render(0, dpi, gray=gray, box=box, max_pixels=10 * BUDGET).pixels
    with monkeypatch.context() as patch:
        patch.setattr(mupdf, "_decode", lambda *_: None)
        rendered = reader.render(0, dpi, gray=gray, box=box, max_pixels=10 * BUDGET).pixels
    assert direct.shape == rendered.shape
    assert direct.flags.c_contiguous
    return direct, rendered


def cropped(whole: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The part of a page as rendered whole."""
    high, wide = whole.shape[:2]
    rows = slice(round(PART[1] * high), round(PART[3] * high))
    return whole[rows, round(PART[0] * wide) : round(PART[2] * wide)]


def difference(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """The largest difference in grey levels once details of a pixel or two are evened out.

    Filters for making pictures smaller differ at hard edges, and decoders where colours meet.
    """
    blurred = [cv2.GaussianBlur(pixels, (0, 0), 2).astype(int) for pixels in (one, other)]
    return float(np.abs(blurred[0] - blurred[1]).max())


@pytest.mark.parametrize("name", DIRECT)
def test_decoded_directly_it_is_the_rendered_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    reader = opened(tmp_path, DIRECT[name]())
    native = reader.page(0).native_dpi
    assert native is not None
    # Where colours are stored at half the resolution, decoders interpolate them in their own ways.
    # The wavelets of JPEG 2000 leave more detail in a small picture than evening out does.
    largest, mean = (20, 6) if name.startswith("jpx") else (16, 3)
    for gray in (True, False):
        for scale in SCALES:
            # JPEG 2000 gains by being decoded at a half or less, and is rendered otherwise.
            if scale > 0.5 and name.startswith("jpx"):
                continue
            both = both_ways(reader, monkeypatch, scale * native, gray, WHOLE)
            assert difference(*both) < largest
            assert np.abs(both[0].astype(int) - both[1]).mean() < mean
            # A part is a crop of the whole, which at such scales is not true of the renderer.
            part = both_ways(reader, monkeypatch, scale * native, gray, PART)[0]
            assert np.array_equal(part, cropped(both[0]))


@pytest.mark.parametrize("name", [name for name in DIRECT if not name.startswith("jpx")])
def test_at_its_own_resolution_it_is_the_same_pixel_by_pixel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    reader = opened(tmp_path, DIRECT[name]())
    facts = reader.page(0)
    assert facts.native_dpi is not None
    whole = both_ways(reader, monkeypatch, facts.native_dpi, not facts.color, WHOLE)
    assert {SIDE_X, SIDE_Y} == set(whole[0].shape[:2])
    exact = not facts.color or name == "full_color"
    assert np.abs(whole[0].astype(int) - whole[1]).mean() < (0.1 if exact else 1)
    part = both_ways(reader, monkeypatch, facts.native_dpi, not facts.color, PART)
    assert np.array_equal(part[0], cropped(whole[0]))
    assert np.array_equal(part[1], cropped(whole[1]))


@pytest.mark.parametrize("name", RENDERED)
def test_in_doubt_it_is_rendered(tmp_path: Path, name: str) -> None:
    reader = opened(tmp_path, RENDERED[name]())
    assert goes_by_the_renderer(reader)


@pytest.mark.parametrize("name", FAULTS)
def test_pages_of_other_makes_are_rendered(tmp_path: Path, name: str) -> None:
    reader = open_pdf(make(tmp_path)[name])
    assert goes_by_the_renderer(reader)


def goes_by_the_renderer(reader: Reader) -> bool:
    drawn = []
    true_draw = mupdf._draw

    def draw(*given: Any, **named: Any) -> NDArray[np.uint8]:
        drawn.append(1)
        return true_draw(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mupdf, "_draw", draw)
        for scale in (1.0, 0.4):
            native = reader.page(0).native_dpi or 72
            with suppress(DamagedPage):
                reader.render(0, scale * native, gray=True, max_pixels=10 * BUDGET)
    return len(drawn) >= 2


def test_larger_than_the_scan_it_is_rendered(tmp_path: Path) -> None:
    reader = opened(tmp_path, DIRECT["gray"]())
    native = reader.page(0).native_dpi
    assert native is not None
    raster = reader.render(0, 1.5 * native, gray=True, max_pixels=10 * BUDGET)
    assert raster.pixels.shape[1] == round(1.5 * SIDE_X)


def test_damage_in_the_middle_is_left_to_the_renderer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(coded_scan(3))
    middle = len(data) // 2
    data[middle : middle + 500] = b""
    reader = opened(tmp_path, shown(scan(bytes(data), RGB)))
    assert goes_by_the_renderer(reader)
    assert capfd.readouterr().err == ""


def test_parts_of_a_page_share_one_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasks import mupdf_direct

    calls: list[int] = []
    decode = mupdf_direct._decode_jpeg
    monkeypatch.setattr(
        mupdf_direct, "_decode_jpeg", lambda *given: calls.append(1) or decode(*given)
    )
    reader = opened(tmp_path, DIRECT["color"]())
    native = reader.page(0).native_dpi
    assert native is not None
    boxes: tuple[RelativeBox, ...] = (PART, WHOLE, (0, 0.2, 1, 0.3), (0, 0, 0.3, 0.3))
    parts = [
        reader.render(0, native, gray=False, box=box, max_pixels=10 * BUDGET).pixels
        for box in (*boxes, *boxes)
    ]
    assert len(calls) == 1
    # What is done to one does not show in another.
    for part in parts[:4]:
        before = [other.copy() for other in parts[4:]]
        part[:] = 0
        assert all(map(np.array_equal, before, parts[4:]))
    again = reader.render(0, native, gray=False, box=PART, max_pixels=10 * BUDGET).pixels
    assert np.array_equal(again, parts[4])


def test_the_picture_is_the_scene() -> None:
    """The test's own picture is no easy one: it has fine detail."""
    pixels = np.asarray(Image.open(io.BytesIO(coded_scan(1))))
    assert cv2.Laplacian(pixels, cv2.CV_32F).std() > 10
