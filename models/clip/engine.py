"""The CLIP engine: images and texts to unit vectors, on whatever the machine has.

    with ClipEngine(ClipSettings()) as clip:
        for name, vector in clip.embed_images([("a.jpg", path.read_bytes)]):
            ...

Nothing is loaded before the first use, and leaving the block gives all memory back. An engine
belongs to one thread.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from models.clip.errors import ClipMissing
from models.clip.load import Loaded, describe, load
from models.clip.pixels import prepare
from models.clip.profile import Profile
from models.clip.settings import SMALL, ClipSettings
from models.errors import BadSettings, InputFault

AHEAD = 3
"""Batches that are decoded or wait while one is embedded."""
TEXTS = 64
"""Texts a batch."""
logger = logging.getLogger("intaglio.clip")

Vectors = NDArray[np.float32]
Images = Iterable[tuple[str, Callable[[], bytes]]]


class ClipEngine:
    """Embeds images and texts with the model the settings name.

    Args:
        settings: Which model, where and how exactly.

    Attributes:
        settings: The same.
        small: Whether it is the small model that ships.

    Raises:
        BadSettings: The profile cannot be written where it is wanted.
    """

    def __init__(self, settings: ClipSettings) -> None:
        self.settings = settings
        self.small = settings.model == SMALL
        self._loaded: Loaded | None = None
        self._tower: Callable[[Vectors], Vectors] | None = None
        self._profile = Profile(settings.profile) if settings.profile else None
        self._device = ""
        self._batch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if self._profile is not None:
            self._profile.close()

    def close(self) -> None:
        """Give back all memory; the next use loads the model again."""
        was_on_gpu = self._device == "cuda"
        if self._profile is not None:
            self._profile.end()
        self._loaded = self._tower = None
        self._device = ""
        gc.collect()
        if was_on_gpu:
            import torch

            with suppress(RuntimeError):  # a GPU that was lost cannot be tidied
                torch.cuda.empty_cache()
        if sys.platform == "linux":
            # glibc keeps what was freed unless it is asked.
            ctypes.CDLL(None).malloc_trim(0)

    @property
    def name(self) -> str:
        """What scored it, for reports: architecture, weights and precision."""
        return f"{self._what} {self._precision()}"

    @cached_property
    def _what(self) -> str:
        """Architecture and weights; of a file it takes reading it once."""
        return describe(self.settings)

    @property
    def logit_scale(self) -> float:
        """What cosines are multiplied by to become the model's logits."""
        return float(self._load().model.logit_scale.detach().exp())

    @property
    def batch_size(self) -> int:
        """Images a batch, as it is now: it halves where a GPU's memory is short."""
        self._load()
        return self._batch

    def embed_images(self, images: Images) -> Iterator[tuple[str, Vectors | InputFault]]:
        """Embed images as they come, decoding some batches ahead in threads.

        Args:
            images: Names, and functions that give the bytes of a whole image file. They are
                called in threads.

        Yields:
            Each name, in the order given, with a (dim,) unit vector, or with what is wrong with
            that image.

        Raises:
            StopRun: The model cannot be loaded, or storage is gone.
        """
        loaded = self._load()
        source = iter(images)
        waiting: deque[tuple[str, Future[Vectors | InputFault]]] = deque()
        with ThreadPoolExecutor(min(4, processors()), "decode") as pool:
            try:
                while True:
                    room = (1 + AHEAD) * self._batch - len(waiting)
                    for name, read in itertools.islice(source, max(0, room)):
                        args = (name, read, loaded.side, loaded.mean, loaded.std)
                        waiting.append((name, pool.submit(prepare, *args)))
                    if not waiting:
                        return
                    count = min(self._batch, len(waiting))
                    batch = [waiting.popleft() for _ in range(count)]
                    yield from self._embed_batch([(name, job.result()) for name, job in batch])
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed texts: (n, dim) unit vectors."""
        batches = (texts[start : start + TEXTS] for start in range(0, len(texts), TEXTS))
        parts = [self._encode(list(batch)) for batch in batches]
        return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)

    def embed_prompts(self, prompts: Mapping[str, Sequence[str]]) -> Vectors:
        """Embed one ensemble of prompts a class: averaged, then normalised again.

        Args:
            prompts: The classes and their texts.

        Returns:
            (classes, dim) unit vectors in the order of the mapping.
        """
        return np.stack([_unit(self.embed_texts(texts).mean(axis=0)) for texts in prompts.values()])

    def _embed_batch(
        self, batch: list[tuple[str, Vectors | InputFault]]
    ) -> Iterator[tuple[str, Vectors | InputFault]]:
        good = [pixels for _, pixels in batch if not isinstance(pixels, InputFault)]
        vectors = iter(self._forward(np.stack(good)) if good else ())
        for name, pixels in batch:
            yield name, pixels if isinstance(pixels, InputFault) else next(vectors)

    def _forward(self, pixels: Vectors) -> Vectors:
        """(n, 3, side, side) to (n, dim); on the processor where the GPU fails."""
        import torch

        self._load()
        assert self._tower is not None
        try:
            return self._tower(pixels)
        except RuntimeError as error:
            if self._device != "cuda":
                raise
            short = isinstance(error, torch.OutOfMemoryError)
            reason = str(error).splitlines()[0]
        # Outside the handler, whose traceback would keep the batch's memory.
        if short and len(pixels) > 1:
            self._batch = max(1, len(pixels) // 2)
            logger.warning("Out of GPU memory: going on with batches of %d.", self._batch)
            torch.cuda.empty_cache()
            halves = np.array_split(pixels, [self._batch])
            return np.concatenate([self._forward(half) for half in halves if len(half)])
        self._leave_gpu(reason)
        return self._forward(pixels)

    def _encode(self, texts: list[str]) -> Vectors:
        """Up to `TEXTS` texts to (n, dim); on the processor where the GPU fails."""
        import torch

        loaded = self._load()
        try:
            with torch.inference_mode():
                tokens = loaded.tokenizer(texts).to(self._device)
                features: Vectors = (
                    loaded.model.encode_text(tokens, normalize=True).float().cpu().numpy()
                )
                return features
        except RuntimeError as error:
            if self._device != "cuda":
                raise
            reason = str(error).splitlines()[0]
        self._leave_gpu(reason)
        return self._encode(texts)

    def _leave_gpu(self, reason: str) -> None:
        """Go on with the processor."""
        logger.warning("The GPU fails (%s): going on with the processor.", reason)
        self.close()
        self._load("cpu")

    def _precision(self) -> str:
        if self.settings.precision != "auto":
            return self.settings.precision
        return "fp16" if (self._device or choose_device(self.settings)) == "cuda" else "fp32"

    def _load(self, device: str = "") -> Loaded:
        if self._loaded is not None:
            return self._loaded
        self._device = device or choose_device(self.settings)
        import torch

        torch.set_num_threads(processors())
        torch.backends.cudnn.benchmark = True
        precision = self._precision()
        auto = 32 if self._device == "cuda" else 8
        self._batch = auto if self.settings.batch_size == "auto" else self.settings.batch_size
        half = precision == "fp16"
        logger.info("Loading %s ...", self._what)
        try:
            loaded = load(self.settings, self._device, "fp16" if half else "fp32")
        except RuntimeError as error:
            if self._device != "cuda":
                raise
            reason = str(error).splitlines()[0]
            logger.warning("The GPU fails (%s): going on with the processor.", reason)
            return self._load("cpu")
        if precision == "int8":
            from models.clip.int8 import int8_tower

            self._tower = int8_tower(loaded.model.visual, loaded.side)
            # ONNX Runtime has the image tower now.
            loaded.model.visual = None
        else:
            self._tower = _torch_tower(loaded.model, self._device, half)
        if self._profile is not None:
            self._tower = self._profile.watch(self._tower, self._device)
        self._loaded = loaded
        return loaded


def choose_device(settings: ClipSettings) -> str:
    """``cuda`` or ``cpu``, as the settings and the machine have it.

    Raises:
        ClipMissing: torch is not installed.
        BadSettings: A GPU is asked for and there is none.
    """
    try:
        import torch
    except ImportError as error:
        raise ClipMissing(f"torch cannot be imported: {error}.") from error
    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        raise BadSettings("clip.device: there is no GPU that torch can use.", "Use cpu or auto.")
    if settings.precision == "int8" or settings.device == "cpu" or not there:
        return "cpu"
    return "cuda"


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _torch_tower(model: Any, device: str, half: bool) -> Callable[[Vectors], Vectors]:
    import torch

    kind = torch.float16 if half else torch.float32

    def tower(pixels: Vectors) -> Vectors:
        with torch.inference_mode():
            images = torch.from_numpy(pixels).to(device, kind)
            features: Vectors = model.encode_image(images, normalize=True).float().cpu().numpy()
            return features

    return tower


def _unit(vector: Vectors) -> Vectors:
    return (vector / np.linalg.norm(vector)).astype(np.float32)
