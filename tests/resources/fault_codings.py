"""Pictures in the rarer colour spaces and codings, and files whose cross-reference is a trap."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image, ImageCms

from tests.resources.fault_pdf import (
    HIGH,
    PLACE,
    WIDE,
    Faults,
    bilevel_mark,
    coded,
    color_mark,
    flate,
    gray_mark,
    image,
    jpeg_image,
    page,
    shown,
    sized,
    stream,
    three,
    write,
)

FAULTS = Faults()


@FAULTS.add
def circular_prev() -> bytes:
    """A cross-reference table that names itself as the one before it."""
    file = write(three(), "/Prev 0000000000")
    start = file.rindex(b"startxref\n") + len(b"startxref\n")
    return file.replace(b"/Prev 0000000000", b"/Prev %010d" % int(file[start:].split()[0]))


@FAULTS.add
def broken_xref_stream() -> bytes:
    """A cross-reference stream, as PDF 1.5 has it, whose data is damaged."""
    file = write(three())
    body = file[: file.rindex(b"xref\n0 ")]
    table = zlib.compress(bytes(6 * 40))
    damaged = table[:3] + b"damage" + table[9:]
    entries = stream(
        damaged, Type="/XRef", Size="40", W="[1 4 1]", Root="1 0 R", Filter="/FlateDecode"
    )
    return body + b"39 0 obj\n" + entries + b"\nendobj\nstartxref\n%d\n%%%%EOF\n" % len(body)


@FAULTS.add
def lab() -> bytes:
    profiles = [ImageCms.createProfile(name) for name in ("sRGB", "LAB")]
    mark = Image.fromarray(color_mark())
    values = np.array(ImageCms.profileToProfile(mark, *profiles, outputMode="LAB"))
    values[..., 1:] ^= 128  # Pillow has them signed
    space = "[/Lab<</WhitePoint[0.9642 1 0.8249]/Range[-128 127 -128 127]>>]"
    return shown(flate(values, space))


@FAULTS.add
def separation() -> bytes:
    """Black ink alone, by its name."""
    tint = "<</FunctionType 2/Domain[0 1]/C0[1]/C1[0]/N 1>>"
    return shown(flate(255 - gray_mark(), f"[/Separation/Black/DeviceGray{tint}]"))


@FAULTS.add
def device_n() -> bytes:
    """Three inks with names of their own, which a program turns into RGB."""
    limits = "[0 1 0 1 0 1]"
    program = stream(b"{}", FunctionType="4", Domain=limits, Range=limits)
    space = "[/DeviceN[/One/Two/Three]/DeviceRGB 11 0 R]"
    return shown(flate(color_mark(), space), o11=program)


@FAULTS.add
def broken_profile() -> bytes:
    profile = stream(b"no profile at all", N="3", Alternate="/DeviceRGB")
    return shown(flate(color_mark(), "[/ICCBased 11 0 R]"), o11=profile)


@FAULTS.add
def jpx_gray() -> bytes:
    return shown(image(coded(gray_mark(), "JPEG2000"), "JPXDecode", "", (WIDE, HIGH)))


def _fax(compression: str) -> tuple[bytes, bool]:
    """The bilevel mark as a fax, and whether its coder took white for 1."""
    file = io.BytesIO()
    picture = Image.fromarray(bilevel_mark()).convert("1")
    picture.save(file, "TIFF", compression=compression, strip_size=1 << 20)
    tags = Image.open(file).tag_v2  # type: ignore[attr-defined]
    return file.getvalue()[tags[273][0] :][: tags[279][0]], tags[262] != 0


def _fax_page(data: bytes, **parms: str) -> bytes:
    listed = "".join(f"/{key} {value}" for key, value in parms.items())
    listed = f"<<{listed}/Columns {WIDE}/Rows {HIGH}>>"
    keys = {"BitsPerComponent": "1", "DecodeParms": listed}
    return shown(image(data, "CCITTFaxDecode", "/DeviceGray", (WIDE, HIGH), **keys))


@FAULTS.add
def fax_group_3() -> bytes:
    data, white = _fax("group3")
    return _fax_page(data, K="0", BlackIs1=str(white).lower())


@FAULTS.add
def fax_black_is_1() -> bytes:
    """Group 4 with BlackIs1, and a Decode that takes it back."""
    data, white = _fax("group4")
    black = str(not white).lower()
    keys = {"BitsPerComponent": "1", "Decode": "[1 0]"}
    keys["DecodeParms"] = f"<</K -1/Columns {WIDE}/Rows {HIGH}/BlackIs1 {black}>>"
    return shown(image(data, "CCITTFaxDecode", "/DeviceGray", (WIDE, HIGH), **keys))


def _segment(number: int, kind: int, on_page: int, data: bytes) -> bytes:
    return struct.pack(">IBBBI", number, kind, 0, on_page, len(data)) + data


@FAULTS.add
def jbig2() -> bytes:
    """A region coded as in a fax, with an empty dictionary of symbols as its globals."""
    data, white = _fax("group4")
    template = bytes([3, 255, 253, 255, 2, 254, 254, 254])
    shared = _segment(0, 0, 0, bytes(2) + template + bytes(8) + bytes(16))
    sheet = _segment(1, 48, 1, struct.pack(">IIIIBH", WIDE, HIGH, 0, 0, 0, 0))
    region = struct.pack(">IIIIBB", WIDE, HIGH, 0, 0, 0, 1) + data
    keys = {"BitsPerComponent": "1", "DecodeParms": "<</JBIG2Globals 11 0 R>>"}
    if white:
        keys["Decode"] = "[1 0]"
    coding = sheet + _segment(2, 38, 1, region)
    picture = image(coding, "JBIG2Decode", "/DeviceGray", (WIDE, HIGH), **keys)
    return shown(picture, o11=stream(shared))


@FAULTS.add
def enormous_fax() -> bytes:
    """1,200 million pixels of white in 5 kB."""
    wide, high = 30_000, 40_000
    parms = f"<</K -1/Columns {wide}/Rows {high}>>"
    keys = {"BitsPerComponent": "1", "DecodeParms": parms}
    picture = image(b"\xff" * (high // 8), "CCITTFaxDecode", "/DeviceGray", (wide, high), **keys)
    sheet = page("q 7200 0 0 9600 0 0 cm /Im Do Q", box="0 0 7200 9600")
    return write(sheet | {10: picture})


@FAULTS.add
def black_picture() -> bytes:
    """A picture that is black, and not for want of its data."""
    return shown(jpeg_image(np.zeros((HIGH, WIDE), np.uint8)))


@FAULTS.add
def finest_page() -> bytes:
    """The mark at 2,400 dpi."""
    place = PLACE.replace(f"{WIDE} 0 0 {HIGH}", f"{WIDE * 0.03} 0 0 {HIGH * 0.03}")
    return sized(f"0 0 {WIDE * 0.03} {HIGH * 0.03}", "", place)
