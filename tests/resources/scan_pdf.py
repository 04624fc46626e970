"""Binding scans into PDFs the way scanning projects do: several codecs, layers, strips, rotation.

The same pages give the same bytes: no clock, no random identifier.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import pikepdf
from pikepdf import Array, Dictionary, Name
from PIL import Image

from tests.resources.scans import Scan


def jpeg(image: np.ndarray, quality: int) -> bytes:
    """Encode grey or R, G, B pixels as JPEG."""
    if image.ndim == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def group4(image: np.ndarray) -> bytes:
    """Encode black and white pixels (0, 255) as one CCITT Group 4 strip."""
    file = io.BytesIO()
    # Pillow hands libtiff white as 1, and Group 4 calls 1 black; so the page goes in inverted.
    page = Image.fromarray(255 - image).convert("1", dither=Image.Dither.NONE)
    page.save(file, "TIFF", compression="group4", tiffinfo={278: image.shape[0]})
    with Image.open(file) as tiff:
        offset, length = tiff.tag_v2[273][0], tiff.tag_v2[279][0]
    return file.getvalue()[offset : offset + length]


@dataclass
class Binder:
    """Makes one PDF.

    Attributes:
        dpi: resolution at which a scan's pixels become inches.
        codec: jpeg, g4, jpx, mrc or strips.
        quality: JPEG quality.
    """

    dpi: float
    codec: str
    quality: int = 78
    pdf: pikepdf.Pdf = field(default_factory=pikepdf.new)

    def add(self, scan: Scan, turn: int = 0) -> None:
        """Append a page.

        Args:
            scan: what the page shows to a reader.
            turn: /Rotate of the page; the pixels are stored turned back, so it reads upright.
        """
        image = np.ascontiguousarray(np.rot90(scan.image, turn // 90))
        height, width = (side * 72 / self.dpi for side in image.shape[:2])
        page = self.pdf.add_blank_page(page_size=(round(width, 2), round(height, 2)))
        if turn:
            page.Rotate = turn
        draw = getattr(self, f"_{self.codec}")(image, scan, width, height)
        names = {f"/Im{n}": item[0] for n, item in enumerate(draw)}
        page.Resources = Dictionary(XObject=Dictionary(names))
        content = "".join(
            f"q {ops} {w:.3f} 0 0 {h:.3f} 0 {y:.3f} cm /Im{n} Do Q\n"
            for n, (_, ops, w, h, y) in enumerate(draw)
        )
        page.Contents = self.pdf.make_stream(content.encode())

    def _image(
        self, data: bytes, shape: tuple[int, ...], filter_: str, **extra: object
    ) -> pikepdf.Object:
        """Wrap encoded pixels as an image object."""
        stream = self.pdf.make_stream(data)
        stream.Type, stream.Subtype, stream.Filter = Name.XObject, Name.Image, Name("/" + filter_)
        stream.Width, stream.Height, stream.BitsPerComponent = shape[1], shape[0], 8
        stream.ColorSpace = Name.DeviceRGB if len(shape) == 3 else Name.DeviceGray
        for key, value in extra.items():
            stream["/" + key] = value
        return stream

    def _jpeg(self, image: np.ndarray, scan: Scan, w: float, h: float) -> list[tuple]:
        """Draw the page as one JPEG."""
        return [(self._image(jpeg(image, self.quality), image.shape, "DCTDecode"), "", w, h, 0)]

    def _g4(self, image: np.ndarray, scan: Scan, w: float, h: float) -> list[tuple]:
        """Draw the page as one Group 4 image."""
        return [
            (
                self._image(group4(image), image.shape, "CCITTFaxDecode", **self._fax(image)),
                "",
                w,
                h,
                0,
            )
        ]

    def _fax(self, image: np.ndarray) -> dict[str, object]:
        """List what a Group 4 image must say of itself."""
        parms = Dictionary(K=-1, Columns=image.shape[1], Rows=image.shape[0])
        return {"DecodeParms": parms, "BitsPerComponent": 1}

    def _jpx(self, image: np.ndarray, scan: Scan, w: float, h: float) -> list[tuple]:
        """Draw the page as one JPEG 2000."""
        file = io.BytesIO()
        options = {"irreversible": True, "quality_mode": "rates", "quality_layers": [14]}
        Image.fromarray(image).save(file, "JPEG2000", num_resolutions=5, **options)
        return [(self._image(file.getvalue(), image.shape, "JPXDecode"), "", w, h, 0)]

    def _mrc(self, image: np.ndarray, scan: Scan, w: float, h: float) -> list[tuple]:
        """Draw a coarse JPEG of the paper and the ink over it through a one-bit stencil."""
        small = cv2.resize(scan.paper, None, fx=1 / 3, fy=1 / 3, interpolation=cv2.INTER_AREA)
        paper = self._image(jpeg(small, self.quality), small.shape, "DCTDecode")
        ink = self._image(group4(image), image.shape, "CCITTFaxDecode", **self._fax(image))
        del ink["/ColorSpace"]
        ink.ImageMask = True
        return [(paper, "", w, h, 0), (ink, "0.13 0.11 0.10 rg", w, h, 0)]

    def _strips(self, image: np.ndarray, scan: Scan, w: float, h: float) -> list[tuple]:
        """Draw the page in strips of 256 rows, as some scanners send it."""
        scale, drawn = h / image.shape[0], []
        for top in range(0, image.shape[0], 256):
            rows = np.ascontiguousarray(image[top : top + 256])
            data = self._image(jpeg(rows, self.quality), rows.shape, "DCTDecode")
            drawn.append((data, "", w, len(rows) * scale, h - (top + len(rows)) * scale))
        return drawn

    def label(self, romans: int, first: int) -> None:
        """Number the first pages i, ii, iii… and the rest from `first`."""
        nums = [0, Dictionary(S=Name.r), romans, Dictionary(S=Name.D, St=first)]
        self.pdf.Root.PageLabels = Dictionary(Nums=Array(nums))

    def describe(self, title: str, date: str) -> None:
        """Write title and date (D:YYYYMMDD) into the document's information."""
        self.pdf.docinfo["/Title"] = title
        self.pdf.docinfo["/CreationDate"] = date
        self.pdf.docinfo["/Creator"] = "Scanning room"

    def save(self, path: Path, password: str | None = None) -> None:
        """Write the PDF, locked if a password is given."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if password is None:
            self.pdf.save(path, deterministic_id=True)
            return
        # The old cipher, because the newer ones start from random bytes.
        lock = pikepdf.Encryption(
            owner=password + "-owner", user=password, R=3, aes=False, metadata=False
        )
        self.pdf.save(path, static_id=True, encryption=lock)
