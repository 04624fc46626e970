"""Showing a person what a run made: a table, a contact sheet, and the same as artifacts."""

from __future__ import annotations

import base64
from io import BytesIO

from PIL import Image
from prefect import task
from prefect.artifacts import create_image_artifact, create_markdown_artifact, create_table_artifact
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.records import Summary
from tasks import session
from tasks.dataset import read_file, read_samples
from tasks.retry import RETRIED
from tasks.storage import Storage

SHEET = "contact-sheet.jpg"
COLUMNS, ROWS, THUMB = 8, 5, 160
"""Size of the contact sheet: thumbnails across and down, and pixels of each."""
MB = 1024 * 1024


def rows(summary: Summary, output: str) -> list[tuple[str, str]]:
    """What a person wants to know at the end of a run, line by line."""
    pages, pdfs = summary.pages, summary.pdfs
    lines = [
        ("PDFs", f"{pdfs.total:,}" + _but(("duplicates", pdfs.dropped))),
        ("pages", f"{pages.total:,}"),
        (
            "kept",
            f"{pages.kept:,} pages, {summary.samples:,} samples, {_size(summary.sample_bytes)}",
        ),
        ("dropped", f"{pages.dropped:,}" + _but(*summary.dropped.items())),
        (
            "quarantined",
            f"{pdfs.quarantined:,} PDFs, {pages.quarantined:,} pages"
            + _but(*summary.quarantined.items()),
        ),
    ]
    if summary.pages_worked:
        speed = summary.pages_worked / max(summary.seconds, 1e-3)
        lines.append(("speed", f"{speed:.1f} pages/s, {summary.seconds:.0f} s"))
        lines.append(
            (
                "peak memory",
                f"{summary.peak_parent_bytes // MB} MB, "
                f"each worker up to {summary.peak_worker_bytes // MB} MB",
            )
        )
    lines.append(("output", output))
    return lines


def print_table(summary: Summary, output: str) -> None:
    """Print the end of a run."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, value in rows(summary, output):
        table.add_row(f"[bold]{name}[/bold]", escape(value))
    Console().print(table)


def contact_sheet(output: Storage) -> bytes | None:
    """A JPEG of samples spread evenly over the dataset; None if there are none."""
    names = [sample.file_name for sample in read_samples(output)]
    if not names:
        return None
    count = min(len(names), COLUMNS * ROWS)
    chosen = [names[i * len(names) // count] for i in range(count)]
    across, down = min(count, COLUMNS), -(-count // COLUMNS)
    sheet = Image.new("RGB", (across * THUMB, down * THUMB), "white")
    for number, name in enumerate(chosen):
        with Image.open(BytesIO(read_file(output, name))) as image:
            image.draft("RGB", (THUMB * 2, THUMB * 2))
            thumb = image.convert("RGB")
            thumb.thumbnail((THUMB - 8, THUMB - 8))
        left = number % COLUMNS * THUMB + (THUMB - thumb.width) // 2
        top = number // COLUMNS * THUMB + (THUMB - thumb.height) // 2
        sheet.paste(thumb, (left, top))
    stream = BytesIO()
    sheet.save(stream, "JPEG", quality=80)
    return stream.getvalue()


def write_sheet(output: Storage) -> None:
    """Write the contact sheet, or remove it where there is nothing to show."""
    sheet = contact_sheet(output)
    if sheet is None:
        output.remove(SHEET)
    else:
        output.write(SHEET, sheet)


@task(name="report", **RETRIED)
def report_task(summary: Summary) -> None:
    """Make the run's artifacts for the Prefect UI."""
    output = session.current().output
    lines = [f"| {name} | {value} |" for name, value in rows(summary, output.url)]
    create_markdown_artifact(
        "\n".join(["| | |", "|---|---|", *lines]), key="extract-summary", description="Summary"
    )
    reasons = [{"reason": name, "pages": count} for name, count in summary.dropped.items()]
    create_table_artifact(reasons, key="extract-dropped", description="Dropped pages by reason")
    if output.size(SHEET):
        data = base64.b64encode(output.read(SHEET)).decode()
        create_image_artifact(
            f"data:image/jpeg;base64,{data}", key="extract-samples", description="Kept samples"
        )


def _size(count: int) -> str:
    return f"{count / MB:,.1f} MB" if count < 1024 * MB else f"{count / MB / 1024:,.2f} GB"


def _but(*parts: tuple[str, int]) -> str:
    named = [f"{name.replace('_', ' ')} {count:,}" for name, count in parts if count]
    return f" ({', '.join(named)})" if named else ""
