"""Metrics and images of a training, to TensorBoard and, if there is a server, to MLflow."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from models.errors import BadSettings
from models.train import TrainerMissing
from tasks.storage import Storage

FOLDER = "tensorboard"
RUN = "mlflow.json"
"""Which run of MLflow's this is, so that a resumed training goes on in it."""
EXPERIMENT, MODEL = "intaglio", "intaglio-lora"
"""Names at MLflow."""
PATIENCE_S = 10
"""Seconds its server may take for its first answer."""
logger = logging.getLogger("intaglio.train")


def check_tracking(tracking_uri: str) -> None:
    """Ask MLflow's server once, shortly, before hours of work that are to be told there.

    Args:
        tracking_uri: Of MLflow; empty takes MLFLOW_TRACKING_URI, and without that nothing is asked.

    Raises:
        TrainerMissing: MLflow is asked for and not installed.
        BadSettings: Its server does not answer, or refuses.
    """
    uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        return
    if find_spec("mlflow") is None:
        raise TrainerMissing(
            f"tracking_uri {uri} needs MLflow.",
            "pip install mlflow-skinny, or unset MLFLOW_TRACKING_URI.",
        )
    if not uri.startswith("http"):
        # What is on this machine answers at once.
        return
    from mlflow import MlflowClient
    from mlflow.environment_variables import (
        MLFLOW_HTTP_REQUEST_MAX_RETRIES,
        MLFLOW_HTTP_REQUEST_TIMEOUT,
    )

    limits = {
        MLFLOW_HTTP_REQUEST_MAX_RETRIES.name: "1",
        MLFLOW_HTTP_REQUEST_TIMEOUT.name: str(PATIENCE_S),
    }
    before = {name: os.environ.get(name) for name in limits}
    os.environ.update(limits)
    try:
        with _named(uri):
            MlflowClient(uri, uri).get_experiment_by_name(EXPERIMENT)
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _named(uri: str) -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise BadSettings(
            f"tracking_uri: MLflow at {uri} refuses: {error.message}",
            "Start its server, correct the address, or unset MLFLOW_TRACKING_URI.",
        ) from error


class Log:
    """Where a training tells how it is doing.

    Args:
        output: Of the training; TensorBoard's files lie there if it is on the local disk.
        tracking_uri: Of MLflow; empty for none.
        start: Step the training goes on from; what TensorBoard has beyond it is taken back.
        about: Settings and hashes.

    Raises:
        BadSettings: MLflow refuses.
    """

    def __init__(
        self, output: Storage, tracking_uri: str, start: int, about: dict[str, Any]
    ) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._output = output
        self._board: Any = None
        if output.local:
            self._board = SummaryWriter(output.path(FOLDER), purge_step=start + 1)
        self._client: Any = None
        self._run = ""
        uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI", "")
        if uri:
            self._begin(uri, about)

    def _begin(self, uri: str, about: dict[str, Any]) -> None:
        from mlflow import MlflowClient

        with _named(uri):
            self._client = MlflowClient(uri, uri)
            self._run = self._same_run(uri) or self._new_run(uri, about)

    def _same_run(self, uri: str) -> str:
        try:
            return str(json.loads(self._output.read(RUN)).get(uri, ""))
        except FileNotFoundError:
            return ""

    def _new_run(self, uri: str, about: dict[str, Any]) -> str:
        found = self._client.get_experiment_by_name(EXPERIMENT)
        experiment = found.experiment_id if found else self._client.create_experiment(EXPERIMENT)
        run = str(self._client.create_run(experiment).info.run_id)
        for key, value in about.items():
            self._client.log_param(run, key, value)
        self._output.write(RUN, json.dumps({uri: run}).encode())
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._board is not None:
            self._board.close()
        self._tell("set_terminated", self._run, "FAILED" if error else "FINISHED")

    def number(self, name: str, value: float, step: int) -> None:
        """Tell a metric."""
        if self._board is not None:
            self._board.add_scalar(name, value, step)
        self._tell("log_metric", self._run, name, value, step=step)

    def image(self, name: str, image: Any, step: int) -> None:
        """Show a Pillow image."""
        import numpy as np

        if self._board is not None:
            self._board.add_image(name, np.asarray(image), step, dataformats="HWC")
        self._tell("log_image", self._run, image, artifact_file=f"images/{name}-{step}.png")

    def register(self, files: Mapping[str, bytes], tags: dict[str, str]) -> None:
        """Hand the finished files over, and register them as a version of a model."""
        if self._client is not None:
            with self._unless_lost():
                self._register(files, tags)

    def _tell(self, method: str, *arguments: Any, **named: Any) -> None:
        """Tell MLflow, if there is one."""
        if self._client is not None:
            with self._unless_lost():
                getattr(self._client, method)(*arguments, **named)

    @contextmanager
    def _unless_lost(self) -> Iterator[None]:
        """A server that is lost costs a warning, not the training."""
        from mlflow.exceptions import MlflowException

        try:
            yield
        except (MlflowException, OSError) as error:
            self._client = None
            # A database that MLflow brings up to date has all loggers there are switched off
            # (Alembic).
            logger.disabled = False
            logger.warning("MLflow is lost, and the training goes on without it: %s", error)

    def _register(self, files: Mapping[str, bytes], tags: dict[str, str]) -> None:
        import tempfile

        from mlflow.exceptions import MlflowException

        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                path = Path(folder) / name
                path.write_bytes(data)
                self._client.log_artifact(self._run, str(path), "lora")
        for key, value in tags.items():
            self._client.set_tag(self._run, key, value)
        try:
            self._client.create_registered_model(MODEL)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        source = f"{self._client.get_run(self._run).info.artifact_uri}/lora"
        self._client.create_model_version(MODEL, source, self._run, tags=tags)
