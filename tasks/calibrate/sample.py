"""Which pages to look at: a sample spread over the archive, the same for the same archive."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from models.calibrate import Label, SampledPage
from models.records import Pdf

PageKey = tuple[str, int]
"""Name of a PDF and 0-based page."""


def draw(archive: list[Pdf], wanted: int, labels: Mapping[PageKey, Label]) -> list[SampledPage]:
    """Draw pages, each with the same chance, and add those with a label.

    The PDFs stand in the order of their content hashes, their pages end to end; every
    ``total / wanted``-th place counts one page for the PDF it falls into (systematic sampling:
    each PDF gets its share of the sample, rounded up or down). The PDF is then cut into as many
    stretches as it counts pages, and its content hash picks one page of each. So neither names
    nor the order of the files matter, and figures of the sample hold for the archive without
    weights.

    Args:
        archive: All PDFs; those with a fault, and duplicates, are left out.
        wanted: Pages to draw; all pages if there are no more.
        labels: What a person said of pages, drawn or not.

    Returns:
        Sorted by PDF and page.
    """
    pdfs = usable(archive)
    drawn: set[PageKey] = set()
    by_content = sorted(pdfs, key=lambda pdf: pdf.sha256 or "")
    total = count(pdfs)
    wanted = min(wanted, total)
    begin = 0
    for pdf in by_content:
        assert pdf.facts is not None and pdf.sha256 is not None
        pages = pdf.facts.page_count
        quota = _places(begin + pages, wanted, total) - _places(begin, wanted, total)
        drawn |= {(pdf.name, index) for index in _pick(pdf.sha256, pages, quota)}
        begin += pages
    by_name = {pdf.name: pdf for pdf in pdfs}
    chosen = sorted(drawn | {key for key in labels if key[0] in by_name})
    return [
        SampledPage(
            pdf=name,
            pdf_sha256=by_name[name].sha256 or "",
            volume=by_name[name].volume,
            page_index=index,
            drawn=(name, index) in drawn,
            label=labels.get((name, index)),
        )
        for name, index in chosen
    ]


def usable(archive: list[Pdf]) -> list[Pdf]:
    """The PDFs that a run works."""
    return [pdf for pdf in archive if pdf.is_worked]


def count(pdfs: list[Pdf]) -> int:
    """Their pages."""
    return sum(pdf.facts.page_count for pdf in pdfs if pdf.facts)


def _places(pages: int, wanted: int, total: int) -> int:
    """How many of `wanted` places, spread evenly over `total` pages, lie in the first `pages`."""
    return (2 * pages * wanted + total) // (2 * total)


def _pick(sha256: str, pages: int, quota: int) -> list[int]:
    """One page of each of `quota` stretches of about equal length."""
    picked = []
    for number in range(quota):
        first, end = number * pages // quota, (number + 1) * pages // quota
        seed = hashlib.sha256(f"{sha256} {number} of {quota}".encode()).digest()
        picked.append(first + int.from_bytes(seed[:8]) % (end - first))
    return picked
