"""What the fault tests did, and the table of it in ``docs/reliability.md``.

    python -m tests.faults.record

writes the table anew from what the tests of ``make nightly`` left in ``build/reliability/``.
"""

from __future__ import annotations

import json
from pathlib import Path

from slugify import slugify

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "build" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
START, END = "<!-- made by tests/faults/record.py -->\n", "<!-- end -->"
SAME = "each next run the same bytes"
GROUPS = ("Process and disk", "Prefect", "Input", "S3", "Several machines")


def record(group: str, fault: str, injections: int, outcome: str, command: str) -> None:
    """Keep the result of a test.

    Args:
        group: One of :data:`GROUPS`.
        fault: What was done to the run.
        injections: How often.
        outcome: How it ended.
        command: What does it again.
    """
    assert group in GROUPS
    RESULTS.mkdir(parents=True, exist_ok=True)
    line = {"group": group, "fault": fault, "injections": injections, "outcome": outcome}
    (RESULTS / f"{slugify(fault)}.json").write_text(json.dumps({**line, "command": command}))


def table() -> str:
    """All results in Markdown."""
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    lines = ["| Fault | Injections | Outcome | Again |", "|---|---|---|---|"]
    for group in GROUPS:
        mine = [each for each in found if each["group"] == group]
        if mine:
            lines.append(f"| **{group}** | | | |")
        lines += [
            f"| {x['fault']} | {x['injections']:,} | {x['outcome']} | `{x['command']}` |"
            for x in mine
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    page = PAGE.read_text()
    before, rest = page.split(START)
    PAGE.write_text(before + START + table() + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
