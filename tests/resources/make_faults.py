"""One tiny PDF for each fault, always the same.

    python -m tests.resources.make_faults FOLDER

Most show *the mark*, four quadrants that are all different, so that a test can tell an upright,
positive, complete picture in the right colours from any other::

    dark | red            (grey: dark | middle;  bilevel: black | white)
    -----+------                  -----+-------           ------+-------
    white| green                  white| light            white | striped
"""

from __future__ import annotations

import hashlib
import io
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WIDE, HIGH = 160, 240
"""The mark's size in pixels; pages are as large in points unless the fault is their size."""
DARK, RED, WHITE, GREEN = (20, 20, 20), (220, 40, 40), (250, 250, 250), (40, 200, 40)
MIDDLE, LIGHT = 100, 180
PASSWORD = "secret"
PLACE = f"q {WIDE} 0 0 {HIGH} 0 0 cm /Im Do Q"
"""Content that fills the page with the picture /Im."""

Objects = dict[int, bytes]
Pixels = NDArray[np.uint8]

_FAULTS: dict[str, Callable[[], bytes]] = {}


def make(folder: Path) -> dict[str, Path]:
    """Writes all faults into a folder, which is made if need be.

    Returns:
        The files by the fault's name, which is also the file's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.pdf" for name in _FAULTS}
    for name, file in files.items():
        file.write_bytes(_FAULTS[name]())
    return files


def _fault(make_one: Callable[[], bytes]) -> Callable[[], bytes]:
    _FAULTS[make_one.__name__.strip("_")] = make_one
    return make_one


# The mark -----------------------------------------------------------------------------------


def _quadrants(top_left: object, top_right: object, low_left: object, low_right: object) -> Pixels:
    pixels = np.zeros((HIGH, WIDE, np.size(top_left)), np.uint8)
    pixels[: HIGH // 2, : WIDE // 2] = top_left
    pixels[: HIGH // 2, WIDE // 2 :] = top_right
    pixels[HIGH // 2 :, : WIDE // 2] = low_left
    pixels[HIGH // 2 :, WIDE // 2 :] = low_right
    return pixels.squeeze()


def color_mark() -> Pixels:
    """(240, 160, 3) RGB."""
    return _quadrants(DARK, RED, WHITE, GREEN)


def gray_mark() -> Pixels:
    """(240, 160)."""
    return _quadrants(DARK[0], MIDDLE, WHITE[0], LIGHT)


def bilevel_mark() -> Pixels:
    """(240, 160), 0 or 255."""
    pixels = _quadrants(0, 255, 255, 255)
    pixels[HIGH // 2 :: 4, WIDE // 2 :] = 0
    pixels[HIGH // 2 + 1 :: 4, WIDE // 2 :] = 0
    return pixels


# Writing PDFs by hand, as no library would write most of these --------------------------------


def _stream(data: bytes, **keys: str) -> bytes:
    head = "".join(f"/{key} {value}" for key, value in keys.items())
    return f"<<{head}/Length {len(data)}>>\nstream\n".encode() + data + b"\nendstream"


def _image(data: bytes, code: str, space: str, size: tuple[int, int], **keys: str) -> bytes:
    keys = {"Subtype": "/Image", "Width": str(size[0]), "Height": str(size[1])} | keys
    keys = {"Type": "/XObject", "Filter": f"/{code}", "BitsPerComponent": "8"} | keys
    return _stream(data, **keys, **({"ColorSpace": space} if space else {}))


def _flate(pixels: Pixels, space: str, **keys: str) -> bytes:
    size = (pixels.shape[1], pixels.shape[0])
    return _image(zlib.compress(pixels.tobytes()), "FlateDecode", space, size, **keys)


def _bits(pixels: Pixels, space: str = "/DeviceGray", **keys: str) -> bytes:
    """A 1-bit picture; white is 1."""
    size = (pixels.shape[1], pixels.shape[0])
    data = zlib.compress(np.packbits(pixels > 127, axis=1).tobytes())
    return _image(data, "FlateDecode", space, size, **({"BitsPerComponent": "1"} | keys))


def _coded(pixels: Pixels, form: str, mode: str | None = None, **options: object) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels, mode).save(file, form, **options)
    return file.getvalue()


def _jpeg(pixels: Pixels) -> bytes:
    return _coded(pixels, "JPEG", quality=95)


def _jpeg_image(pixels: Pixels, data: bytes | None = None, **keys: str) -> bytes:
    space = "/DeviceGray" if pixels.ndim == 2 else "/DeviceRGB"
    data = _jpeg(pixels) if data is None else data
    return _image(data, "DCTDecode", space, (pixels.shape[1], pixels.shape[0]), **keys)


def _page(content: str, keys: str = "", box: str = f"0 0 {WIDE} {HIGH}") -> Objects:
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
        4: _stream(content.encode()),
        5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }


def _write(objects: Objects, trailer: str = "") -> bytes:
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


def _shown(picture: bytes, content: str = PLACE, **others: bytes) -> bytes:
    """One page that shows a picture."""
    extra = {int(name.removeprefix("o")): value for name, value in others.items()}
    return _write(_page(content) | {10: picture} | extra)


def _sized(box: str, keys: str = "", content: str = PLACE) -> bytes:
    """One page of a given MediaBox that shows the mark."""
    return _write(_page(content, keys, box) | {10: _jpeg_image(color_mark())})


def _three() -> Objects:
    """Three pages, told apart by their heights of 241, 242 and 243 points."""
    objects = _page(PLACE) | {10: _jpeg_image(color_mark())}
    page = objects.pop(3)
    objects[2] = b"<</Type/Pages/Count 3/Kids[21 0 R 22 0 R 23 0 R]>>"
    for number in (1, 2, 3):
        objects[20 + number] = page.replace(b"160 240", b"160 24%d" % number)
    return objects


def _rc4(key: bytes, data: bytes) -> bytes:
    box, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def _locked(user: str) -> bytes:
    """The mark under the standard handler's revision 2 (RC4, 40 bits), which needs no chance."""
    pad = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
    ident = bytes(16)
    owner = _rc4(hashlib.md5((b"owner" + pad)[:32]).digest()[:5], (user.encode() + pad)[:32])
    rights = (-64 & 0xFFFFFFFF).to_bytes(4, "little")
    key = hashlib.md5((user.encode() + pad)[:32] + owner + rights + ident).digest()[:5]

    def lock(number: int, data: bytes) -> bytes:
        salted = hashlib.md5(key + number.to_bytes(3, "little") + bytes(2)).digest()[:10]
        return _rc4(salted, data)

    mark = color_mark()
    objects = _page(PLACE)
    objects[4] = _stream(lock(4, PLACE.encode()))
    objects[10] = _jpeg_image(mark, lock(10, _jpeg(mark)))
    objects[30] = (
        f"<</Filter/Standard/V 1/R 2/P -64/O<{owner.hex()}>/U<{_rc4(key, pad).hex()}>>>".encode()
    )
    return _write(objects, f"/Encrypt 30 0 R/ID[<{ident.hex()}><{ident.hex()}>]")


