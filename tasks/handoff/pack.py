"""A bundle in one file, to take it to another machine."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable

from tasks.package import new_member
from tasks.storage import Storage


def pack(bundle: Storage, names: Iterable[str], target: Storage, name: str) -> None:
    """Pack a bundle in a ZIP with a folder of its name, the same bytes every time.

    Links are followed.

    Args:
        bundle: Where it lies.
        names: Of its files; what a trainer or a person has put there is not among them.
        target: Where the ZIP goes.
        name: Of folder and ZIP.
    """
    with (
        target.writer(f"{name}.zip") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        for file in sorted(names):
            member = new_member(f"{name}/{file}")
            # Told beforehand, for files of 4 GB and more.
            member.file_size = bundle.size(file) or 0
            with bundle.reader(file) as source, archive.open(member, "w") as packed:
                shutil.copyfileobj(source, packed, 1 << 20)
