"""The same print scanned again: what differs between two scans, copies or reprints of one plate."""

from __future__ import annotations

import cv2
import numpy as np

Gray = np.ndarray
"""(H, W) uint8."""
MARGIN = 0.08
"""Paper around a picture, of its longer side, of which a scan shows some on each side."""


def rescan(picture: Gray, rng: np.random.Generator, bilevel: float = 0.2) -> Gray:
    """Scan a picture again: smaller, askew, cut otherwise, paler, shaded, grainy, compressed.

    Args:
        picture: Ink on paper.
        rng: Decides all of it.
        bilevel: How often the scanner knows black and white only.
    """
    paper = float(np.median(np.r_[picture[0], picture[-1], picture[:, 0], picture[:, -1]]))
    pad = int(MARGIN * max(picture.shape))
    sheet = cv2.copyMakeBorder(picture, *[pad] * 4, cv2.BORDER_CONSTANT, value=paper)
    height, width = sheet.shape
    scale = rng.uniform(0.55, 1.0)
    warp = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-1.2, 1.2), scale)
    warp[:, 2] += np.array([width, height]) * (scale - 1) / 2
    warp[0, 0] *= rng.uniform(0.985, 1.015)
    size = int(width * scale), int(height * scale)
    scan = cv2.warpAffine(sheet, warp, size, flags=cv2.INTER_AREA, borderValue=paper)
    top, bottom, left, right = (int(rng.uniform(0, 1.9 * pad * scale)) for _ in range(4))
    scan = scan[top : scan.shape[0] - bottom, left : scan.shape[1] - right]
    tone = cv2.GaussianBlur(scan.astype(np.float32) / 255, (0, 0), rng.uniform(0.3, 1.2))
    tone = np.clip(tone, 0, 1) ** rng.uniform(0.7, 1.5)
    black, white = rng.uniform(0, 0.2), rng.uniform(0.75, 1)
    shade = np.linspace(1, rng.uniform(0.8, 1), tone.shape[1], dtype=np.float32)
    tone = (black + (white - black) * tone) * shade
    tone += rng.normal(0, rng.uniform(0.005, 0.03), tone.shape)
    scan = np.clip(255 * tone, 0, 255).astype(np.uint8)
    quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.uniform(50, 92))]
    scan = cv2.imdecode(cv2.imencode(".jpg", scan, quality)[1], cv2.IMREAD_GRAYSCALE)
    if rng.random() < bilevel:
        scan = cv2.threshold(scan, 0, 255, cv2.THRESH_OTSU)[1]
    return scan
