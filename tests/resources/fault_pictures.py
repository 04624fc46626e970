"""Pictures that are easily shown wrong, and pictures that are damaged."""

from __future__ import annotations

import io
import zlib

import numpy as np
from PIL import Image

from tests.resources.fault_pdf import (
    DARK,
    GREEN,
    HIGH,
    LIGHT,
    MIDDLE,
    PLACE,
    RED,
    WHITE,
    WIDE,
    Faults,
    Pixels,
    bilevel_mark,
    bits,
    coded,
    color_mark,
    flate,
    gray_mark,
    image,
    jpeg,
    jpeg_image,
    page,
    quadrants,
    shown,
    stream,
    write,
)

FAULTS = Faults()


@FAULTS.add
def gray_jpeg() -> bytes:
    return shown(jpeg_image(gray_mark()))


@FAULTS.add
def gray_jpeg_decode() -> bytes:
    """A negative with an inverted Decode, which shows as a positive."""
    return shown(jpeg_image(255 - gray_mark(), Decode="[1 0]"))


def _inks() -> Pixels:
    """The mark in C, M, Y, K with black ink only where it is dark."""
    rgb = 255 - color_mark()
    black = rgb.min(axis=2, keepdims=True)
    return np.concatenate([rgb - black, black], axis=2)


def _cmyk(pixels: Pixels, transform: int | None, decode: str) -> bytes:
    """A four-channel JPEG; the Adobe marker says ``transform``, or is missing."""
    # Pillow writes the marker with transform 0, and the pixels inverted.
    data = coded(255 - pixels, "JPEG", "CMYK", quality=95)
    at = data.index(b"\xff\xee")
    length = 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    if transform is None:
        data = data[:at] + data[at + length :]
    else:
        data = data[: at + length - 1] + bytes([transform]) + data[at + length :]
    if transform:
        # Pillow numbers the channels C, M, Y, K, and decoders take that at its word.
        for n, letter in enumerate(b"CMYK"):
            data = data.replace(bytes([letter, 0x11]), bytes([n + 1, 0x11]), 1)
            scan = data.index(b"\xff\xda") + 5 + 2 * n
            data = data[:scan] + bytes([n + 1]) + data[scan + 1 :]
    return shown(image(data, "DCTDecode", "/DeviceCMYK", (WIDE, HIGH), Decode=decode))


@FAULTS.add
def cmyk_jpeg() -> bytes:
    """As Photoshop writes it: inverted, with an Adobe marker and a Decode that says so."""
    return _cmyk(255 - _inks(), 0, "[1 0 1 0 1 0 1 0]")


@FAULTS.add
def cmyk_jpeg_without_marker() -> bytes:
    return _cmyk(_inks(), None, "[0 1 0 1 0 1 0 1]")


@FAULTS.add
def ycck_jpeg() -> bytes:
    # YCC stands for the complement of C, M and Y, which here are complements themselves.
    inks = _inks()
    ycc = np.asarray(Image.fromarray(inks[..., :3]).convert("YCbCr"))
    return _cmyk(np.concatenate([ycc, 255 - inks[..., 3:]], axis=2), 2, "[1 0 1 0 1 0 1 0]")


@FAULTS.add
def soft_mask() -> bytes:
    """All ink is in the soft mask; the picture itself is plain black."""
    mask = flate(255 - gray_mark(), "/DeviceGray")
    black = np.zeros((HIGH, WIDE), np.uint8)
    return shown(flate(black, "/DeviceGray", SMask="11 0 R"), o11=mask)


@FAULTS.add
def image_mask() -> bytes:
    """A stencil: where its bit is 0, black is painted."""
    return shown(bits(bilevel_mark(), "", ImageMask="true"), f"0 g {PLACE}")


@FAULTS.add
def image_mask_decode() -> bytes:
    """A stencil with an inverted Decode: black is painted where its bit is 1."""
    return shown(bits(255 - bilevel_mark(), "", ImageMask="true", Decode="[1 0]"), f"0 g {PLACE}")


