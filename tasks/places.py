"""What a source or an output is called, and the filesystem it lies on."""

from __future__ import annotations

from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from models.errors import BadSettings
from models.settings import IN_URL, holds_password

ENVIRONMENT = "Give credentials by environment or profile; docs/s3.md says how."


def filesystem(place: str, listed: bool = False) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of a local path or an fsspec URL, and its own path of the place.

    Args:
        place: Path or URL.
        listed: Whether the storage itself gave it, in a listing: an @ in it is then no password's.

    Raises:
        BadSettings: There is no such filesystem here, or a password in the URL.
    """
    if not listed and holds_password(place):
        raise BadSettings(f"{IN_URL[0].upper()}{IN_URL[1:]}.", ENVIRONMENT)
    if "://" not in place:
        # Not left to fsspec, which takes "::" in a file's name for a chain of filesystems.
        return LocalFileSystem(), LocalFileSystem._strip_protocol(place)
    try:
        if is_s3(place):
            return _s3(place, place.partition("://")[2])
        fs, path = fsspec.url_to_fs(place)
    except (ImportError, ValueError) as error:
        cure = "pip install 'intaglio[s3]' for s3://." if isinstance(error, ImportError) else None
        raise BadSettings(f"{place}: {str(error).rstrip('.')}.", cure) from error
    return fs, str(path)


def is_s3(place: str) -> bool:
    """Whether a place lies on S3."""
    return place.startswith(("s3://", "s3a://"))


def _s3(place: str, path: str) -> tuple[Any, str]:
    if not path.partition("/")[0]:
        raise BadSettings(f"{place} names no bucket.", "Write s3://bucket/folder.")
    from tasks.s3 import client  # needs the extra

    return client(), path.rstrip("/")