# Files ----------------------------------------------------------------------------------------


@_fault
def _empty() -> bytes:
    return b""


@_fault
def _html() -> bytes:
    return b"\n<!DOCTYPE html>\n<html><body>404 Not Found</body></html>"


@_fault
def _zip() -> bytes:
    return b"PK\x05\x06" + bytes(18)


@_fault
def _jpeg_as_pdf() -> bytes:
    return _jpeg(color_mark())


@_fault
def _zero_bytes() -> bytes:
    return bytes(5000)


@_fault
def _noise() -> bytes:
    return bytes(range(100, 200)) * 20


@_fault
def _truncated_nothing_left() -> bytes:
    return _shown(_jpeg_image(color_mark()))[:40]


@_fault
def _truncated() -> bytes:
    """Cut within the last of three pages, whose tree comes first."""
    file = _write(_three())
    return file[: file.index(b"23 0 obj") + 20]


@_fault
def _truncated_without_tree() -> bytes:
    """Cut before the page tree, which comes last: two of the pages are there, on no tree."""
    objects = _three()
    objects[31], objects[32] = objects.pop(1), objects.pop(2)
    file = _write(objects)
    return file[: file.index(b"23 0 obj") + 20]


@_fault
def _junk_prefix() -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n" + _write(_three())


@_fault
def _broken_startxref() -> bytes:
    return _write(_three()).replace(b"startxref\n", b"startxref\n9")


