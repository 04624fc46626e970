"""From bytes to a square: nothing cut off, and one bad picture costs itself alone."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from models.clip.pixels import decode, prepare, square
from models.errors import InputFault

Encoder = Callable[..., bytes]


def saved(picture: Image.Image, form: str, **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


def test_a_tall_figure_keeps_her_head_and_feet() -> None:
    paper = (230, 220, 190)
    tall = Image.new("RGB", (100, 400), paper)
    tall.paste((200, 0, 0), (30, 4, 70, 40))  # the hat
    tall.paste((0, 0, 200), (30, 360, 70, 396))  # the shoes
    fitted = np.asarray(square(tall, 128)).astype(int)
    assert fitted.shape == (128, 128, 3)
    assert (fitted[:14, :, 0] - fitted[:14, :, 2]).max() > 150
    assert (fitted[-14:, :, 2] - fitted[-14:, :, 0]).max() > 150
    # What was added is paper, not black.
    assert np.abs(fitted[:, :40] - paper).max() <= 2


def test_a_large_jpeg_is_decoded_no_larger_than_needed(encoded: Encoder) -> None:
    picture = decode("big.jpg", encoded(1, size=(2000, 3000)), 128)
    assert max(picture.size) < 800
    fine = square(decode("big.png", encoded(1, "PNG", size=(2000, 3000)), 128), 128)
    assert np.abs(np.asarray(square(picture, 128), int) - np.asarray(fine, int)).mean() < 3


@pytest.mark.parametrize("mode", ["CMYK", "L", "1"])
def test_other_colour_models_are_converted(encoded: Encoder, mode: str) -> None:
    form = "JPEG" if mode == "CMYK" else "PNG"
    picture = square(decode("x", encoded(3, form, mode), 64), 64)
    wanted = square(decode("x", encoded(3, "PNG", "RGB"), 64), 64).convert("L")
    if mode != "1":
        difference = np.asarray(picture.convert("L"), int) - np.asarray(wanted, int)
        assert np.abs(difference).mean() < 12


def test_sixteen_bits_keep_their_tones() -> None:
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (64, 1))
    picture = decode("deep.png", saved(Image.fromarray(ramp), "PNG"), 64)
    gray = np.asarray(picture)[32, :, 0].astype(int)
    assert gray[0] == 0 and gray[-1] == 255 and abs(gray[32] - 129) < 4


def test_what_is_transparent_shows_white() -> None:
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    assert np.asarray(decode("clear.png", saved(clear, "PNG"), 40)).min() == 255


def bad_pictures(encoded: Encoder) -> dict[str, tuple[bytes, str]]:
    whole = encoded(4, size=(400, 400))
    frames = [Image.new("RGB", (40, 40), tone) for tone in ("red", "blue")]
    animated = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    return {
        "truncated": (whole[: len(whole) // 2], "damaged_image"),
        "truncated PNG": (encoded(4, "PNG")[:900], "damaged_image"),
        "empty": (b"", "damaged_image"),
        "text": (b"<html>404</html>", "damaged_image"),
        "one pixel": (encoded(4, "PNG", size=(1, 1)), "image_too_small"),
        "a line": (encoded(4, "PNG", size=(300, 2)), "image_too_small"),
        "animated": (animated, "animated_image"),
    }


def test_a_bad_picture_says_what_is_wrong_and_what_to_do(encoded: Encoder) -> None:
    for name, (data, kind) in bad_pictures(encoded).items():
        with pytest.raises(InputFault) as caught:
            decode(name, data, 64)
        assert caught.value.kind == kind, name
        assert caught.value.message.startswith(name) and caught.value.cure
        assert "0x" not in caught.value.message, "the same in every run"


def test_a_picture_that_would_fill_the_memory_is_refused() -> None:
    header = saved(Image.new("1", (60000, 60000)), "PNG")
    with pytest.raises(InputFault) as caught:
        decode("bomb.png", header, 64)
    assert caught.value.kind == "image_too_large"


def test_a_file_that_vanished_is_a_fault_of_that_file() -> None:
    def gone() -> bytes:
        raise FileNotFoundError(2, "No such file or directory")

    zero, one = np.zeros(3, np.float32), np.ones(3, np.float32)
    fault = prepare("gone.jpg", gone, 64, zero, one)
    assert isinstance(fault, InputFault) and fault.kind == "unreadable_file"