@FAULTS.add
def fax() -> bytes:
    """CCITT group 4 without BlackIs1."""
    file = io.BytesIO()
    Image.fromarray(bilevel_mark()).convert("1").save(
        file, "TIFF", compression="group4", strip_size=1 << 20
    )
    tags = Image.open(file).tag_v2  # type: ignore[attr-defined]
    data = file.getvalue()[tags[273][0] :][: tags[279][0]]
    # Pillow writes white as 1, which group 4 codes as black.
    flag = str(tags[262] != 0).lower()
    parms = f"<</K -1/Columns {WIDE}/Rows {HIGH}/BlackIs1 {flag}>>"
    keys = {"BitsPerComponent": "1", "DecodeParms": parms}
    return shown(image(data, "CCITTFaxDecode", "/DeviceGray", (WIDE, HIGH), **keys))


@FAULTS.add
def indexed() -> bytes:
    palette = bytes(DARK + RED + WHITE + GREEN).hex()
    space = f"[/Indexed/DeviceRGB 3<{palette}>]"
    return shown(flate(quadrants(0, 1, 2, 3), space))


@FAULTS.add
def indexed_gray() -> bytes:
    """A palette in RGB, of greys only."""
    values = (DARK[0], MIDDLE, WHITE[0], LIGHT)
    palette = bytes(v for v in values for _ in range(3)).hex()
    return shown(flate(quadrants(0, 1, 2, 3), f"[/Indexed/DeviceRGB 3<{palette}>]"))


