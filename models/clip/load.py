"""Making the model that the settings name, or saying in one sentence why not."""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.clip.errors import ClipMissing, WeightsMismatch, WeightsUnreachable
from models.clip.settings import SMALL, ClipSettings
from models.errors import BadSettings

SHIPPED = Path(__file__).parent.parent / "weights" / "clip"
"""Folder of the small model, as open_clip's ``local-dir:`` wants it."""
LOCAL = "local-dir:"
CONFIG = "open_clip_config.json"
WEIGHTS = (".safetensors", ".bin", ".pth")
"""What open_clip takes for weights in a folder."""


@dataclass
class Loaded:
    """A model in memory.

    Attributes:
        model: The open_clip model, in evaluation mode.
        tokenizer: Its tokenizer: texts to (n, context) token ids.
        side: Of the images it takes, in pixels.
        mean: (3,) of the normalisation of its images.
        std: (3,) likewise.
    """

    model: Any
    tokenizer: Any
    side: int
    mean: NDArray[np.float32]
    std: NDArray[np.float32]


def load(settings: ClipSettings, device: str, precision: str) -> Loaded:
    """Make a model and load its weights.

    Args:
        settings: Which model.
        device: ``cpu`` or ``cuda``.
        precision: ``fp32`` or ``fp16``, as open_clip names them.

    Raises:
        ClipMissing: open_clip is not installed.
        BadSettings: There is no such architecture, tag or file.
        WeightsMismatch: The weights do not fit the architecture.
        WeightsUnreachable: The weights cannot be downloaded.
        RuntimeError: The GPU fails.
    """
    check(settings)
    import open_clip

    name, pretrained = resolve(settings)
    try:
        with _quiet():
            model = open_clip.create_model(
                name, pretrained, precision=precision, device=device, require_pretrained=True
            )
            tokenizer = open_clip.get_tokenizer(name)
    except Exception as error:
        if device == "cuda" and "CUDA" in str(error):
            raise
        raise _explain(settings, error, open_clip) from error
    shape = model.visual.preprocess_cfg
    side = shape["size"] if isinstance(shape["size"], int) else shape["size"][0]
    return Loaded(
        model.eval(),
        tokenizer,
        side,
        np.asarray(shape["mean"], np.float32),
        np.asarray(shape["std"], np.float32),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what open_clip and the hub log; what goes wrong is said once, by us."""
    root = logging.getLogger()
    if not root.handlers:
        # Else the first line logged would give the root logger a handler that stays.
        root.addHandler(logging.NullHandler())
    before = root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def resolve(settings: ClipSettings) -> tuple[str, str | None]:
    """Model and weights as open_clip wants them."""
    if settings.model == SMALL:
        return f"{LOCAL}{SHIPPED}", None
    if settings.pretrained.startswith(LOCAL):
        return settings.pretrained, None
    return settings.model, settings.pretrained


def describe(settings: ClipSettings) -> str:
    """What a report calls the model: architecture and weights, local ones with their hash."""
    pretrained = settings.pretrained
    if settings.model == SMALL:
        return f"{SMALL} (the small model that ships, {_digest(_weights(SHIPPED))})"
    if pretrained.startswith(LOCAL):
        return f"{pretrained} ({_digest(_weights(Path(pretrained.removeprefix(LOCAL))))})"
    if os.path.isfile(pretrained):
        name = os.path.basename(pretrained)
        return f"{settings.model}/{name} ({_digest([Path(pretrained)])})"
    return f"{settings.model}/{pretrained}"


def _weights(folder: Path) -> list[Path]:
    """What decides the embeddings of a model in a folder: its configuration and its weights."""
    return sorted(path for path in folder.glob("open_clip_*") if path.is_file())


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:8]


def check(settings: ClipSettings) -> None:
    """Refuse what is not there and what open_clip would only warn of; nothing is downloaded.

    Raises:
        ClipMissing: open_clip is not installed.
        BadSettings: There is no such architecture, tag or file.
        WeightsMismatch: The weights do not fit the architecture.
    """
    try:
        import open_clip
    except ImportError as error:
        raise ClipMissing(f"open_clip cannot be imported: {error}.") from error
    name, pretrained = resolve(settings)
    if pretrained is None:
        _check_folder(Path(name.removeprefix(LOCAL)))
    else:
        _check_names(settings, open_clip)


def _check_folder(folder: Path) -> None:
    if not (folder / CONFIG).is_file():
        raise BadSettings(f"clip.pretrained: there is no {folder / CONFIG}.")
    if not any(path.suffix in WEIGHTS for path in folder.iterdir()):
        raise BadSettings(f"clip.pretrained: {folder} has no weights (*{', *'.join(WEIGHTS)}).")


def _check_names(settings: ClipSettings, open_clip: Any) -> None:
    config = open_clip.get_model_config(settings.model)
    if config is None:
        known = difflib.get_close_matches(settings.model, open_clip.list_models(), 5, 0.3)
        raise BadSettings(
            f"clip.model: open_clip knows no {settings.model}.",
            f"Perhaps one of {', '.join(known)}; all: "
            "python -c 'import open_clip; print(open_clip.list_models())'",
        )
    tags = open_clip.list_pretrained_tags_by_model(settings.model)
    is_file = os.path.isfile(settings.pretrained)
    if not is_file and settings.pretrained not in tags:
        raise BadSettings(
            f"clip.pretrained: {settings.pretrained or 'an empty name'} is neither a file nor a "
            f"tag of {settings.model}.",
            f"Its tags: {', '.join(tags) or 'none'}.",
        )
    wanted = (
        _quick_gelu_of_file(settings.pretrained, open_clip)
        if is_file
        else open_clip.get_pretrained_cfg(settings.model, settings.pretrained).get("quick_gelu")
    )
    has = bool(config.get("quick_gelu"))
    if wanted is not None and bool(wanted) != has:
        base = settings.model.removesuffix("-quickgelu")
        raise WeightsMismatch(
            f"clip.model: {settings.pretrained} was trained {'with' if wanted else 'without'} "
            f"QuickGELU and {settings.model} is {'with' if has else 'without'} it.",
            f"Use --clip.model {base}{'-quickgelu' if wanted else ''}.",
        )


def _quick_gelu_of_file(path: str, open_clip: Any) -> bool | None:
    """Whether a file of weights was trained with QuickGELU; None if its name does not tell."""
    name = os.path.basename(path)
    for model, tag in open_clip.list_pretrained():
        config = open_clip.get_pretrained_cfg(model, tag)
        if name == os.path.basename(config.get("url", "")):
            return bool(config.get("quick_gelu"))
    return True if "quickgelu" in name else None


def _explain(settings: ClipSettings, error: Exception, open_clip: Any) -> Exception:
    what = describe(settings)
    is_tag = settings.pretrained in open_clip.list_pretrained_tags_by_model(settings.model)
    if "Failed to download" in str(error) or (is_tag and isinstance(error, OSError)):
        return WeightsUnreachable(f"The weights of {what} cannot be downloaded: {_first(error)}")
    if isinstance(error, FileNotFoundError):
        return BadSettings(f"clip.pretrained: {error}.")
    return WeightsMismatch(f"clip.pretrained: {what} cannot be loaded: {_first(error)}")


def _first(error: Exception) -> str:
    """The beginning of what a library said, which may go on for pages."""
    said = " ".join(str(error).split())
    return said if len(said) <= 200 else f"{said[:200]} ..."
