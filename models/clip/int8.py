"""The image tower in INT8, run by ONNX Runtime, and the gate it has to pass.

Weights are quantised a channel at a time and to seven bits (``reduce_range``): with all eight,
processors without VNNI instructions overflow in their 16-bit sums, and centred embeddings lose a
tenth of their direction.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.clip.engine import ClipEngine, Vectors, processors
from models.clip.errors import Int8Refused
from models.clip.settings import ClipSettings
from models.errors import InputFault

LEAST_COSINE = 0.99
"""Mean centred cosine with fp32 that INT8 must reach."""
MOST_FLIPPED = 0.01
"""Share of keep/drop decisions that must stay below this."""
logger = logging.getLogger("intaglio.clip")


@dataclass(frozen=True)
class Int8Check:
    """How INT8 compares with fp32 on some images.

    Attributes:
        images: How many.
        cosine: Mean cosine between the two, after the mean vector is taken from each: raw cosines
            are all near one, because all embeddings of a model share a direction.
        flipped: Share of the decisions that differ.
    """

    images: int
    cosine: float
    flipped: float

    @property
    def passed(self) -> bool:
        """Whether INT8 may be used."""
        return self.cosine >= LEAST_COSINE and self.flipped < MOST_FLIPPED


def check_int8(
    settings: ClipSettings,
    images: Sequence[tuple[str, Callable[[], bytes]]],
    decide: Callable[[Sequence[str], Vectors], NDArray[np.bool_]],
) -> Int8Check:
    """Compare INT8 with fp32 on the user's own samples.

    Args:
        settings: The model; its precision does not matter.
        images: Some samples, as :meth:`ClipEngine.embed_images` takes them. Those that cannot be
            read are left out.
        decide: (n) names and (n, dim) unit vectors to (n,) keep or drop.

    Returns:
        The figures, which pass the gate.

    Raises:
        Int8Refused: They do not; the message holds them.
    """
    found = []
    for precision in ("fp32", "int8"):
        changed = settings.model_copy(
            update={"precision": precision, "device": "cpu", "profile": ""}
        )
        with ClipEngine(changed) as engine:
            vectors = dict(engine.embed_images(images))
        found.append({name: v for name, v in vectors.items() if not isinstance(v, InputFault)})
    names = [name for name in found[0] if name in found[1]]
    exact, fast = (np.stack([vectors[name] for name in names]) for vectors in found)
    check = compare(exact, fast, partial(decide, names))
    if not check.passed:
        raise Int8Refused(
            f"clip.precision: int8 is not used. On {check.images} samples its centred cosine with "
            f"fp32 is {check.cosine:.4f} (at least {LEAST_COSINE} is wanted) and it decides "
            f"{check.flipped:.2%} of them otherwise (less than {MOST_FLIPPED:.0%} is wanted)."
        )
    return check


def compare(exact: Vectors, fast: Vectors, decide: Callable[[Vectors], Any]) -> Int8Check:
    """Compare two sets of embeddings of the same images, each (n, dim)."""
    a, b = exact - exact.mean(axis=0), fast - exact.mean(axis=0)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine = float(np.mean((a * b).sum(axis=1) / np.maximum(norms, 1e-12)))
    flipped = float(np.mean(np.asarray(decide(exact)) != np.asarray(decide(fast))))
    return Int8Check(len(exact), cosine, flipped)


def int8_tower(visual: Any, side: int) -> Callable[[Vectors], Vectors]:
    """The image tower as ONNX Runtime runs it, exported once and kept in the cache.

    Args:
        visual: The torch image tower.
        side: Of the images it takes, in pixels.

    Returns:
        (n, 3, side, side) to (n, dim) unit vectors.
    """
    import onnxruntime

    path = cache_folder() / f"{_digest(visual)}-{onnxruntime.__version__}.int8.onnx"
    if not path.exists():
        logger.info("Making the INT8 image tower, once; it is kept at %s ...", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _export(visual, side, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = processors()
    # The arena keeps what the largest batch took until the session ends.
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def tower(pixels: Vectors) -> Vectors:
        features: Vectors = session.run(None, {"pixels": pixels})[0]
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        return features

    return tower


def cache_folder() -> Path:
    """Where towers are kept: ``$XDG_CACHE_HOME/intaglio/clip``."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "intaglio" / "clip"


def _digest(visual: Any) -> str:
    """A name for the tower made of its weights."""
    digest = hashlib.sha256()
    for name, value in sorted(visual.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().contiguous().numpy())
    return digest.hexdigest()[:16]


def _export(visual: Any, side: int, path: Path) -> None:
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(dir=path.parent) as folder, _quiet():
        exact, ready, small = (str(Path(folder) / f"{name}.onnx") for name in ("a", "b", "c"))
        fused = torch.backends.mha.get_fastpath_enabled()
        # The exporter does not know torch's fused attention.
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            torch.onnx.export(
                visual,
                (torch.zeros(2, 3, side, side),),
                exact,
                input_names=["pixels"],
                output_names=["features"],
                dynamic_axes={"pixels": {0: "n"}, "features": {0: "n"}},
                opset_version=17,
                dynamo=False,
            )
        finally:
            torch.backends.mha.set_fastpath_enabled(fused)
        quant_pre_process(exact, ready, skip_symbolic_shape=True)
        quantize_dynamic(
            ready,
            small,
            op_types_to_quantize=["MatMul", "Gemm"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )
        os.replace(small, path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's deprecation notes and the quantiser's advice from the user."""
    import warnings

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