@FAULTS.add
def color_key() -> bytes:
    """A background of the colour that is masked out: the paper shows through as white."""
    mark = color_mark()
    mark[HIGH // 2 :, : WIDE // 2] = (0, 0, 255)
    return shown(flate(mark, "/DeviceRGB", Mask="[0 0 0 0 255 255]"))


@FAULTS.add
def jpx() -> bytes:
    data = coded(color_mark(), "JPEG2000")
    return shown(image(data, "JPXDecode", "", (WIDE, HIGH)))


@FAULTS.add
def jpx_16_bit() -> bytes:
    deep = gray_mark().astype(np.uint16) * 257
    data = coded(deep, "JPEG2000")
    return shown(image(data, "JPXDecode", "/DeviceGray", (WIDE, HIGH), BitsPerComponent="16"))


@FAULTS.add
def jpx_alpha() -> bytes:
    """A picture with a fourth channel, which SMaskInData says is its opacity."""
    opaque = np.full((HIGH, WIDE, 1), 255, np.uint8)
    data = coded(np.concatenate([color_mark(), opaque], axis=2), "JPEG2000")
    return shown(image(data, "JPXDecode", "", (WIDE, HIGH), SMaskInData="1"))


@FAULTS.add
def inline() -> bytes:
    small = color_mark()[::20, ::20]
    head = f"BI /W {small.shape[1]} /H {small.shape[0]} /BPC 8 /CS /RGB /F /AHx ID "
    return shown(b"null", PLACE.replace("/Im Do", f"{head}{small.tobytes().hex()}> EI"))


@FAULTS.add
def form() -> bytes:
    """A picture within a form within a form."""
    area, use = f"[0 0 {WIDE} {HIGH}]", "<</XObject<</Im {} 0 R>>>>"
    keys = {"Type": "/XObject", "Subtype": "/Form", "BBox": area}
    outer = stream(b"/Im Do", **keys, Resources=use.format(11))
    inner = stream(PLACE.encode(), **keys, Resources=use.format(12))
    return shown(outer, "/Im Do", o11=inner, o12=jpeg_image(color_mark()))


@FAULTS.add
def mirrored() -> bytes:
    """Stored as in a mirror, and mirrored again by the matrix."""
    stored = np.ascontiguousarray(color_mark()[:, ::-1])
    return shown(jpeg_image(stored), f"q {-WIDE} 0 0 {HIGH} {WIDE} 0 cm /Im Do Q")


@FAULTS.add
def upside_down() -> bytes:
    stored = np.ascontiguousarray(color_mark()[::-1])
    return shown(jpeg_image(stored), f"q {WIDE} 0 0 {-HIGH} 0 {HIGH} cm /Im Do Q")


@FAULTS.add
def strips() -> bytes:
    """Ten strips of 24 rows each."""
    rows = HIGH // 10
    content, others = "", {}
    for n in range(10):
        strip = np.ascontiguousarray(color_mark()[n * rows : (n + 1) * rows])
        others[f"o{10 + n}"] = jpeg_image(strip)
        content += f"q {WIDE} 0 0 {rows} 0 {HIGH - (n + 1) * rows} cm /Im{n or ''} Do Q "
    return shown(others.pop("o10"), content, **others)


@FAULTS.add
def tiles() -> bytes:
    """Nine tiles, three by three, none of them in line with the quadrants."""
    content, others = "", {}
    across, down = [0, 53, 107, WIDE], [0, 80, 160, HIGH]
    for n in range(9):
        x0, x1 = across[n % 3], across[n % 3 + 1]
        y0, y1 = down[n // 3], down[n // 3 + 1]
        tile = np.ascontiguousarray(color_mark()[y0:y1, x0:x1])
        others[f"o{10 + n}"] = flate(tile, "/DeviceRGB")
        content += f"q {x1 - x0} 0 0 {y1 - y0} {x0} {HIGH - y1} cm /Im{n or ''} Do Q "
    return shown(others.pop("o10"), content, **others)


@FAULTS.add
def layers() -> bytes:
    """Three layers: a coarse background, a coarse ink, and a fine mask that places the ink."""
    back = color_mark()
    back[: HIGH // 2, : WIDE // 2] = WHITE
    ink = np.full((HIGH // 8, WIDE // 8, 3), DARK, np.uint8)
    mask = np.repeat(np.repeat(quadrants(255, 0, 0, 0), 2, axis=0), 2, axis=1)
    return shown(
        jpeg_image(np.ascontiguousarray(back[::4, ::4])),
        f"{PLACE} {PLACE.replace('/Im', '/Im1')}",
        o11=jpeg_image(ink, SMask="12 0 R"),
        o12=bits(mask),
    )


def _scan() -> Pixels:
    """(480, 320) of noise, which a JPEG spends bytes on evenly."""
    return np.random.default_rng(1).integers(0, 256, (480, 320), dtype=np.uint8)


@FAULTS.add
def corrupt_picture() -> bytes:
    """A JPEG without its header."""
    data = jpeg(color_mark())
    return shown(jpeg_image(color_mark(), bytes(300) + data[300:]))


@FAULTS.add
def corrupt_jpx() -> bytes:
    data = coded(color_mark(), "JPEG2000")
    return shown(image(bytes(60) + data[60:], "JPXDecode", "", (WIDE, HIGH)))


@FAULTS.add
def cut_jpx() -> bytes:
    data = coded(_scan(), "JPEG2000")
    return shown(image(data[: len(data) // 2], "JPXDecode", "/DeviceGray", (320, 480)))


@FAULTS.add
def cut_jpeg_most() -> bytes:
    """A JPEG of which a fifth is left."""
    data = jpeg(_scan())
    return shown(jpeg_image(_scan(), data[: len(data) // 5]))


@FAULTS.add
def cut_jpeg_little() -> bytes:
    """A JPEG of which a fifth is missing."""
    data = jpeg(_scan())
    return shown(jpeg_image(_scan(), data[: len(data) * 4 // 5]))


@FAULTS.add
def silent_jpeg() -> bytes:
    """A JPEG that stops in the middle with an end marker: no decoder complains."""
    data = jpeg(_scan())
    return shown(jpeg_image(_scan(), data[: len(data) // 3] + b"\xff\xd9"))


@FAULTS.add
def cut_flate() -> bytes:
    data = zlib.compress(_scan().tobytes())
    return shown(image(data[: len(data) // 5], "FlateDecode", "/DeviceGray", (320, 480)))


@FAULTS.add
def corrupt_contents() -> bytes:
    objects = page(PLACE) | {10: jpeg_image(color_mark())}
    return write(objects | {4: stream(b"\x00broken", Filter="/FlateDecode")})


@FAULTS.add
def garbage_in_contents() -> bytes:
    """The mark, and then words that are no operators."""
    return shown(jpeg_image(color_mark()), f"{PLACE} is this a page")


@FAULTS.add
def missing_contents() -> bytes:
    """The content stream is not in the file, as happens to the last page before a cut."""
    objects = page(PLACE) | {10: jpeg_image(color_mark())}
    del objects[4]
    return write(objects)


@FAULTS.add
def missing_picture() -> bytes:
    """The picture is not in the file."""
    return write(page(PLACE))


@FAULTS.add
def one_of_two_corrupt() -> bytes:
    """A small broken picture beside the mark."""
    content = f"{PLACE} q 30 0 0 30 5 5 cm /Im1 Do Q"
    return shown(
        jpeg_image(color_mark()), content, o11=jpeg_image(gray_mark(), b"\xff\xd8\xff broken")
    )