@_fault
def _broken_xref() -> bytes:
    return _write(_three()).replace(b"\nxref\n", b"\nfrex\n")


@_fault
def _no_eof() -> bytes:
    return _write(_three()).removesuffix(b"%%EOF\n")


@_fault
def _zero_pages() -> bytes:
    return _write(_page("") | {2: b"<</Type/Pages/Count 0/Kids[]>>"})


@_fault
def _circular_tree() -> bytes:
    return _write(_three() | {2: b"<</Type/Pages/Count 3/Kids[21 0 R 2 0 R 22 0 R 23 0 R]>>"})


@_fault
def _count_too_high() -> bytes:
    return _write(_three() | {2: b"<</Type/Pages/Count 99999/Kids[21 0 R 22 0 R 23 0 R]>>"})


@_fault
def _count_too_low() -> bytes:
    return _write(_three() | {2: b"<</Type/Pages/Count 1/Kids[21 0 R 22 0 R 23 0 R]>>"})


@_fault
def _missing_page() -> bytes:
    objects = _three()
    del objects[22]
    return _write(objects)


@_fault
def _user_password() -> bytes:
    return _locked(PASSWORD)


@_fault
def _owner_only() -> bytes:
    return _locked("")


# Pages ----------------------------------------------------------------------------------------


@_fault
def _plain() -> bytes:
    return _sized(f"0 0 {WIDE} {HIGH}")


@_fault
def _labels() -> bytes:
    objects = _three()
    rules = b"/PageLabels<</Nums[0<</S/r>>2<</S/D/P(pl. )/St 7>>]>>"
    return _write(objects | {1: b"<</Type/Catalog/Pages 2 0 R" + rules + b">>"})


@_fault
def _cropbox() -> bytes:
    """The mark within a black margin of 30 points, which the CropBox takes off."""
    inner = f"0 0 0 rg 0 0 220 300 re f q {WIDE} 0 0 {HIGH} 30 30 cm /Im Do Q"
    return _sized("0 0 220 300", f"/CropBox[30 30 {30 + WIDE} {30 + HIGH}]", inner)


@_fault
def _cropbox_outside() -> bytes:
    return _sized(f"0 0 {WIDE} {HIGH}", "/CropBox[-500 -500 5000 5000]")


@_fault
def _userunit() -> bytes:
    return _sized(f"0 0 {WIDE} {HIGH}", "/UserUnit 4")


@_fault
def _negative_mediabox() -> bytes:
    """Corners swapped, and the origin elsewhere."""
    place = f"q {WIDE} 0 0 {HIGH} {-WIDE} {-HIGH} cm /Im Do Q"
    return _sized(f"0 0 {-WIDE} {-HIGH}", "", place)


@_fault
def _zero_mediabox() -> bytes:
    return _sized("0 0 0 0", "", "q 612 0 0 792 0 0 cm /Im Do Q")


@_fault
def _endless_mediabox() -> bytes:
    return _sized("0 0 1e30 1e30")


@_fault
def _huge_page() -> bytes:
    """200 inches square, the largest that PDF 1.7 allows without UserUnit."""
    return _sized("0 0 14400 14400", "", "q 14400 0 0 14400 0 0 cm /Im Do Q")


@_fault
def _ribbon() -> bytes:
    """A page so long and thin that no budget shows it."""
    return _sized("0 0 10 2000000", "", "0 0 10 2000000 re f")


@_fault
def _tiny_page() -> bytes:
    return _sized("0 0 16 24", "", "q 16 0 0 24 0 0 cm /Im Do Q")


def _rotation(degrees: int) -> None:
    """A page that /Rotate turns upright: what is stored lies on its side."""
    turns = (degrees + 45) // 90
    stored = np.rot90(color_mark(), turns)
    high, wide = stored.shape[:2]

    def turned() -> bytes:
        content = f"q {wide} 0 0 {high} 0 0 cm /Im Do Q"
        page = _page(content, f"/Rotate {degrees}", f"0 0 {wide} {high}")
        return _write(page | {10: _jpeg_image(np.ascontiguousarray(stored))})

    _FAULTS[f"rotate_{degrees}"] = turned


for _degrees in (0, 90, 180, 270, -90, 450):
    _rotation(_degrees)


