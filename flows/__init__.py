"""The sentences: each flow one module, each run by ``python -m flows.NAME``.

Prefect reads its settings when it is first imported, so what a quiet local run needs is set here,
before any flow imports it. Whatever the user has set stays.
"""

import os
import tempfile
from pathlib import Path

_QUIET = {
    # The heartbeat of the telemetry meets the ephemeral server's busy database at nearly every
    # start and prints a traceback of 150 lines.
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # The default of 20 s is too short where processors are slow or shared.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    # A call to a server that is gone is given up after 2 + 4 + 8 s instead of a minute, to one that
    # hangs after four times 30 s.
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    "PREFECT_API_REQUEST_TIMEOUT": "30",
    # What goes wrong is said by us, once; the temporary server's own errors are not the user's.
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    # Progress in the logs of a run that Prefect started.
    "PREFECT_LOGGING_EXTRA_LOGGERS": "intaglio",
    # Reading the PDFs begins before the flow run does.
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    # Workers are processes: threads inside NumPy's libraries would only fight them.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
for _name, _value in _QUIET.items():
    os.environ.setdefault(_name, _value)


def _can_write(folder: Path) -> bool:
    """Whether a folder can be made and written: for root, some only fail when it comes to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


# Where the home folder cannot be written, Prefect would try for three minutes and give up.
# A user the system does not know, in a container, has none.
_home = os.path.expanduser("~")
if "PREFECT_HOME" not in os.environ and (_home == "~" or not _can_write(Path(_home) / ".prefect")):
    os.environ["PREFECT_HOME"] = str(Path(tempfile.gettempdir()) / f"prefect-{os.getuid()}")
