"""Files and pages with faults: cut short, locked, mislabelled, or of strange geometry."""

from __future__ import annotations

import hashlib

import numpy as np

from tests.resources.fault_pdf import (
    HIGH,
    PLACE,
    WIDE,
    Faults,
    color_mark,
    gray_mark,
    jpeg,
    jpeg_image,
    page,
    shown,
    sized,
    stream,
    three,
    write,
)

FAULTS = Faults()
PASSWORD = "secret"


@FAULTS.add
def empty() -> bytes:
    return b""


@FAULTS.add
def html() -> bytes:
    return b"\n<!DOCTYPE html>\n<html><body>404 Not Found</body></html>"


@FAULTS.add
def zip() -> bytes:
    return b"PK\x05\x06" + bytes(18)


@FAULTS.add
def jpeg_as_pdf() -> bytes:
    return jpeg(color_mark())


@FAULTS.add
def zero_bytes() -> bytes:
    return bytes(5000)


@FAULTS.add
def noise() -> bytes:
    return bytes(range(100, 200)) * 20


@FAULTS.add
def truncated_nothing_left() -> bytes:
    return shown(jpeg_image(color_mark()))[:40]


@FAULTS.add
def truncated() -> bytes:
    """Cut within the last of three pages, whose tree comes first."""
    file = write(three())
    return file[: file.index(b"23 0 obj") + 20]


@FAULTS.add
def truncated_without_tree() -> bytes:
    """Cut before the page tree, which comes last: two of the pages are there, on no tree."""
    objects = three()
    objects[31], objects[32] = objects.pop(1), objects.pop(2)
    file = write(objects)
    return file[: file.index(b"23 0 obj") + 20]


@FAULTS.add
def junk_prefix() -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n" + write(three())


@FAULTS.add
def broken_startxref() -> bytes:
    return write(three()).replace(b"startxref\n", b"startxref\n9")


@FAULTS.add
def broken_xref() -> bytes:
    return write(three()).replace(b"\nxref\n", b"\nfrex\n")


@FAULTS.add
def no_eof() -> bytes:
    return write(three()).removesuffix(b"%%EOF\n")


@FAULTS.add
def zero_pages() -> bytes:
    return write(page("") | {2: b"<</Type/Pages/Count 0/Kids[]>>"})


@FAULTS.add
def circular_tree() -> bytes:
    return write(three() | {2: b"<</Type/Pages/Count 3/Kids[21 0 R 2 0 R 22 0 R 23 0 R]>>"})


@FAULTS.add
def count_too_high() -> bytes:
    return write(three() | {2: b"<</Type/Pages/Count 99999/Kids[21 0 R 22 0 R 23 0 R]>>"})


@FAULTS.add
def count_too_low() -> bytes:
    return write(three() | {2: b"<</Type/Pages/Count 1/Kids[21 0 R 22 0 R 23 0 R]>>"})


@FAULTS.add
def missing_page() -> bytes:
    objects = three()
    del objects[22]
    return write(objects)


@FAULTS.add
def broken_page() -> bytes:
    """The only page's object cannot be parsed."""
    return write(page(PLACE)).replace(b"/Type/Page/", b"/Type(Page/")


@FAULTS.add
def endless_numbers() -> bytes:
    """Lost pages, and a cross-reference table that claims two thousand million objects."""
    file = write(three() | {2: b"<</Type/Pages>>"})
    return file.replace(b"xref\n0 ", b"xref\n2147483000 1\n0000000000 00000 n \n0 ")


@FAULTS.add
def user_password() -> bytes:
    return _locked(PASSWORD)


@FAULTS.add
def owner_only() -> bytes:
    return _locked("")


@FAULTS.add
def plain() -> bytes:
    return sized(f"0 0 {WIDE} {HIGH}")


@FAULTS.add
def labels() -> bytes:
    objects = three()
    rules = b"/PageLabels<</Nums[0<</S/r>>2<</S/D/P(pl. )/St 7>>]>>"
    return write(objects | {1: b"<</Type/Catalog/Pages 2 0 R" + rules + b">>"})


@FAULTS.add
def cropbox() -> bytes:
    """The mark within a black margin of 30 points, which the CropBox takes off."""
    inner = f"0 0 0 rg 0 0 220 300 re f q {WIDE} 0 0 {HIGH} 30 30 cm /Im Do Q"
    return sized("0 0 220 300", f"/CropBox[30 30 {30 + WIDE} {30 + HIGH}]", inner)