@_fault
def _without_contents() -> bytes:
    objects = _page("")
    objects[3] = objects[3].replace(b"/Contents 4 0 R", b"")
    return _write(objects)


@_fault
def _text_only() -> bytes:
    return _shown(b"null", "BT /F 20 Tf 10 200 Td (Nothing but) Tj 0 -24 Td (words) Tj ET")


@_fault
def _hidden_text() -> bytes:
    """A scan with the invisible text layer that OCR makes."""
    hidden = "BT 3 Tr /F 20 Tf 10 200 Td (Upper) Tj 0 -150 Td (Lower) Tj ET"
    return _shown(_jpeg_image(gray_mark()), f"{PLACE} {hidden}")


@_fault
def _layer_off() -> bytes:
    """A black layer over the mark, which is off by default."""
    content = f"{PLACE} /OC /Layer BDC 0 0 0 rg 0 0 {WIDE} {HIGH} re f EMC"
    objects = _page(content) | {10: _jpeg_image(color_mark())}
    objects[1] = (
        b"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[6 0 R]/D<</BaseState/ON/OFF[6 0 R]>>>>>>"
    )
    return _write(objects | {6: b"<</Type/OCG/Name(Cover)>>"})


@_fault
def _annotated() -> bytes:
    """A reader's black stamp over the mark."""
    objects = _page(PLACE, "/Annots[7 0 R]") | {10: _jpeg_image(color_mark())}
    black = f"0 0 0 rg 0 0 {WIDE} {HIGH} re f".encode()
    area = f"[0 0 {WIDE} {HIGH}]"
    objects[7] = f"<</Type/Annot/Subtype/Stamp/F 4/Rect{area}/AP<</N 8 0 R>>>>".encode()
    return _write(objects | {8: _stream(black, Type="/XObject", Subtype="/Form", BBox=area)})


# Pictures -------------------------------------------------------------------------------------


@_fault
def _gray_jpeg() -> bytes:
    return _shown(_jpeg_image(gray_mark()))


@_fault
def _gray_jpeg_decode() -> bytes:
    """A negative with an inverted Decode, which shows as a positive."""
    return _shown(_jpeg_image(255 - gray_mark(), Decode="[1 0]"))


def _inks() -> Pixels:
    """The mark in C, M, Y, K with black ink only where it is dark."""
    rgb = 255 - color_mark()
    black = rgb.min(axis=2, keepdims=True)
    return np.concatenate([rgb - black, black], axis=2)


def _cmyk(pixels: Pixels, transform: int | None, decode: str) -> bytes:
    """A four-channel JPEG; the Adobe marker says ``transform``, or is missing."""
    # Pillow writes the marker with transform 0, and the pixels inverted.
    data = _coded(255 - pixels, "JPEG", "CMYK", quality=95)
    at = data.index(b"\xff\xee")
    length = 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    if transform is None:
        data = data[:at] + data[at + length :]
    else:
        data = data[: at + length - 1] + bytes([transform]) + data[at + length :]
    return _shown(_image(data, "DCTDecode", "/DeviceCMYK", (WIDE, HIGH), Decode=decode))


@_fault
def _cmyk_jpeg() -> bytes:
    """As Photoshop writes it: inverted, with an Adobe marker and a Decode that says so."""
    return _cmyk(255 - _inks(), 0, "[1 0 1 0 1 0 1 0]")


@_fault
def _cmyk_jpeg_without_marker() -> bytes:
    return _cmyk(_inks(), None, "[0 1 0 1 0 1 0 1]")


@_fault
def _ycck_jpeg() -> bytes:
    inks = 255 - _inks()
    ycc = np.asarray(Image.fromarray(inks[..., :3]).convert("YCbCr"))
    return _cmyk(np.concatenate([ycc, inks[..., 3:]], axis=2), 2, "[1 0 1 0 1 0 1 0]")


@_fault
def _soft_mask() -> bytes:
    """All ink is in the soft mask; the picture itself is plain black."""
    mask = _flate(255 - gray_mark(), "/DeviceGray")
    black = np.zeros((HIGH, WIDE), np.uint8)
    return _shown(_flate(black, "/DeviceGray", SMask="11 0 R"), o11=mask)


