"""Discovery: which PDFs the archive holds, what each one is, and which are the same."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem
from prefect import task
from slugify import slugify

from models.errors import BadSettings, InputFault, UnreadableFile
from models.records import Fault, Pdf
from models.settings import IN_URL, holds_password
from tasks import session, work
from tasks.ledger import STATE, from_line, to_line
from tasks.lock import alone
from tasks.places import ENVIRONMENT, filesystem
from tasks.retry import RETRIED
from tasks.session import Job, Session
from tasks.staging import stamp_of
from tasks.storage import Storage, is_refusal, named_errors, web_error

ARCHIVE = f"{STATE}/archive.jsonl"
"""What discovery found last time, so that unchanged files are not read again."""
SAVE_EVERY = 50
VOLUME_LENGTH = 80
"""Characters of a volume's name at most; a path has other parts too."""
SLOWEST_READ = 5e6
"""Bytes a second a disk must give before reading a PDF counts as hanging."""

T = TypeVar("T")
Info = dict[str, Any]
"""What fsspec says of a file; empty if it was not asked yet."""


def find_pdfs(source: str, output: Storage) -> list[Pdf]:
    """List the PDFs of a source, unread, sorted by name.

    Args:
        source: See :class:`models.settings.Settings`.
        output: Files below it are never part of the archive.

    Raises:
        BadSettings: The source does not exist.
        StorageGone: It cannot be listed.
    """
    with named_errors(f"listing {source}"):
        fs, root = filesystem(source)
        if root.lower().endswith(".txt") and not fs.isdir(root):
            paths: dict[str, Info] = {path: {} for path in _listed(fs, root)}
            base = _common_folder(list(paths))
        else:
            paths, base = _searched(fs, root, source)
        # An output inside the source holds nothing to read; a source inside the output does.
        own = output.url + "/"
        if base and not base.startswith(own):
            paths = {path: info for path, info in paths.items() if not path.startswith(own)}
        found = [_pdf(path, base, info) for path, info in paths.items()]
    return sorted(found, key=lambda pdf: pdf.name)


def _listed(fs: fsspec.AbstractFileSystem, path: str) -> list[str]:
    """The paths in a text file, one a line; `#` begins a comment."""
    try:
        text = fs.cat_file(path).decode("utf-8-sig", "surrogateescape")
    except FileNotFoundError:
        raise BadSettings(f"source: {path} does not exist.") from None
    lines = re.split(r"\r?\n", text)
    for number, line in enumerate(lines, start=1):
        if holds_password(line):
            raise BadSettings(f"source: line {number} of {path}: {IN_URL}.", ENVIRONMENT)
    named = [line for line in lines if line.strip() and line[0] != "#"]
    return [line if "://" in line else os.path.abspath(line) for line in named]


def _common_folder(paths: list[str]) -> str:
    """The deepest folder that holds all, with a slash; names then say nothing of the machine."""
    common: list[str] = []
    for step in zip(*(path.split("/")[:-1] for path in paths), strict=False):
        if len(set(step)) > 1:
            break
        common.append(step[0])
    return "".join(f"{folder}/" for folder in common)


def _searched(fs: fsspec.AbstractFileSystem, root: str, source: str) -> tuple[dict[str, Info], str]:
    """The paths a file, folder, glob or URL stands for, and the folder their names start from.

    With each path comes what a remote listing said of it, so that it need not be asked for alone.
    """
    local = isinstance(fs, LocalFileSystem)
    paths: dict[str, Info] = {}
    if fs.isdir(root):
        if local:
            paths = {path: {} for path in _walk(root, _around(root))}
        else:
            paths = {p: info for p, info in fs.find(root, detail=True).items() if _is_pdf(p)}
        base = root
    elif fs.exists(root):
        paths, base = {root: {}}, os.path.dirname(root)
    elif any(sign in root for sign in "*?["):
        fixed = root[: min(root.index(sign) for sign in "*?[" if sign in root)]
        base = fixed.rpartition("/")[0]
        seen = _around(f"{base}/anything") if local else set()
        for path, info in fs.glob(root, detail=True).items():
            if local and os.path.isdir(path):
                paths |= {inner: {} for inner in _walk(path, seen)}
            elif _is_pdf(path):
                paths[path] = info
    else:
        raise BadSettings(f"source: {source} does not exist.")
    if not local:
        paths = {fs.unstrip_protocol(path): info for path, info in paths.items()}
        base = fs.unstrip_protocol(base)
    return paths, base.rstrip("/") + "/"


