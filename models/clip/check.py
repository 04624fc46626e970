"""Whether there is such a model, asked before hours of other work."""

from __future__ import annotations

import signal
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from models.clip.engine import choose_device
from models.clip.load import check
from models.clip.profile import check_place
from models.clip.settings import SMALL, ClipSettings


@cache
def check_model(settings: ClipSettings) -> None:
    """See that the settings name a model that open_clip knows, a GPU and files that are there.

    Weights are not fetched. A process of its own asks, because torch would stay in this one's
    memory through all that comes before the model is needed.

    Raises:
        ClipMissing: open_clip or torch is not installed.
        BadSettings: There is no such architecture, tag, file or GPU, or no place for the profile.
    """
    if settings.profile:
        check_place(settings.profile)
    if settings.model == SMALL and settings.device != "cuda":
        return
    # Ctrl-C reaches the whole group; this process says what there is to say.
    quiet = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(1, get_context("spawn"), signal.signal, quiet) as pool:
        pool.submit(_check, settings).result()


def _check(settings: ClipSettings) -> None:
    choose_device(settings)
    check(settings)