@_fault
def _image_mask() -> bytes:
    """A stencil: where its bit is 0, black is painted."""
    return _shown(_bits(bilevel_mark(), "", ImageMask="true"), f"0 g {PLACE}")


@_fault
def _image_mask_decode() -> bytes:
    """A stencil with an inverted Decode: black is painted where its bit is 1."""
    return _shown(
        _bits(255 - bilevel_mark(), "", ImageMask="true", Decode="[1 0]"), f"0 g {PLACE}"
    )


@_fault
def _fax() -> bytes:
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
    return _shown(_image(data, "CCITTFaxDecode", "/DeviceGray", (WIDE, HIGH), **keys))


@_fault
def _indexed() -> bytes:
    palette = bytes(DARK + RED + WHITE + GREEN).hex()
    space = f"[/Indexed/DeviceRGB 3<{palette}>]"
    return _shown(_flate(_quadrants(0, 1, 2, 3), space))


@_fault
def _indexed_gray() -> bytes:
    """A palette in RGB, of greys only."""
    values = (DARK[0], MIDDLE, WHITE[0], LIGHT)
    palette = bytes(v for v in values for _ in range(3)).hex()
    return _shown(_flate(_quadrants(0, 1, 2, 3), f"[/Indexed/DeviceRGB 3<{palette}>]"))


