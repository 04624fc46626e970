"""Encoding: three formats, the same bytes every time, and provenance that any parser reads."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from models.settings import Encode
from tasks.encode import NAMESPACE, encode, xmp

FORMATS = ("jpeg", "png", "webp")
HOSTILE = (
    "]]> --> <?x?> & \" ' \x00\x1f\x7f\ud800\udfff\ufffe\uffff\u2028\n\r\t{namespace}{0}%s é漢📰"
)


def picture(color: bool) -> NDArray[np.uint8]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (48, 64, 3) if color else (48, 64), np.uint8)


def read_xmp(packet: bytes) -> dict[str, str]:
    root = ElementTree.fromstring(packet)
    (description,) = root.iter("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}Description")
    start = f"{{{NAMESPACE}}}"
    return {k[len(start) :]: v for k, v in description.attrib.items() if k.startswith(start)}


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=60))
def test_any_text_gives_xml(text: str) -> None:
    found = read_xmp(xmp({"title": text, "pdf": text}))
    assert found["title"] == found["pdf"]
    assert len(found["title"]) == len(text)
    assert all(a in (b, " ") for a, b in zip(found["title"], text, strict=True))


def test_long_text_is_cut_to_what_a_jpeg_takes() -> None:
    names = ("pdf", "title", "page_label", "transforms")
    properties = dict.fromkeys(names, '"&<' * 100_000)
    assert len(xmp(properties)) < 65_000
    assert encode(picture(True), 300, properties, Encode())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("keep_gray", [False, True])
def test_formats_and_channels(name: str, color: bool, keep_gray: bool) -> None:
    pixels = picture(color)
    wanted = Encode.model_validate({"format": name, "keep_gray": keep_gray})
    data = encode(pixels, 299.6, {"title": HOSTILE, "page_index": "7"}, wanted)
    assert data == encode(pixels.copy(), 299.6, {"title": HOSTILE, "page_index": "7"}, wanted)
    with Image.open(BytesIO(data)) as image:
        assert image.format == name.upper() and image.size == (64, 48)
        gray = keep_gray and not color and name != "webp"
        assert image.mode == ("L" if gray else "RGB")
        packet = image.info["xmp"] if name != "png" else image.info["XML:com.adobe.xmp"].encode()
        found = read_xmp(packet)
        assert found["page_index"] == "7" and "é漢📰" in found["title"]
        if name != "webp":
            assert image.info["dpi"][0] == pytest.approx(300, abs=0.5)
        if name == "png":
            back = np.asarray(image.convert("L") if pixels.ndim == 2 else image)
            assert np.array_equal(back, pixels)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dpi", [0.01, 0.5, 65_535.0, 70_000.0, 1e7])
def test_any_resolution_can_be_written(name: str, dpi: float) -> None:
    assert encode(picture(False), dpi, {}, Encode.model_validate({"format": name}))


def test_quality_matters() -> None:
    small, large = (len(encode(picture(True), 72, {}, Encode(quality=q))) for q in (10, 95))
    assert small < large
