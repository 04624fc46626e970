"""Ending what killed runs left behind.

Prefect's temporary server is a process of its own: when its run is killed it stays for ever, with
190 MB of memory and a hand on Prefect's database. The flow run, too, stays "Running" for ever.
"""

from __future__ import annotations

import os
from contextlib import suppress
from uuid import UUID

import psutil
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.states import Crashed

from tasks.ledger import STATE
from tasks.storage import Storage

MARK = "_INTAGLIO_RUN"
"""Environment variable that names the run a process belongs to; child processes inherit it."""
FLOW_RUN = f"{STATE}/flow-run"
"""Id of the flow run that worked the output last."""


def mark_children() -> None:
    """Let every process started from here on be recognised as this run's."""
    os.environ[MARK] = str(os.getpid())


def end_orphans() -> int:
    """End the processes whose run is no more.

    Returns:
        How many there were.
    """
    ended = 0
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK)
            # A number given anew since only keeps an orphan alive; that is the harmless mistake.
            if mark and _counts_as_we_do(process.pid) and not psutil.pid_exists(int(mark)):
                process.terminate()
                ended += 1
        except (psutil.Error, OSError, ValueError):
            continue
    return ended


def succeed_flow_run(output: Storage, shard: str) -> None:
    """Take an output over from the flow run that had it last; it is Crashed if it says "Running".

    Args:
        output: Held by the flow run that asks, so that no other can be at work on it.
        shard: ``I/N`` if only this shard of it is held.
    """
    mine = flow_run.get_id() or ""
    record = f"{FLOW_RUN}-{shard.replace('/', '-of-')}" if shard else FLOW_RUN
    try:
        last = output.read(record).decode(errors="replace")
    except FileNotFoundError:
        last = mine
    if last != mine:
        with get_client(sync_client=True) as client, suppress(ObjectNotFound, ValueError):
            state = client.read_flow_run(UUID(last)).state
            if state and state.is_running():
                told = f"Its process was killed; flow run {mine} goes on with its work."
                client.set_flow_run_state(UUID(last), Crashed(message=told), force=True)
    output.write(record, mine.encode())


def _counts_as_we_do(pid: int) -> bool:
    """Whether a process has our process numbers; in a container they are others."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except FileNotFoundError:  # not Linux
        return True
