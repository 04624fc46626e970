"""Keys of the ledger: fingerprints of just those settings which decide a record's content."""

from __future__ import annotations

from collections.abc import Sequence

from models.records import PageRecord, Region
from models.settings import Settings, fingerprint
from tasks.detect import make_detector
from tasks.work import Recipe

LOOKS_VERSION = 2
"""Raise when triage measures differently with the same settings."""
CUTS_VERSION = 4
"""Raise when extraction makes other pixels with the same settings."""


READING_VERSION = 1
"""Raise when PDFs are opened differently, so that what could not be read gets another chance."""


class Keys:
    """The keys of one run.

    Args:
        settings: The run's settings.

    Attributes:
        recipe: The settings that decide a sample's pixels.
        look: Key of what triage sees.
        facts: Key of what a PDF says of itself.
        limits: Fingerprint of the limits and passwords that may cure a fault.
    """

    def __init__(self, settings: Settings) -> None:
        read, regions, run = settings.read, settings.regions, settings.run
        self.recipe = Recipe(
            read_dpi=None if read.dpi == "native" else read.dpi,
            max_pixels=round(read.max_megapixels * 1e6),
            margin=regions.margin if regions.unit == "illustration" else 0.0,
            clean=settings.clean,
            fit=settings.fit,
            encode=settings.encode,
        )
        detector = make_detector(settings.triage.method, settings.triage.weights)
        self.look = fingerprint(LOOKS_VERSION, detector.name, detector.version, read.max_megapixels)
        passwords: list[object] = [password.get_secret_value() for password in read.passwords]
        passwords += [(name, word.get_secret_value()) for name, word in read.password_of.items()]
        self.facts = fingerprint(READING_VERSION)
        self.limits = fingerprint(
            READING_VERSION,
            run.page_timeout_s,
            run.worker_memory_mb,
            run.scratch_budget_mb,
            passwords,
        )

    def cut(self, volume: str, regions: Sequence[Region]) -> str:
        """Key of a page's samples."""
        return fingerprint(CUTS_VERSION, self.recipe, volume, *regions)

    def fault(self, key: str) -> str:
        """Key of a fault in place of a record: other limits give the page another chance."""
        return fingerprint(key, self.limits)

    def valid(self, record: PageRecord, key: str) -> bool:
        """Whether a record holds for this run."""
        if record.fault is None:
            return record.key == key
        return record.key == self.fault(key) and not record.fault.passing
