"""The original article's rule: a page is illustrated if its grey varies much."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.records import Detection, PageFacts
from tasks.detect.page import fit, read_ink, to_gray8


class SigmaDetector:
    """Standard deviation of grey at 144 dpi.

    ``score`` is the standard deviation, 0 to 127.5; the article keeps pages above 45. It judges
    whole pages and finds no regions. Kept so that the article's results can be reproduced: on
    real scans it answers worse than chance (see ``docs/detection.md``).
    """

    name = "sigma"
    version = "1"

    def render_dpi(self, page: PageFacts) -> float:
        """144 dpi: the article's ``Matrix(2, 2)``; the figure depends on the resolution."""
        return 144.0

    def __call__(self, gray: NDArray[np.uint8]) -> Detection:
        """Measure a page, (H, W) uint8."""
        page = to_gray8(gray)
        ink = read_ink(fit(page, 512))
        sigma = float(page.std())
        return Detection(
            score=sigma, measures={"sigma": sigma, "ink": ink.ink_share}, blank=ink.blank
        )
