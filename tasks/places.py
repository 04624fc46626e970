"""What a source or an output is called, and the filesystem it lies on."""

from __future__ import annotations

from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from models.errors import BadSettings


def filesystem(place: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of a local path or an fsspec URL, and its own path of the place.

    Raises:
        BadSettings: There is no such filesystem here.
    """
    if "://" not in place:
        # Not left to fsspec, which takes "::" in a file's name for a chain of filesystems.
        return LocalFileSystem(), LocalFileSystem._strip_protocol(place)
    scheme, _, rest = place.partition("://")
    if ":" in rest.partition("/")[0].rpartition("@")[0]:
        raise BadSettings(
            f"{scheme}://...@...: a URL with a password would be written into logs and results.",
            "Give credentials by environment or profile; docs/s3.md says how.",
        )
    try:
        if is_s3(place):
            return _s3(place, rest)
        fs, path = fsspec.url_to_fs(place)
    except (ImportError, ValueError) as error:
        if "@" in rest:
            # It may be a password that breaks the URL, and the error may quote it.
            raise BadSettings(
                f"{scheme}://... is no URL that can be opened ({type(error).__name__})."
            ) from None
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