@FAULTS.add
def cropbox_outside() -> bytes:
    return sized(f"0 0 {WIDE} {HIGH}", "/CropBox[-500 -500 5000 5000]")


@FAULTS.add
def userunit() -> bytes:
    return sized(f"0 0 {WIDE} {HIGH}", "/UserUnit 4")


@FAULTS.add
def negative_mediabox() -> bytes:
    """Corners swapped, and the origin elsewhere."""
    place = f"q {WIDE} 0 0 {HIGH} {-WIDE} {-HIGH} cm /Im Do Q"
    return sized(f"0 0 {-WIDE} {-HIGH}", "", place)


@FAULTS.add
def zero_mediabox() -> bytes:
    return sized("0 0 0 0", "", "q 612 0 0 792 0 0 cm /Im Do Q")


@FAULTS.add
def endless_mediabox() -> bytes:
    return sized("0 0 1e30 1e30")


@FAULTS.add
def huge_page() -> bytes:
    """200 inches square, the largest that PDF 1.7 allows without UserUnit."""
    return sized("0 0 14400 14400", "", "q 14400 0 0 14400 0 0 cm /Im Do Q")


@FAULTS.add
def ribbon() -> bytes:
    """A page so long and thin that no budget shows it."""
    return sized("0 0 10 2000000", "", "0 0 10 2000000 re f")


@FAULTS.add
def tiny_page() -> bytes:
    return sized("0 0 16 24", "", "q 16 0 0 24 0 0 cm /Im Do Q")


def _rotation(degrees: int) -> None:
    """A page that /Rotate turns upright: what is stored lies on its side."""
    turns = (degrees + 45) // 90
    stored = np.rot90(color_mark(), turns)
    high, wide = stored.shape[:2]

    def turned() -> bytes:
        content = f"q {wide} 0 0 {high} 0 0 cm /Im Do Q"
        sheet = page(content, f"/Rotate {degrees}", f"0 0 {wide} {high}")
        return write(sheet | {10: jpeg_image(np.ascontiguousarray(stored))})

    FAULTS[f"rotate_{degrees}"] = turned


for _degrees in (0, 90, 180, 270, -90, 450, 45):
    _rotation(_degrees)


@FAULTS.add
def without_contents() -> bytes:
    objects = page("")
    objects[3] = objects[3].replace(b"/Contents 4 0 R", b"")
    return write(objects)


@FAULTS.add
def text_only() -> bytes:
    return shown(b"null", "BT /F 20 Tf 10 200 Td (Nothing but) Tj 0 -24 Td (words) Tj ET")


@FAULTS.add
def hidden_text() -> bytes:
    """A scan with the invisible text layer that OCR makes."""
    hidden = "BT 3 Tr /F 20 Tf 10 200 Td (Upper) Tj 0 -150 Td (Lower) Tj ET"
    return shown(jpeg_image(gray_mark()), f"{PLACE} {hidden}")


@FAULTS.add
def layer_off() -> bytes:
    """A black layer over the mark, which is off by default."""
    content = f"{PLACE} /OC /Layer BDC 0 0 0 rg 0 0 {WIDE} {HIGH} re f EMC"
    objects = page(content) | {10: jpeg_image(color_mark())}
    objects[1] = (
        b"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[6 0 R]/D<</BaseState/ON/OFF[6 0 R]>>>>>>"
    )
    return write(objects | {6: b"<</Type/OCG/Name(Cover)>>"})


@FAULTS.add
def annotated() -> bytes:
    """A reader's black stamp over the mark."""
    objects = page(PLACE, "/Annots[7 0 R]") | {10: jpeg_image(color_mark())}
    black = f"0 0 0 rg 0 0 {WIDE} {HIGH} re f".encode()
    area = f"[0 0 {WIDE} {HIGH}]"
    objects[7] = f"<</Type/Annot/Subtype/Stamp/F 4/Rect{area}/AP<</N 8 0 R>>>>".encode()
    return write(objects | {8: stream(black, Type="/XObject", Subtype="/Form", BBox=area)})


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
    objects = page(PLACE)
    objects[4] = stream(lock(4, PLACE.encode()))
    objects[10] = jpeg_image(mark, lock(10, jpeg(mark)))
    objects[30] = (
        f"<</Filter/Standard/V 1/R 2/P -64/O<{owner.hex()}>/U<{_rc4(key, pad).hex()}>>>".encode()
    )
    return write(objects, f"/Encrypt 30 0 R/ID[<{ident.hex()}><{ident.hex()}>]")
