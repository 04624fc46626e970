"""Finding the illustrations on a page: measures, regions and a score; the verdict is elsewhere.

Three methods stand behind one interface: ``sigma`` (the article's rule), ``blobs`` (classical,
without a model) and ``layout`` (a small network, the default). They run in worker processes, on
one page image at a time, and import neither torch nor Prefect.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.errors import BadSettings
from models.records import Detection, PageFacts
from tasks.detect.blobs import BlobsDetector
from tasks.detect.layout import WEIGHTS, LayoutDetector
from tasks.detect.sigma import SigmaDetector

METHODS = ("sigma", "blobs", "layout")


class Detector(Protocol):
    """A way of finding illustrations.

    Attributes:
        name: The method's name, one of `METHODS`.
        version: Changes whenever the results of the method change; part of the ledger's key.
    """

    name: str
    version: str

    def render_dpi(self, page: PageFacts) -> float:
        """The resolution, in pixels per inch, of the grey page image the method wants."""
        ...

    def __call__(self, gray: NDArray[np.uint8]) -> Detection:
        """Look at a page as displayed, (H, W) uint8: its regions, in reading order, and measures.

        Any array gives a verdict and never an exception, however strange the page.
        """
        ...


@cache
def make_detector(method: str, weights: str = "") -> Detector:
    """The detector of that name, made once in a process.

    Args:
        method: One of `METHODS`.
        weights: Folder of weights for ``layout``; those that come with the project if empty.

    Raises:
        BadSettings: No method has that name, or the weights are not there.
    """
    if method == "sigma":
        return SigmaDetector()
    if method == "blobs":
        return BlobsDetector()
    if method == "layout":
        try:
            return LayoutDetector(Path(weights) if weights else WEIGHTS)
        except OSError as error:
            raise BadSettings(f"triage.weights: {error.filename}: {error.strerror}.") from error
        except ValueError as error:
            raise BadSettings(f"triage.weights: {error}") from error
    raise BadSettings(f"Unknown detection method {method!r}; one of {', '.join(METHODS)}.")