@_fault
def _color_key() -> bytes:
    """A background of the colour that is masked out: the paper shows through as white."""
    mark = color_mark()
    mark[HIGH // 2 :, : WIDE // 2] = (0, 0, 255)
    return _shown(_flate(mark, "/DeviceRGB", Mask="[0 0 0 0 255 255]"))


@_fault
def _jpx() -> bytes:
    data = _coded(color_mark(), "JPEG2000")
    return _shown(_image(data, "JPXDecode", "", (WIDE, HIGH)))


@_fault
def _jpx_16_bit() -> bytes:
    deep = gray_mark().astype(np.uint16) * 257
    data = _coded(deep, "JPEG2000")  # type: ignore[arg-type]
    return _shown(_image(data, "JPXDecode", "/DeviceGray", (WIDE, HIGH), BitsPerComponent="16"))


@_fault
def _jpx_alpha() -> bytes:
    """A picture with a fourth channel, which SMaskInData says is its opacity."""
    opaque = np.full((HIGH, WIDE, 1), 255, np.uint8)
    data = _coded(np.concatenate([color_mark(), opaque], axis=2), "JPEG2000")
    return _shown(_image(data, "JPXDecode", "", (WIDE, HIGH), SMaskInData="1"))


@_fault
def _inline() -> bytes:
    small = color_mark()[::20, ::20]
    head = f"BI /W {small.shape[1]} /H {small.shape[0]} /BPC 8 /CS /RGB /F /AHx ID "
    return _shown(b"null", PLACE.replace("/Im Do", f"{head}{small.tobytes().hex()}> EI"))


@_fault
def _form() -> bytes:
    """A picture within a form within a form."""
    area, use = f"[0 0 {WIDE} {HIGH}]", "<</XObject<</Im {} 0 R>>>>"
    keys = {"Type": "/XObject", "Subtype": "/Form", "BBox": area}
    outer = _stream(b"/Im Do", **keys, Resources=use.format(11))
    inner = _stream(PLACE.encode(), **keys, Resources=use.format(12))
    return _shown(outer, "/Im Do", o11=inner, o12=_jpeg_image(color_mark()))


@_fault
def _mirrored() -> bytes:
    """Stored as in a mirror, and mirrored again by the matrix."""
    stored = np.ascontiguousarray(color_mark()[:, ::-1])
    return _shown(_jpeg_image(stored), f"q {-WIDE} 0 0 {HIGH} {WIDE} 0 cm /Im Do Q")


@_fault
def _upside_down() -> bytes:
    stored = np.ascontiguousarray(color_mark()[::-1])
    return _shown(_jpeg_image(stored), f"q {WIDE} 0 0 {-HIGH} 0 {HIGH} cm /Im Do Q")


@_fault
def _strips() -> bytes:
    """Ten strips of 24 rows each."""
    rows = HIGH // 10
    content, others = "", {}
    for n in range(10):
        strip = np.ascontiguousarray(color_mark()[n * rows : (n + 1) * rows])
        others[f"o{10 + n}"] = _jpeg_image(strip)
        content += f"q {WIDE} 0 0 {rows} 0 {HIGH - (n + 1) * rows} cm /Im{n or ''} Do Q "
    return _shown(others.pop("o10"), content, **others)


@_fault
def _tiles() -> bytes:
    """Nine tiles, three by three, none of them in line with the quadrants."""
    content, others = "", {}
    across, down = [0, 53, 107, WIDE], [0, 80, 160, HIGH]
    for n in range(9):
        x0, x1 = across[n % 3], across[n % 3 + 1]
        y0, y1 = down[n // 3], down[n // 3 + 1]
        tile = np.ascontiguousarray(color_mark()[y0:y1, x0:x1])
        others[f"o{10 + n}"] = _flate(tile, "/DeviceRGB")
        content += f"q {x1 - x0} 0 0 {y1 - y0} {x0} {HIGH - y1} cm /Im{n or ''} Do Q "
    return _shown(others.pop("o10"), content, **others)


@_fault
def _layers() -> bytes:
    """Three layers: a coarse background, a coarse ink, and a fine mask that places the ink."""
    back = color_mark()
    back[: HIGH // 2, : WIDE // 2] = WHITE
    ink = np.full((HIGH // 8, WIDE // 8, 3), DARK, np.uint8)
    mask = np.repeat(np.repeat(_quadrants(255, 0, 0, 0), 2, axis=0), 2, axis=1)
    return _shown(
        _jpeg_image(np.ascontiguousarray(back[::4, ::4])),
        f"{PLACE} {PLACE.replace('/Im', '/Im1')}",
        o11=_jpeg_image(ink, SMask="12 0 R"),
        o12=_bits(mask),
    )


# Damage ---------------------------------------------------------------------------------------


def _scan() -> Pixels:
    """(480, 320) of noise, which a JPEG spends bytes on evenly."""
    return np.random.default_rng(1).integers(0, 256, (480, 320), dtype=np.uint8)


@_fault
def _corrupt_picture() -> bytes:
    """A JPEG without its header."""
    data = _jpeg(color_mark())
    return _shown(_jpeg_image(color_mark(), bytes(300) + data[300:]))


@_fault
def _corrupt_jpx() -> bytes:
    data = _coded(color_mark(), "JPEG2000")
    return _shown(_image(bytes(60) + data[60:], "JPXDecode", "", (WIDE, HIGH)))


@_fault
def _cut_jpx() -> bytes:
    data = _coded(_scan(), "JPEG2000")
    return _shown(_image(data[: len(data) // 2], "JPXDecode", "/DeviceGray", (320, 480)))


@_fault
def _cut_jpeg_most() -> bytes:
    """A JPEG of which a fifth is left."""
    data = _jpeg(_scan())
    return _shown(_jpeg_image(_scan(), data[: len(data) // 5]))


@_fault
def _cut_jpeg_little() -> bytes:
    """A JPEG of which a fifth is missing."""
    data = _jpeg(_scan())
    return _shown(_jpeg_image(_scan(), data[: len(data) * 4 // 5]))


@_fault
def _silent_jpeg() -> bytes:
    """A JPEG that stops in the middle with an end marker: no decoder complains."""
    data = _jpeg(_scan())
    return _shown(_jpeg_image(_scan(), data[: len(data) // 3] + b"\xff\xd9"))


@_fault
def _cut_flate() -> bytes:
    data = zlib.compress(_scan().tobytes())
    return _shown(_image(data[: len(data) // 5], "FlateDecode", "/DeviceGray", (320, 480)))


@_fault
def _corrupt_contents() -> bytes:
    objects = _page(PLACE) | {10: _jpeg_image(color_mark())}
    return _write(objects | {4: _stream(b"\x00broken", Filter="/FlateDecode")})


@_fault
def _one_of_two_corrupt() -> bytes:
    """A small broken picture beside the mark."""
    content = f"{PLACE} q 30 0 0 30 5 5 cm /Im1 Do Q"
    return _shown(
        _jpeg_image(color_mark()), content, o11=_jpeg_image(gray_mark(), b"\xff\xd8\xff broken")
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.resources.make_faults FOLDER")
    for written in make(Path(sys.argv[1])).values():
        print(written)
