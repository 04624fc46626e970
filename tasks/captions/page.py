"""The caption printed under a figure, from the PDF's text layer.

Runs in worker processes: imports neither Prefect nor torch.
"""

from __future__ import annotations

from models.records import RelativeBox
from tasks.work import reader_of

STRIP = 0.005
"""Height in which the page is searched for lines, as a fraction of the page's: less than the space
between a caption and what follows it."""
REACH = 0.04
"""How far below the figure a caption begins at most, as a fraction of the page's height."""
TALLEST = 0.06
"""Height of a caption at most; what goes on further is running text."""
OVERLAP = 0.012
"""How far the box of a figure, with its margin, may reach into its caption."""
MOST_LETTERS = 300


def printed_caption(path: str, passwords: tuple[str, ...], index: int, box: RelativeBox) -> str:
    """The block of lines that stands right under a figure, on one line; empty if there is none.

    Args:
        path: Local path of the PDF.
        passwords: To try if it is encrypted.
        index: 0-based page.
        box: The figure on the displayed page.

    Raises:
        InputFault: The page cannot be read.
    """
    reader = reader_of(path, passwords)
    x0, _, x1, bottom = box

    def strip(number: int) -> RelativeBox:
        top = bottom - OVERLAP + number * STRIP
        return x0, top, x1, top + STRIP

    def has_text(number: int) -> bool:
        return bool(reader.text(index, strip(number)).strip())

    reach, tallest = round((REACH + OVERLAP) / STRIP), round(TALLEST / STRIP)
    first = next((number for number in range(reach) if has_text(number)), None)
    if first is None:
        return ""
    after = next((n for n in range(first + 1, first + tallest + 1) if not has_text(n)), None)
    if after is None:
        return ""
    block = (x0, strip(first)[1], x1, strip(after)[1])
    text = " ".join(reader.text(index, block).split())
    letters = sum(map(str.isalpha, text))
    return text if letters >= 3 and len(text) <= MOST_LETTERS else ""
