"""Lines that are no print: the rims of a scan's border and the edges of the paper."""

from __future__ import annotations

import cv2
import numpy as np

from tasks.detect.page import Mask, components

BAND = 0.06
"""How far from the page's edges such lines are looked for, as a fraction of its longer side."""
LEAST_LENGTH = 0.2
"""Their least length, as a fraction of the side they run along."""
GAP = 0.018
"""They may be broken by about as much (same unit as `BAND`)."""
MOST_WIDTH = 0.018
"""What is wider (same unit) is an area: a dark border, or a picture to the edge."""
STEP = 4
"""They are followed in steps of so many pixels."""


def scan_lines(ink: Mask) -> Mask:
    """(H, W) mask of thin lines along the page's edges that run into an edge.

    Pictures and their frames often touch them, and must not be taken for a part of them. The
    frame of a plate does not run into the edge.

    Args:
        ink: (H, W) mask of the page's ink.
    """
    found = np.zeros_like(ink)
    side = max(ink.shape)
    band = max(4, round(BAND * side))
    for turns in range(4):
        # Turned so that the side looked at is the left one.
        page, lines = np.rot90(ink, turns)[:, :band], np.rot90(found, turns)[:, :band]
        steps = page.shape[0] // STEP
        if not steps:
            continue
        strip = page[: steps * STEP].reshape(steps, STEP, -1).max(axis=1)
        labels, stats = components(_upright(strip, round(GAP * side / STEP)))
        wanted = stats[:, cv2.CC_STAT_WIDTH] <= MOST_WIDTH * side
        top, height = stats[:, cv2.CC_STAT_TOP], stats[:, cv2.CC_STAT_HEIGHT]
        wanted &= (top == 0) | (top + height == steps)
        wanted[0] = False
        lines[: steps * STEP][np.repeat(wanted[labels], STEP, axis=0)] = 255
    return cv2.dilate(found, np.ones((3, 3), np.uint8)).astype(np.uint8, copy=False)


def _upright(strip: Mask, gap: int) -> Mask:
    """What is left of a strip if only long upright lines are, broken by `gap` rows at most."""
    # Scans are a little askew: a line is a pixel wider than it is.
    wide = cv2.dilate(strip, np.ones((1, 3), np.uint8))
    # Kernels of odd length have a middle, and shift nothing.
    whole = cv2.morphologyEx(wide, cv2.MORPH_CLOSE, np.ones((gap | 1, 1), np.uint8))
    least = np.ones((round(LEAST_LENGTH * len(strip)) | 1, 1), np.uint8)
    # An opening takes for granted that lines go on beyond the page, unless told otherwise.
    long = cv2.morphologyEx(
        whole, cv2.MORPH_OPEN, least, borderType=cv2.BORDER_CONSTANT, borderValue=0
    )
    return long.astype(np.uint8, copy=False)
