"""What the faults are made of: the mark, and PDFs written by hand as no library would write them.

The mark has four quadrants that are all different, so that a test can tell an upright, positive,
complete picture in the right colours from any other::

    dark | red            (grey: dark | middle;  bilevel: black | white)
    -----+------                  -----+-------           ------+-------
    white| green                  white| light            white | striped
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WIDE, HIGH = 160, 240
"""The mark's size in pixels; pages are as large in points unless the fault is their size."""
DARK, RED, WHITE, GREEN = (20, 20, 20), (220, 40, 40), (250, 250, 250), (40, 200, 40)
MIDDLE, LIGHT = 100, 180
PLACE = f"q {WIDE} 0 0 {HIGH} 0 0 cm /Im Do Q"
"""Content that fills the page with the picture /Im."""

Objects = dict[int, bytes]
Pixels = NDArray[np.uint8]
Maker = Callable[[], bytes]


class Faults(dict[str, Maker]):
    """Makers of files by the fault's name."""

    def add(self, maker: Maker) -> Maker:
        """Registers a maker under its own name (a decorator)."""
        self[maker.__name__] = maker
        return maker


Level = int | tuple[int, int, int]


def quadrants(top_left: Level, top_right: Level, low_left: Level, low_right: Level) -> Pixels:
    pixels = np.zeros((HIGH, WIDE, np.size(top_left)), np.uint8)
    pixels[: HIGH // 2, : WIDE // 2] = top_left
    pixels[: HIGH // 2, WIDE // 2 :] = top_right
    pixels[HIGH // 2 :, : WIDE // 2] = low_left
    pixels[HIGH // 2 :, WIDE // 2 :] = low_right
    return pixels.squeeze()


def color_mark() -> Pixels:
    """(240, 160, 3) RGB."""
    return quadrants(DARK, RED, WHITE, GREEN)


def gray_mark() -> Pixels:
    """(240, 160)."""
    return quadrants(DARK[0], MIDDLE, WHITE[0], LIGHT)


def bilevel_mark() -> Pixels:
    """(240, 160), 0 or 255."""
    pixels = quadrants(0, 255, 255, 255)
    pixels[HIGH // 2 :: 4, WIDE // 2 :] = 0
    pixels[HIGH // 2 + 1 :: 4, WIDE // 2 :] = 0
    return pixels


def stream(data: bytes, **keys: str) -> bytes:
    head = "".join(f"/{key} {value}" for key, value in keys.items())
    return f"<<{head}/Length {len(data)}>>\nstream\n".encode() + data + b"\nendstream"


def image(data: bytes, code: str, space: str, size: tuple[int, int], **keys: str) -> bytes:
    keys = {"Subtype": "/Image", "Width": str(size[0]), "Height": str(size[1])} | keys
    keys = {"Type": "/XObject", "Filter": f"/{code}", "BitsPerComponent": "8"} | keys
    return stream(data, **keys, **({"ColorSpace": space} if space else {}))


def flate(pixels: Pixels, space: str, **keys: str) -> bytes:
    size = (pixels.shape[1], pixels.shape[0])
    return image(zlib.compress(pixels.tobytes()), "FlateDecode", space, size, **keys)


def bits(pixels: Pixels, space: str = "/DeviceGray", **keys: str) -> bytes:
    """A 1-bit picture; white is 1."""
    size = (pixels.shape[1], pixels.shape[0])
    data = zlib.compress(np.packbits(pixels > 127, axis=1).tobytes())
    return image(data, "FlateDecode", space, size, **({"BitsPerComponent": "1"} | keys))


def coded(pixels: NDArray[Any], form: str, mode: str | None = None, **options: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels, mode).save(file, form, **options)
    return file.getvalue()


def jpeg(pixels: Pixels) -> bytes:
    return coded(pixels, "JPEG", quality=95)


def jpeg_image(pixels: Pixels, data: bytes | None = None, **keys: str) -> bytes:
    space = "/DeviceGray" if pixels.ndim == 2 else "/DeviceRGB"
    data = jpeg(pixels) if data is None else data
    return image(data, "DCTDecode", space, (pixels.shape[1], pixels.shape[0]), **keys)


def page(content: str, keys: str = "", box: str = f"0 0 {WIDE} {HIGH}") -> Objects:
    """A catalog, a tree with one page (object 3) whose resources know objects 10 to 19."""
    pictures = "".join(f"/Im{n or ''} {10 + n} 0 R" for n in range(10))
    return {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        3: (
            f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R{keys}"
            f"/Resources<</XObject<<{pictures}>>/Font<</F 5 0 R>>"
            "/Properties<</Layer 6 0 R>>>>>>"
        ).encode(),
        4: stream(content.encode()),
        5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }


def write(objects: Objects, trailer: str = "") -> bytes:
    file = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    table = [b"0000000000 65535 f \n"]
    for number in range(1, max(objects) + 1):
        if number in objects:
            table.append(b"%010d 00000 n \n" % len(file))
            file += b"%d 0 obj\n" % number + objects[number] + b"\nendobj\n"
        else:
            table.append(b"0000000000 00000 f \n")
    start = len(file)
    file += b"xref\n0 %d\n" % len(table) + b"".join(table)
    file += f"trailer\n<</Size {len(table)}/Root 1 0 R{trailer}>>\n".encode()
    return bytes(file + b"startxref\n%d\n%%%%EOF\n" % start)


def shown(picture: bytes, content: str = PLACE, **others: bytes) -> bytes:
    """One page that shows a picture."""
    extra = {int(name.removeprefix("o")): value for name, value in others.items()}
    return write(page(content) | {10: picture} | extra)


def sized(box: str, keys: str = "", content: str = PLACE) -> bytes:
    """One page of a given MediaBox that shows the mark."""
    return write(page(content, keys, box) | {10: jpeg_image(color_mark())})


def three() -> Objects:
    """Three pages, told apart by their heights of 241, 242 and 243 points."""
    objects = page(PLACE) | {10: jpeg_image(color_mark())}
    sheet = objects.pop(3)
    objects[2] = b"<</Type/Pages/Count 3/Kids[21 0 R 22 0 R 23 0 R]>>"
    for number in (1, 2, 3):
        objects[20 + number] = sheet.replace(b"160 240", b"160 24%d" % number)
    return objects
