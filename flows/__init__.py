"""The sentences: each flow one module, each run by ``python -m flows.NAME``.

Prefect reads its settings when it is first imported, so what a quiet local run needs is set here,
before any flow imports it. Whatever the user has set stays.
"""

import os

_QUIET = {
    # The heartbeat of the telemetry meets the ephemeral server's busy database at nearly every
    # start and prints a traceback of 150 lines.
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # The default of 20 s is too short where processors are slow or shared.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    # Progress in the logs of a run that Prefect started.
    "PREFECT_LOGGING_EXTRA_LOGGERS": "intaglio",
    # Workers are processes: threads inside NumPy's libraries would only fight them.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
for _name, _value in _QUIET.items():
    os.environ.setdefault(_name, _value)
