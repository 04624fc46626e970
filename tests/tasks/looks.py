"""What calibration sees of pages, made up."""

from __future__ import annotations

from models.calibrate import CalibrateSettings, Label, SeenPage
from models.records import Detection, Pdf, PdfFacts, Region, RegionKind
from tasks.calibrate.sample import draw


def pdf(name: str, pages: int, content: str | None = None) -> Pdf:
    sha256 = (content or name).encode().hex().ljust(64, "0")[:64]
    return Pdf(
        name=name, path=name, sha256=sha256, facts=PdfFacts(page_count=pages), volume=f"v-{pages}"
    )


def seen(
    name: str, index: int, area: float, label: Label | None = None, **more: Region
) -> SeenPage:
    page = draw([pdf(name, index + 1)], 1000, {})[index].model_copy(update={"label": label})
    region = Region(
        box=(0.25, 0.5, 0.75, 0.5 + 2 * area), kind=RegionKind.ENGRAVING, confidence=0.9
    )
    regions = [region] if area else []
    found = Detection(score=area, regions=[*regions, *more.values()])
    sigma = Detection(score=40 + 40 * area)
    detections = {"layout": found, "blobs": found, "sigma": sigma}
    return SeenPage(page=page, detections=detections, size=(800, 1100))


SETTINGS = CalibrateSettings(source="scans", output="out")