def _walk(folder: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """The PDFs below a folder, and with a slash at their end the folders that refuse to be read.

    Args:
        folder: Where to begin. Links to folders are followed.
        seen: Folders not to enter; those entered are added.
    """
    refused: list[str] = []
    walk = os.walk(folder, onerror=lambda e: refused.append(f"{e.filename}/"), followlinks=True)
    for parent, folders, files in walk:
        if _identity(parent) in seen:  # a link back, or a second way to a folder
            folders.clear()
            continue
        seen.add(_identity(parent))
        folders.sort()
        yield from (os.path.join(parent, name) for name in files if _is_pdf(name))
    yield from refused


def _around(folder: str) -> set[tuple[int, int]]:
    """The folders around one; a link to them would bring in what nobody asked for."""
    parents = Path(folder).resolve().parents
    return {_identity(parent) for parent in parents if parent.is_dir()}


def _identity(folder: str | Path) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _is_pdf(path: str) -> bool:
    return path.lower().endswith(".pdf")


def _pdf(path: str, base: str, info: Info) -> Pdf:
    """A PDF by its path, the folder names start from, and what a listing said of it."""
    name = (path[len(base) :] if base and path.startswith(base) else path) or path
    pdf = Pdf(name=name, path=path)
    fs, inner = filesystem(path, listed=True)
    local = isinstance(fs, LocalFileSystem)
    try:
        if local:
            status = os.stat(inner)
            if stat.S_ISDIR(status.st_mode):
                os.scandir(inner).close()
            if not stat.S_ISREG(status.st_mode):
                raise OSError("it is no regular file")
            return pdf.model_copy(update={"size": status.st_size, "stamp": str(status.st_mtime_ns)})
        # A time in a listing may differ from the one that the file alone has.
        if not info.get("ETag"):
            info = fs.info(inner)
        return pdf.model_copy(update={"size": info.get("size") or 0, "stamp": stamp_of(info)})
    except OSError as error:
        if not local:
            # Whether it alone is refused or everything is shows when it is fetched.
            if is_refusal(error) or is_refusal(error.__cause__):
                return pdf
            # A server that is busy or away says nothing of the PDF: to condemn it for that would
            # take its finished samples out of the dataset.
            if not isinstance(error, FileNotFoundError) or web_error(error):
                raise
        why = error.strerror or str(error)
        return pdf.model_copy(
            update={"fault": Fault.of(UnreadableFile(f"{name} cannot be read: {why}."))}
        )


def discover(run: Session, remember: bool = True) -> list[Pdf]:
    """Find, read and name the PDFs of the archive.

    A PDF whose name, size and time of change are those of the last run is not read again. Of
    several shards the first reads and names the PDFs for all, so that they agree.

    Args:
        run: The session.
        remember: Write down what was found, for the next run.

    Returns:
        All PDFs, sorted by name; those that cannot be worked have a fault.

    Raises:
        BadSettings: The source does not exist.
        StorageGone: It cannot be listed.
    """
    with alone(run.output, run.settings.shard if remember else ""):
        return _discover(run, remember)


def share(archive: list[Pdf], shard: str) -> list[Pdf]:
    """The PDFs whose pages a run works: all, or those that fall to its shard by their content.

    Args:
        archive: All PDFs.
        shard: ``I/N``, or empty for all.
    """
    worked = [pdf for pdf in archive if pdf.is_worked]
    if not shard:
        return worked
    index, count = map(int, shard.split("/"))
    return [pdf for pdf in worked if int(pdf.sha256 or "", 16) % count == index - 1]


def _discover(run: Session, remember: bool) -> list[Pdf]:
    known = {(pdf.name, pdf.size, pdf.stamp): pdf for pdf in last_time(run.output)}
    done: list[Pdf] = []
    fresh: list[Pdf] = []
    run.staging.archive = find_pdfs(run.settings.source, run.output)
    for pdf in run.staging.archive:
        old = known.get((pdf.name, pdf.size, pdf.stamp))
        if pdf.fault:
            done.append(pdf)
        elif old and _holds(run, old):
            done.append(old.model_copy(update={"path": pdf.path}))
        else:
            fresh.append(pdf)
    run.progress.start(len(fresh), "reading PDFs")
    with ThreadPoolExecutor(run.pool.workers + 1) as threads:
        for number, pdf in enumerate(threads.map(partial(_identify, run), fresh), start=1):
            run.progress.advance()
            done.append(pdf)
            if remember and number % SAVE_EVERY == 0:
                _remember(run, [*known.values(), *done])
    run.progress.stop()
    here = {pdf.sha256 for pdf in done}
    volumes = {p.sha256: p.volume for p in known.values() if p.volume and p.sha256 in here}
    archive = name_volumes(sorted(done, key=lambda pdf: pdf.name), volumes)
    if remember and archive != list(known.values()):
        _remember(run, archive)
    return archive


def _holds(run: Session, old: Pdf) -> bool:
    """Whether what the last run found out of a PDF is still to be believed."""
    if old.fault is None:
        return old.key == run.keys.facts
    return old.key == run.keys.limits and not old.fault.passing


def name_volumes(pdfs: list[Pdf], volumes: Mapping[str | None, str]) -> list[Pdf]:
    """Give each PDF the folder of its samples, and tell duplicates from first copies.

    Args:
        pdfs: Sorted by name.
        volumes: Names given by earlier runs, by SHA-256: they stay, whatever the file is called
            now.
    """
    taken = {volume.casefold() for volume in volumes.values()}
    first: dict[str, Pdf] = {}
    named = []
    for pdf in pdfs:
        if pdf.sha256 is None or pdf.fault:
            named.append(pdf)
            continue
        if pdf.sha256 in first:
            original = first[pdf.sha256]
            update: dict[str, str | None] = {
                "duplicate_of": original.name,
                "volume": original.volume,
            }
        else:
            volume = volumes.get(pdf.sha256, "")
            if not volume:
                volume = _free_name(pdf.name, pdf.sha256, taken)
                taken.add(volume)
            update = {"duplicate_of": None, "volume": volume}
        named.append(pdf.model_copy(update=update))
        first.setdefault(pdf.sha256, named[-1])
    return named


def _free_name(name: str, sha256: str, taken: set[str]) -> str:
    """The name of a PDF, with a hash if it is taken, and a number if even that is."""
    volume = slugify(Path(name).stem, max_length=VOLUME_LENGTH) or "volume"
    hashed = f"{volume}-{sha256[:8]}"
    names = chain([volume, hashed], (f"{hashed}-{number}" for number in count(2)))
    return next(each for each in names if each not in taken)


def last_time(output: Storage) -> Iterator[Pdf]:
    """What discovery found in the last run."""
    for line in output.lines(ARCHIVE):
        if pdf := from_line(line, Pdf):
            yield pdf


def _identify(run: Session, pdf: Pdf) -> Pdf:
    """Hash and open a PDF in a worker."""
    try:
        path = run.staging.fetch(pdf)
        try:
            pdf = pdf.model_copy(update={"sha256": ask(run, pdf, work.hash_file, path)})
            facts = ask(run, pdf, work.inspect, path, run.passwords(pdf))
            return pdf.model_copy(update={"facts": facts, "key": run.keys.facts})
        finally:
            run.staging.release(pdf)
    except InputFault as error:
        return pdf.model_copy(update={"fault": Fault.of(error), "key": run.keys.limits})


def ask(run: Session, pdf: Pdf, function: Callable[..., T], *args: Any) -> T:
    """Have a worker do something with a whole PDF.

    Args:
        run: The session.
        pdf: What it is about.
        function: Importable without Prefect and torch.
        args: Its arguments, the PDF's local path first.

    Raises:
        InputFault: It cannot.
    """
    job = Job(pdf, str(args[0]), function, args, extra_s=pdf.size / SLOWEST_READ)
    ((_, answer),) = run.map([job])
    if isinstance(answer, InputFault):
        raise answer
    return answer


def _remember(run: Session, pdfs: list[Pdf]) -> None:
    run.output.write(ARCHIVE, b"".join(map(to_line, pdfs)))


@task(name="discover", **RETRIED)
def discover_task() -> list[Pdf]:
    """Find the PDFs of the archive; see :func:`discover`."""
    return discover(session.current())
