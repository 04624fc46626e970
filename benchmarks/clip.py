"""The table one chooses a CLIP model by: speed, latency, memory, size, published accuracy.

python -m benchmarks.clip
python -m benchmarks.clip --model print --model ViT-B-32-256 --precision fp32 --batch 1 --batch 8
python -m benchmarks.clip --list

Weights that cannot be reached are made at random: speed, memory and size do not depend on them.
Each line is measured in a process of its own, on as many processors as this one may use
(``taskset -c 0 python -m benchmarks.clip`` for one). *bare* is the image tower on tensors already
in memory, *streamed* the engine from JPEG files to vectors.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from PIL import Image
from rich.console import Console
from rich.table import Table

DEFAULTS = ("print", "ViT-B-32-256", "ViT-B-16", "ViT-L-14")
PUBLISHED: dict[str, tuple[float, str]] = {
    "ViT-B-32": (69.2, "datacomp_xl_s13b_b90k"),
    "ViT-B-32-256": (72.8, "datacomp_s34b_b86k"),
    "ViT-B-16": (73.5, "datacomp_xl_s13b_b90k"),
    "ViT-L-14": (79.2, "datacomp_xl_s13b_b90k"),
}
"""Zero-shot accuracy on ImageNet in per cent, and the weights it was published for, as
open_clip's ``docs/openclip_results.csv`` states them."""
SIDE = 1024
"""Longer side of the pictures that are streamed, as extraction writes them."""


def pictures(count: int) -> list[bytes]:
    """JPEG files like samples: soft shapes under fine lines."""
    rng = np.random.default_rng(0)
    files = []
    for _ in range(min(count, 8)):
        tone = np.kron(rng.integers(60, 256, (8, 6)), np.ones((SIDE // 8, SIDE // 8)))
        lines = 40 * np.sin(np.arange(SIDE)[:, None] * rng.uniform(0.5, 1.5))
        gray = np.clip(tone + lines + rng.normal(0, 8, tone.shape), 0, 255).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(gray).convert("RGB").save(stream, "JPEG", quality=92)
        files.append(stream.getvalue())
    return [files[n % len(files)] for n in range(count)]


def measure(model: str, precision: str, batch: int, images: int) -> dict[str, float | str]:
    """One line of the table, in this process."""
    import open_clip
    import torch

    from models.clip.engine import ClipEngine
    from models.clip.errors import WeightsUnreachable
    from models.clip.int8 import cache_folder
    from models.clip.settings import ClipSettings

    with tempfile.TemporaryDirectory() as folder:
        wanted = ClipSettings(model=model, precision=precision, batch_size=batch)  # type: ignore[arg-type]
        if model != "print":
            tag = PUBLISHED.get(model, (0.0, ""))[1]
            wanted = wanted.model_copy(update={"pretrained": tag})
            try:
                ClipEngine(wanted).embed_texts(["a"])
            except WeightsUnreachable:
                torch.manual_seed(0)
                random = Path(folder) / "random.pt"
                torch.save(open_clip.create_model(model).state_dict(), random)
                wanted = wanted.model_copy(update={"pretrained": str(random)})
        with ClipEngine(wanted) as engine:
            side = engine._load().side
            visual = engine._load().model.visual
            size = (
                max(path.stat().st_size for path in cache_folder().iterdir())
                if visual is None
                else sum(value.numel() * value.element_size() for value in visual.parameters())
            )
            pixels = np.random.default_rng(0).random((batch, 3, side, side), np.float32)
            engine._forward(pixels)
            times = []
            while len(times) < 3 or (len(times) * batch < images and sum(times) < 60):
                start = time.perf_counter()
                engine._forward(pixels)
                times.append(time.perf_counter() - start)
            files = [("x", lambda data=data: data) for data in pictures(max(images, 6 * batch))]
            start = time.perf_counter()
            streamed = sum(1 for _ in engine.embed_images(files))  # type: ignore[arg-type]
            streamed_s = time.perf_counter() - start
    return {
        "bare": batch / float(np.median(times)),
        "streamed": streamed / streamed_s,
        "p50": 1000 * float(np.percentile(times, 50)),
        "p99": 1000 * float(np.percentile(times, 99)),
        "memory": psutil.Process().memory_info().rss / 1e6,
        "size": size / 1e6,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.clip",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", action="append", help=f"architecture ({', '.join(DEFAULTS)})")
    parser.add_argument("--precision", action="append", choices=["fp32", "int8"])
    parser.add_argument("--batch", action="append", type=int, help="images a batch (1, 8, 32)")
    parser.add_argument("--images", type=int, default=64, help="images for each line")
    parser.add_argument("--list", action="store_true", help="list architectures and their weights")
    parser.add_argument("--line", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.line:
        print(json.dumps(measure(**json.loads(given.line))))
        return
    if given.list:
        import open_clip

        for model in open_clip.list_models():
            print(model, *open_clip.list_pretrained_tags_by_model(model))
        return
    table = Table("model", "precision", "batch", "bare /s", "streamed /s", "p50 ms", "p99 ms",
                  "memory MB", "tower MB", "published")  # fmt: skip
    console = Console(width=130)
    for model in given.model or DEFAULTS:
        for precision in given.precision or ("fp32", "int8"):
            if model == "print" and precision == "int8":
                continue
            for batch in given.batch or (1, 8, 32):
                line = {"model": model, "precision": precision, "batch": batch}
                found = _in_a_process({**line, "images": given.images})
                accuracy, tag = PUBLISHED.get(model, (0.0, ""))
                table.add_row(
                    model,
                    precision,
                    str(batch),
                    f"{found['bare']:.1f}",
                    f"{found['streamed']:.1f}",
                    f"{found['p50']:.0f}",
                    f"{found['p99']:.0f}",
                    f"{found['memory']:.0f}",
                    f"{found['size']:.1f}",
                    f"{accuracy} % ({tag})" if tag else "-",
                )
    console.print(table)
    console.print(f"{len(os.sched_getaffinity(0))} processors, median of the batches")


def _in_a_process(line: dict[str, object]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.clip", "--line", json.dumps(line)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
