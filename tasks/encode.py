"""Writing a sample as JPEG, PNG or WebP, with its provenance inside as XMP."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin

from models.settings import Encode

SUFFIX = {"jpeg": "jpg", "png": "png", "webp": "webp"}
NAMESPACE = "urn:intaglio:provenance:1"
"""XML namespace of the provenance."""
LONGEST = 2000
"""Characters of one value."""

_PACKET = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:intaglio="{namespace}"{attributes}/>'
    '</rdf:RDF></x:xmpmeta><?xpacket end="r"?>'
)


def encode(
    pixels: NDArray[np.uint8], dpi: float, provenance: dict[str, str], settings: Encode
) -> bytes:
    """Encode a finished picture; the same input gives the same bytes.

    Args:
        pixels: (H, W) grey or (H, W, 3) RGB.
        dpi: Pixels per inch of paper, written into the file.
        provenance: What to write into the XMP packet, by property name.
        settings: Format and quality.
    """
    image = Image.fromarray(pixels)
    if image.mode == "L" and not settings.keep_gray:
        image = image.convert("RGB")
    options: dict[str, Any] = {"dpi": (dpi, dpi), "xmp": xmp(provenance)}
    match settings.format:
        case "jpeg":
            options |= {"quality": settings.quality}
        case "webp":
            options |= {"quality": settings.quality}
            del options["dpi"]
        case "png":
            info = PngImagePlugin.PngInfo()
            info.add_itxt("XML:com.adobe.xmp", options.pop("xmp").decode())
            options |= {"pnginfo": info}
    stream = BytesIO()
    image.save(stream, settings.format, **options)
    return stream.getvalue()


def xmp(properties: dict[str, str]) -> bytes:
    """An XMP packet (ISO 16684-1) with properties in the project's own namespace."""
    attributes = "".join(
        f" intaglio:{name}={quoteattr(_printable(value))}" for name, value in properties.items()
    )
    return _PACKET.format(namespace=NAMESPACE, attributes=attributes).encode()


def _printable(text: str) -> str:
    """Without the control characters that XML 1.0 cannot hold, and short: a JPEG takes 64 KB."""
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST])
