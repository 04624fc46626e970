"""From a file's bytes to what an image tower takes: decoded, fitted whole into a square."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, UnidentifiedImageError

from models.clip.errors import AnimatedImage, DamagedImage, ImageTooLarge, ImageTooSmall
from models.errors import InputFault, UnreadableFile

LEAST_SIDE = 8
"""A picture with a side shorter than this many pixels shows nothing."""


def decode(name: str, data: bytes, side: int) -> Image.Image:
    """A picture in RGB, decoded no larger than `side` needs where the format allows it.

    CMYK and 16-bit pictures are converted, transparency is laid on white.

    Args:
        name: For the message.
        data: A whole file.
        side: Longest side wanted, in pixels.

    Raises:
        InputFault: The picture is damaged, animated, too small or too large.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data))
            if min(picture.size) < LEAST_SIDE:
                width, height = picture.size
                raise ImageTooSmall(f"{name}: has {width} × {height} pixels.")
            frames = getattr(picture, "n_frames", 1)
            if frames > 1:
                raise AnimatedImage(f"{name}: holds {frames} frames.")
            # Half as many pixels again as are wanted are left for the resampling to average.
            picture.draft("RGB", (2 * side, 2 * side))
            picture.load()
            return _to_rgb(picture)
    except Image.DecompressionBombError as error:
        raise ImageTooLarge(f"{name}: {error}.") from error
    except UnidentifiedImageError as error:
        # Pillow's own message names the place in memory.
        raise DamagedImage(f"{name}: cannot be decoded: it is no picture.") from error
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
        raise DamagedImage(f"{name}: cannot be decoded: {error}.") from error


def _to_rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16") or picture.mode == "I":
        deep = np.asarray(picture, np.float32)
        # Pillow reads some 16-bit files as 32-bit integers.
        picture = Image.fromarray(np.clip(deep / 257, 0, 255).astype(np.uint8))
    if "transparency" in picture.info or picture.mode in ("RGBA", "LA", "PA"):
        clear = picture.convert("RGBA")
        picture = Image.new("RGBA", clear.size, "white")
        picture.alpha_composite(clear)
    return picture.convert("RGB")


def square(picture: Image.Image, side: int) -> Image.Image:
    """Fit a picture whole into a square, the rest filled with its paper's tone.

    CLIP's own preprocessing keeps the middle square, and a tall figure loses her head and feet.

    Args:
        picture: RGB.
        side: Of the square, in pixels.
    """
    scale = side / max(picture.size)
    width, height = (max(1, round(length * scale)) for length in picture.size)
    small = picture.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2.0)
    canvas = Image.new("RGB", (side, side), _paper(np.asarray(small)))
    canvas.paste(small, ((side - width) // 2, (side - height) // 2))
    return canvas


def _paper(pixels: NDArray[np.uint8]) -> tuple[int, int, int]:
    """The tone of the paper: the median of the outermost pixels of (H, W, 3)."""
    rim = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    red, green, blue = np.median(rim, axis=0).astype(int).tolist()
    return red, green, blue


def prepare(
    name: str,
    read: Callable[[], bytes],
    side: int,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
) -> NDArray[np.float32] | InputFault:
    """Read a picture and make of it what an image tower takes.

    Args:
        name: For messages.
        read: Gives the file's bytes.
        side: Of the tower's input, in pixels.
        mean: (3,) of the tower's normalisation, of values from 0 to 1.
        std: (3,) likewise.

    Returns:
        (3, side, side), or what is wrong with this picture.
    """
    try:
        pixels = np.asarray(square(decode(name, read(), side), side), np.float32) / 255
    except InputFault as fault:
        return fault
    except OSError as error:
        return UnreadableFile(f"{name}: cannot be read: {error.strerror or error}.")
    return np.ascontiguousarray(((pixels - mean) / std).transpose(2, 0, 1))


# Pillow must refuse what was cut short, whatever another library has set.
ImageFile.LOAD_TRUNCATED_IMAGES = False
