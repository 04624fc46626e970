"""open_clip's trainer: a table with tabs between ``filepath`` and ``title``.

The options are those of open_clip_torch 3.3.0, the version on PyPI; the repository has more.
"""

from __future__ import annotations

import csv
import io

from tasks.handoff.content import IMAGES, TRAIN, Content

TABLE = "train.tsv"
BATCH = 32


def write(content: Content) -> None:
    """Write the bundle."""
    content.pictures(IMAGES)
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
    writer.writerow(("filepath", "title"))
    writer.writerows((f"{IMAGES}/{s.image}", s.caption) for s in content.samples)
    content.write(TABLE, stream.getvalue())
    content.script(
        TRAIN,
        "CLIP fine-tuning with open_clip (pip install open_clip_torch[training]).",
        [
            "python", "-m", "open_clip_train.main",
            "--train-data", TABLE,
            "--dataset-type", "csv",
            "--csv-img-key", "filepath",
            "--csv-caption-key", "title",
            "--model", "ViT-B-32",
            "--pretrained", "laion2b_s34b_b79k",
            # A batch that is not full is left out: of fewer samples nothing would be trained.
            "--batch-size", min(BATCH, len(content.samples)),
            "--epochs", 5,
            "--lr", "5e-6",
            "--wd", 0.1,
            "--warmup", 50,
            "--workers", 2,
            "--precision", "amp",
            "--logs", "output",
            "--name", "clip",
            "--save-most-recent",
            "--resume", "latest",
            "--seed", content.plan.seed,
        ],
    )  # fmt: skip
