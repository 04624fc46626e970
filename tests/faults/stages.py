"""Every file operation of a run struck in turn; each time the next run ends with the same bytes.

    python -m tests.faults.stages FOLDER --kind kill [--every 5] [--changed]

The stages without Prefect, on a small archive. Each run is a process of its own, forked from this
one, which has everything imported: thus it costs a third of a second instead of five.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

from models.errors import ExitCode, StopRun
from models.settings import Settings
from tasks import package, session, triage
from tasks.discover import discover
from tasks.extract import Group, extract_pages
from tasks.plan import finished, remember_published
from tasks.publish import SUMMARY, publish
from tasks.report import write_sheet
from tests.faults.record import SAME, record
from tests.faults.strike import KINDS, Strike
from tests.resources.make_faults import MAKERS

PUBLISHED = ("dataset.zip", "manifest.jsonl", "pages.jsonl", "quarantine.jsonl")
ARCHIVE = {
    "1887/three.pdf": "count_too_low",
    "a.pdf": "plain",
    "copy of a.pdf": "plain",
    "text.pdf": "text_only",
    "page.pdf": "html",
    "locked.pdf": "user_password",
}
"""Four kept pages, a dropped one, a duplicate, and two files for the quarantine."""
KILLED = -9


def make_archive(folder: Path) -> Path:
    for name, fault in ARCHIVE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(MAKERS[fault]())
    return folder


def settings_for(source: Path, output: Path, quality: int = 92) -> Settings:
    return Settings.model_validate(
        {
            "source": str(source),
            "output": str(output),
            "triage": {"method": "sigma"},
            "fit": {"min_side": 1},
            "encode": {"quality": quality},
            "run": {"workers": 1, "disk_reserve_mb": 0},
        }
    )


def work(settings: Settings) -> None:
    """What the flow does, from taking the lock to giving it back."""
    try:
        run = session.begin(settings)
        archive = discover(run)
        if finished(run, archive):
            return
        for pdf in archive:
            if pdf.is_worked and (pages := triage.triage(run, pdf)):
                for start in range(0, len(pages), 2):
                    extract_pages(run, Group(pdf, pages[start : start + 2]))
        summary = publish(run, archive)
        package.package(run)
        run.output.write(SUMMARY, summary.model_dump_json().encode())
        write_sheet(run.output)
        remember_published(run, archive)
    finally:
        session.end()


def in_child(function: Callable[[], int | None]) -> int:
    """The exit code of a function in a forked process, or the negative number of its signal."""
    pid = os.fork()
    if not pid:
        code: int | None = 1
        try:
            # The process that workers are forked from is this one's sibling, not its child.
            forkserver.ensure_running = lambda: None
            forkserver._forkserver.ensure_running = forkserver.ensure_running
            code = function()
        except StopRun as error:
            print(f"{error.message} {error.cure}", file=sys.stderr, flush=True)
            code = error.exit_code
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code or 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def tree(folder: Path) -> dict[str, str]:
    """The finished files of a dataset and their hashes; the run's own state is not among them."""
    files = [*folder.glob("images/**/*"), *(folder / name for name in PUBLISHED)]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file() and not path.name.endswith(".partial")
    }


def strike_all(folder: Path, kind: str, every: int = 1, changed: bool = False) -> Counter[str]:
    """Strike a run at each ``every``-th of its file operations, and let the next run end.

    Args:
        folder: For archive and outputs.
        kind: See :data:`tests.faults.strike.KINDS`.
        every: 1 for all operations.
        changed: Whether the run finds a dataset made with other settings.

    Returns:
        How often the struck run ended how.

    Raises:
        AssertionError: Something half-written under its final name, or another dataset.
    """
    source = make_archive(folder / "archive")
    output, before = folder / "out", folder / "before"
    settings = settings_for(source, output)

    def fresh() -> None:
        shutil.rmtree(output, ignore_errors=True)
        if changed:
            shutil.copytree(before, output)

    def count() -> None:
        strike = Strike(str(output), kind)
        strike.install()
        work(settings)
        (folder / "count").write_text(str(strike.count))

    if changed:
        assert in_child(lambda: work(settings_for(source, output, quality=50))) == 0
        output.rename(before)
        old = tree(before)
    fresh()
    assert in_child(count) == 0
    reference, total = tree(output), int((folder / "count").read_text())
    assert total > 10 and set(PUBLISHED) < set(reference)
    ends: Counter[str] = Counter()
    for at in range(1, total + 1, every):
        fresh()

        def struck(at: int = at) -> None:
            Strike(str(output), kind, at).install()
            work(settings)

        code = in_child(struck)
        where = f"{kind} at operation {at} of {total}"
        for name, digest in tree(output).items():
            whole = digest == reference.get(name) or (changed and digest == old.get(name))
            assert whole, f"{where}: {name} is half-written"
        if kind in ("kill", "torn"):
            assert code == KILLED, f"{where}: ended with {code}"
            ends["killed"] += 1
        else:
            assert code in (ExitCode.OK, ExitCode.STOPPED), f"{where}: ended with {code}"
            assert not list(output.rglob("*.partial")), f"{where}: left something half-written"
            ends["stopped with 3" if code else "went on"] += 1
        assert in_child(lambda: work(settings)) == 0, f"after {where}"
        assert tree(output) == reference, f"after {where}: another dataset"
        assert not list(output.rglob("*.partial")), f"after {where}"
    return ends


FAULTS = {
    "kill": "SIGKILL at a file operation",
    "torn": "SIGKILL in the middle of writing a file",
    "ENOSPC": "no space left (ENOSPC) at a file operation",
    "EIO": "input/output error (EIO) at a file operation",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--every", type=int, default=1, help="1 for all operations")
    parser.add_argument("--changed", action="store_true", help="over a dataset of other settings")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    forkserver.set_forkserver_preload(["tasks.work", "tasks.mupdf_open"])
    forkserver.ensure_running()
    ends = strike_all(given.folder, given.kind, given.every, given.changed)
    told = ", ".join(f"{n} {how}" for how, n in sorted(ends.items()))
    command = f"python -m tests.faults.stages FOLDER --kind {given.kind}"
    fault = FAULTS[given.kind]
    if given.changed:
        fault, command = f"{fault}, over a dataset of other settings", f"{command} --changed"
    if given.every == 1:
        record("Process and disk", fault, sum(ends.values()), f"{told}; {SAME}", command)
    print(f"{sum(ends.values())} injections: {told}; {SAME}")


if __name__ == "__main__":
    main()
