"""Pictures in a bundle: their names, and hard links to the dataset's own files, or copies."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from models.handoff import BundleSample, Caption
from models.records import Sample
from tasks.storage import Storage, named_errors


def name_samples(samples: Iterable[Sample], captions: Mapping[str, Caption]) -> list[BundleSample]:
    """Names for a folder without subfolders: ``volume-p0012-1.jpg``.

    kohya tries a second caption file for names with five or more parts between underscores, and
    WebDataset takes everything after the first dot for the suffix: names have neither. No two
    pictures share a stem, as they would share a caption.
    """
    named: list[BundleSample] = []
    taken: set[str] = set()
    for sample in samples:
        stem, _, suffix = sample.file_name.rpartition(".")
        plain = re.sub(r"[^A-Za-z0-9]+", "-", stem.removeprefix("images/")).strip("-")
        if plain.casefold() in taken:
            plain = f"{plain}-{sample.sha256[:8]}"
        taken.add(plain.casefold())
        named.append(
            BundleSample(
                image=f"{plain}.{suffix}",
                caption=captions[sample.file_name].text,
                file_name=sample.file_name,
                width=sample.width,
                height=sample.height,
                bytes=sample.bytes,
                sha256=sample.sha256,
                pdf=sample.pdf,
                page_index=sample.page_index,
                kind=sample.kind,
            )
        )
    return named


def place(dataset: Storage, name: str, bundle: Storage, target: str) -> None:
    """Put a file of the dataset into a bundle.

    A hard link, else a copy, as on another filesystem: a symbolic link would be dead where the
    bundle is moved. On object storage the server copies.

    Raises:
        FileNotFoundError: The dataset has no such file.
        DiskLow: There is no room for a copy.
        StorageGone: The storage failed.
    """
    source, end = dataset.path(name), bundle.path(target)
    bundle.fence()
    if dataset.local and bundle.local:
        with named_errors(f"linking {end}"):
            _link(Path(source), Path(end))
    elif dataset.fs is bundle.fs:
        with named_errors(f"copying {end}"):
            dataset.fs.cp_file(source, end)
    else:
        bundle.write(target, dataset.read(name))


def _link(source: Path, target: Path) -> None:
    source.stat()
    with suppress(FileNotFoundError):
        if not target.is_symlink() and os.path.samefile(source, target):
            return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except OSError:
        with suppress(FileNotFoundError):
            # A copy has the time of its picture.
            if not target.is_symlink() and filecmp.cmp(source, target):
                return
        shutil.copy2(source, partial)
    os.replace(partial, target)


def one_filesystem(dataset: Storage, bundles: Storage) -> bool:
    """Whether the dataset's pictures can be linked rather than copied."""
    if not (dataset.local and bundles.local):
        return False
    place = Path(bundles.path())
    while not place.exists():
        place = place.parent
    return place.stat().st_dev == os.stat(dataset.path()).st_dev
