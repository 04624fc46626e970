"""An engraver's block: tone and relief turned into lines, as a wood engraver cuts them.

A picture is built from parts, painted one over another. Each part is a closed outline with a
relief (how it swells towards the viewer) lit from the upper left. Its hatching lines are where
parallel planes cut that relief, so they wrap round sleeves and ride over folds, and each line
swells with the darkness it has to carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import cv2
import numpy as np

LIGHT = np.array([-0.52, -0.58, 0.63], np.float32)
"""Direction to the light: from the upper left, in front (x right, y down, z to the viewer)."""

_STEPS = np.arange(64, dtype=np.float32)
_SUBPIXEL = 4  # fractional bits OpenCV is given for anti-aliased polygons


def pts(text: str) -> np.ndarray:
    """Read points written as "x,y x,y …"; returns shape (n, 2), float32."""
    return np.array([pair.split(",") for pair in text.split()], np.float32)


def curve(points: object, closed: bool = False, steps: int = 10) -> np.ndarray:
    """Draw a smooth curve through points.

    Args:
        points: control points, shape (n, 2), any unit.
        closed: join the last point to the first.
        steps: samples between two control points.

    Returns:
        The Catmull-Rom curve, shape (m, 2), float32.
    """
    p = np.asarray(points, np.float32)
    if closed:
        p = np.vstack([p[-1:], p, p[:2]])
    else:
        p = np.vstack([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    a, b, c, d = p[:-3, None], p[1:-2, None], p[2:-1, None], p[3:, None]
    t = _STEPS[:steps, None] / steps
    out = 0.5 * (
        2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * (b - c) + d - a) * t**3
    )
    out = out.reshape(-1, 2)
    return out if closed else np.vstack([out, p[-2:-1]])


def smooth_noise(shape: tuple[int, int], cell: float, rng: np.random.Generator) -> np.ndarray:
    """Make soft noise with features about `cell` pixels wide, roughly within -1..1, float32."""
    h, w = shape
    small = rng.standard_normal((int(h / cell) + 3, int(w / cell) + 3), np.float32)
    return cv2.resize(small, (w, h), interpolation=cv2.INTER_CUBIC) * 0.6


@dataclass
class Cut:
    """How one part is engraved.

    Attributes:
        tone: base darkness, 0 white to 1 black.
        angle: direction of the hatching lines, degrees, 0 = level.
        contrast: how strongly light and shade show.
        rim: width of the rounded edge as a share of the part's greatest half-width; 0 = flat.
        bulge: how far the relief bends the hatching lines.
        folds: number of folds across the part's width, 0 for none.
        fold_depth: depth of the folds at the hem, pixels.
        edge: width of the outline, pixels; 0 for none.
        pitch: distance between lines, as a multiple of the block's.
        stripes: bands of pattern woven across the part's width; 0 for none.
        grain: strength of random tone, as in foliage and fur.
        wander: how far lines stray, in pitches.
        fade: share of the part's height over which it thins out to nothing at its foot.
        dye: colour washed over it by hand on a coloured plate, R, G, B.
    """

    tone: float = 0.3
    angle: float = 0.0
    contrast: float = 0.7
    rim: float = 1.0
    bulge: float = 0.5
    folds: int = 0
    fold_depth: float = 14.0
    edge: float = 2.2
    pitch: float = 1.0
    stripes: int = 0
    grain: float = 0.0
    wander: float = 0.35
    fade: float = 0.0
    dye: tuple[int, int, int] = (255, 255, 255)


@dataclass
class Block:
    """A block under the graver.

    Attributes:
        width: pixels.
        height: pixels.
        rng: source of every irregularity.
        pitch: distance between two hatching lines, pixels.
        ink: (height, width) uint8, 255 where the block prints solid ink.
        shade: (height, width) float32, the tone the lines stand for, 0 white to 1 black.
        cover: (height, width) uint8, 255 where a part has been painted.
        tint: (height, width, 3) uint8, R, G, B washes of a coloured plate, else None.
        photo: put pen strokes into the shade too, as a photograph would show them.
        coloured: keep washes of colour.
    """

    width: int
    height: int
    rng: np.random.Generator
    pitch: float = 5.0
    photo: bool = False
    coloured: bool = False
    ink: np.ndarray = field(init=False)
    shade: np.ndarray = field(init=False)
    cover: np.ndarray = field(init=False)
    tint: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Start with an empty block."""
        self.ink = np.zeros((self.height, self.width), np.uint8)
        self.shade = np.zeros((self.height, self.width), np.float32)
        self.cover = np.zeros((self.height, self.width), np.uint8)
        if self.coloured:
            self.tint = np.full((self.height, self.width, 3), 255, np.uint8)

    def part(self, outline: np.ndarray, cut: Cut) -> None:
        """Paint one part over what is there.

        Args:
            outline: closed polygon, shape (n, 2), block pixels; may leave the block.
            cut: how to engrave it.
        """
        x0, y0 = np.maximum(np.floor(outline.min(0)).astype(int) - 2, 0)
        x1 = min(int(outline[:, 0].max()) + 3, self.width)
        y1 = min(int(outline[:, 1].max()) + 3, self.height)
        if x1 - x0 < 3 or y1 - y0 < 3:
            return
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        local = ((outline - (x0, y0)) * (1 << _SUBPIXEL)).astype(np.int32)
        cv2.fillPoly(mask, [local], 255, cv2.LINE_AA, _SUBPIXEL)
        relief = self._relief(mask, cut)
        tone = self._lit(relief, mask, cut)
        lines = self.hatch(tone, cut, relief, (x0, y0))
        alpha = mask.astype(np.float32) / 255
        here = np.s_[y0:y1, x0:x1]
        self.ink[here] = (self.ink[here] * (1 - alpha) + lines * 255 * alpha).astype(np.uint8)
        self.shade[here] = self.shade[here] * (1 - alpha) + tone * alpha
        self.cover[here] = np.maximum(self.cover[here], mask)
        if self.tint is not None:
            self.tint[here][mask > 127] = cut.dye
        if cut.edge:
            self.contour(outline, cut.edge, cut.fade)

    def solid(self, outline: np.ndarray, ink: int = 255) -> None:
        """Fill a closed polygon (n, 2) with plain black, or white with `ink` 0."""
        local = (outline * (1 << _SUBPIXEL)).astype(np.int32)
        cv2.fillPoly(self.ink, [local], ink, cv2.LINE_AA, _SUBPIXEL)
        if self.photo:
            cv2.fillPoly(self.shade, [local], 0.9 if ink else 0.05, cv2.LINE_8, _SUBPIXEL)

    def shadow(
        self, outline: np.ndarray, cut: Cut, soft: float, within: np.ndarray | None = None
    ) -> None:
        """Cast a shadow over what is there, fading out at its edges.

        Args:
            outline: closed polygon, shape (n, 2), block pixels; may leave the block.
            cut: darkness and direction of its lines.
            soft: width of the fading edge, pixels.
            within: closed polygon beyond which nothing falls.
        """
        pad = int(soft * 2) + 2
        x0, y0 = np.maximum(np.floor(outline.min(0)).astype(int) - pad, 0)
        x1 = min(int(outline[:, 0].max()) + pad, self.width)
        y1 = min(int(outline[:, 1].max()) + pad, self.height)
        if x1 - x0 < 3 or y1 - y0 < 3:
            return
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        cv2.fillPoly(mask, [(outline - (x0, y0)).astype(np.int32)], 255)
        tone = cv2.GaussianBlur(mask.astype(np.float32) / 255, (0, 0), max(soft, 0.5)) * cut.tone
        if cut.grain:
            tone *= np.clip(
                1 + cut.grain * smooth_noise(mask.shape, self.pitch * 3, self.rng), 0, 2
            )
        if within is not None:
            mask[:] = 0
            cv2.fillPoly(mask, [(within - (x0, y0)).astype(np.int32)], 1)
            tone *= mask
        here = np.s_[y0:y1, x0:x1]
        lines = (self.hatch(tone, cut, None, (x0, y0)) * 255).astype(np.uint8)
        self.ink[here] = np.maximum(self.ink[here], lines)
        self.shade[here] = 1 - (1 - self.shade[here]) * (1 - tone)

    def _relief(self, mask: np.ndarray, cut: Cut) -> np.ndarray:
        """Swell a mask into a relief with rounded rims and hanging folds, pixels of height."""
        relief = np.zeros(mask.shape, np.float32)
        solid = (mask > 127).astype(np.uint8)
        if cut.folds:
            return self._folds(solid, cut)
        if cut.rim:
            deep = cv2.distanceTransform(np.pad(solid, 1), cv2.DIST_L2, 5)[1:-1, 1:-1]
            rim = max(float(deep.max()) * cut.rim, 1.0)
            t = np.clip(deep / rim, 0, 1)
            relief += rim * np.sqrt(1 - (1 - t) ** 2)
            # The distance to the edge has a crease along the middle; a blur takes it out.
            relief = cv2.GaussianBlur(relief, (0, 0), max(rim / 7, 0.8))
        return relief

    def _folds(self, solid: np.ndarray, cut: Cut) -> np.ndarray:
        """Hang folds which fan out from the top of the part to its hem, pixels of height."""
        h, w = solid.shape
        rows = solid.any(1)
        left = np.where(rows, solid.argmax(1), 0).astype(np.float32)
        right = np.where(rows, w - solid[:, ::-1].argmax(1), w).astype(np.float32)
        across = (np.arange(w, dtype=np.float32)[None] - left[:, None]) / np.maximum(
            right - left, 1
        )[:, None]
        down = np.linspace(0, 1, h, dtype=np.float32)[:, None]
        body = 0.3 * (right - left)[:, None] * np.sqrt(np.clip(1 - (2 * across - 1) ** 2, 0, 1))
        body = cv2.GaussianBlur(body, (0, 0), 6)
        across = across + 0.02 * np.sin(down * 9 + self.rng.uniform(0, 6))
        wave = np.zeros(solid.shape, np.float32)
        for share in (1.0, 0.55, 0.4):
            turns = cut.folds * self.rng.uniform(0.6, 1.5)
            wave += share * np.cos(2 * np.pi * turns * across + self.rng.uniform(0, 6.3))
        return body + cut.fold_depth * (0.15 + 0.85 * down**0.8) * wave * 0.55

    def _lit(self, relief: np.ndarray, mask: np.ndarray, cut: Cut) -> np.ndarray:
        """Light a relief; returns its darkness, 0 to 1."""
        gx = cv2.Sobel(relief, cv2.CV_32F, 1, 0, ksize=3) / 8
        gy = cv2.Sobel(relief, cv2.CV_32F, 0, 1, ksize=3) / 8
        lit = (LIGHT[2] - gx * LIGHT[0] - gy * LIGHT[1]) / np.sqrt(1 + gx * gx + gy * gy)
        tone = cut.tone + cut.contrast * (LIGHT[2] - lit)
        if cut.grain:
            tone += cut.grain * smooth_noise(mask.shape, self.pitch * 3, self.rng)
        if cut.stripes:
            w = mask.shape[1]
            band = np.sin(np.arange(w, dtype=np.float32) / w * 2 * np.pi * cut.stripes)
            tone += 0.35 * (band > 0.35)[None]
        if cut.fade:
            foot = np.linspace(1, -0.3, mask.shape[0], dtype=np.float32)[:, None] / cut.fade
            foot = foot + 0.12 * smooth_noise(mask.shape, self.pitch * 2, self.rng)
            tone = np.clip(tone, 0, 1) * np.clip(foot, 0, 1)
        return np.clip(tone, 0, 1)

    def hatch(
        self, tone: np.ndarray, cut: Cut, relief: np.ndarray | None, origin: tuple[int, int]
    ) -> np.ndarray:
        """Turn tone into lines.

        Args:
            tone: (h, w) darkness, 0 to 1.
            cut: direction, pitch and unsteadiness of the lines.
            relief: (h, w) height in pixels, or None for a flat surface.
            origin: x, y of the tone's corner in the block, so that neighbours' lines meet.

        Returns:
            (h, w) ink coverage, 0 to 1.
        """
        h, w = tone.shape
        ys, xs = np.mgrid[0:h, 0:w].astype(np.float32)
        xs += origin[0]
        ys += origin[1]
        pitch = self.pitch * cut.pitch
        wander = smooth_noise((h, w), pitch * 14, self.rng) * pitch * cut.wander
        wander += smooth_noise((h, w), pitch * 3, self.rng) * pitch * 0.06
        if relief is not None:
            wander += relief * cut.bulge
        swell = smooth_noise((h, w), pitch * 2.2, self.rng) * 0.035
        ink = np.zeros((h, w), np.float32)
        # One set of lines carries light tones; a second crosses it in shade, a third in the dark.
        for turn, start, gain in ((0, 0.02, 0.95), (52, 0.42, 0.9), (-38, 0.74, 1.2)):
            weight = np.clip((tone - start) * gain, 0, 0.9)
            if not turn:
                weight = np.minimum(weight, 0.56 + 0.3 * np.clip(tone - 0.6, 0, 1))
            if weight.max() < 0.03:
                continue
            theta = math.radians(cut.angle + turn)
            phase = (ys * math.cos(theta) - xs * math.sin(theta) + wander) / pitch
            gx = cv2.Sobel(phase, cv2.CV_32F, 1, 0, ksize=1) / 2
            gy = cv2.Sobel(phase, cv2.CV_32F, 0, 1, ksize=1) / 2
            slope = np.maximum(2 * np.sqrt(gx * gx + gy * gy), 0.05)
            off = np.abs(2 * (phase - np.floor(phase)) - 1)
            line = np.clip((weight + swell - off) / slope + 0.5, 0, 1)
            line *= weight > 0.02
            ink = 1 - (1 - ink) * (1 - line)
        return ink

    def contour(self, outline: np.ndarray, width: float, fade: float = 0.0) -> None:
        """Draw a part's outline, heavier on the side away from the light, gone at a fading foot."""
        step = np.roll(outline, -1, 0) - outline
        area = np.sum(outline[:, 0] * step[:, 1] - outline[:, 1] * step[:, 0])
        normal = np.stack([step[:, 1], -step[:, 0]], 1) * np.sign(area)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-6)
        facing = normal @ LIGHT[:2]
        widths = width * (1 - 0.45 * facing / 0.78)
        if fade:
            y = outline[:, 1]
            widths *= np.clip((y.max() - y) / max(np.ptp(y) * fade, 1) - 0.4, 0, 1)
        self.ribbon(np.vstack([outline, outline[:1]]), np.append(widths, widths[:1]))

    def stroke(self, points: object, width: float, ink: int = 255, taper: float = 1.0) -> None:
        """Draw a smooth pen stroke which thins towards both ends.

        Args:
            points: control points (n, 2), block pixels.
            width: pixels at the middle.
            ink: 255 black, 0 a white line cut through black.
            taper: 0 for even width, 1 to thin to nothing.
        """
        path = curve(points, steps=8)
        t = np.linspace(-1, 1, len(path), dtype=np.float32)
        self.ribbon(path, width * (1 - taper * t**2 * 0.85), ink)

    def ribbon(self, path: np.ndarray, widths: np.ndarray, ink: int = 255) -> None:
        """Fill the band along a path whose width varies, (n, 2) and (n,) pixels."""
        step = np.gradient(path, axis=0)
        side = np.stack([-step[:, 1], step[:, 0]], 1)
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-6)
        widths = np.asarray(widths)
        side *= widths[:, None] / 2
        left, right = path + side, path - side
        # OpenCV draws at least a hairline, so what has thinned to nothing must be left out.
        if widths.min() > 0.3:
            self.solid(np.vstack([left, right[::-1]]), ink)
            return
        drawn = np.flatnonzero(widths > 0.3)
        for run in np.split(drawn, np.flatnonzero(np.diff(drawn) > 1) + 1):
            if len(run) > 1:
                self.solid(np.vstack([left[run], right[run][::-1]]), ink)

    def wash(self, tone: np.ndarray, cut: Cut) -> None:
        """Engrave a whole-block tone (height, width) beneath everything drawn so far."""
        lines = (self.hatch(tone, cut, None, (0, 0)) * 255).astype(np.uint8)
        self.ink = np.maximum(self.ink, lines)
        self.shade = np.maximum(self.shade, tone)

    def halftone(self, cell: float = 3.4) -> np.ndarray:
        """Screen the shade into round dots at 45 degrees, as a process block does.

        Args:
            cell: distance between dots, pixels.

        Returns:
            (height, width) uint8 ink.
        """
        ys, xs = np.mgrid[0 : self.height, 0 : self.width].astype(np.float32)
        u, v = (xs + ys) * np.pi / cell / 1.414, (xs - ys) * np.pi / cell / 1.414
        screen = 0.5 + 0.25 * (np.cos(u * 2) + np.cos(v * 2))
        return (np.clip((self.shade - screen) * 2.2 + 0.5, 0, 1) * 255).astype(np.uint8)
