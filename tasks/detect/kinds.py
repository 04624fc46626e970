"""What a region shows, told from its pixels."""

from __future__ import annotations

import cv2
import numpy as np

from models.records import RegionKind
from tasks.detect.page import Gray, Mask, PixelBox


def picture_kind(gray: Gray, box: PixelBox) -> RegionKind:
    """Line art or photograph."""
    return RegionKind.ENGRAVING


def ruled_kind(ink: Mask, box: PixelBox) -> RegionKind:
    """Music or table: a table has long lines across the long lines."""
    x0, y0, x1, y1 = box
    part = ink[y0:y1, x0:x1]
    down = cv2.morphologyEx(part, cv2.MORPH_OPEN, np.ones((max(8, (y1 - y0) // 4), 1), np.uint8))
    across = cv2.morphologyEx(part, cv2.MORPH_OPEN, np.ones((1, max(8, (x1 - x0) // 4)), np.uint8))
    return RegionKind.TABLE if down.any() and across.any() else RegionKind.MUSIC
