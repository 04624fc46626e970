"""How Prefect treats our tasks: storage that failed is asked again, a bad input never is."""

from __future__ import annotations

from typing import Any

from prefect.cache_policies import NO_CACHE

from models.errors import StorageGone, StorageRefused


def _may_pass(task: Any, run: Any, state: Any) -> bool:
    """Whether the failure may pass by itself."""
    return isinstance(state.data, StorageGone) and not isinstance(state.data, StorageRefused)


RETRIED: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": [2, 10, 30],
    "retry_condition_fn": _may_pass,
    # The ledger is the memory of what is done; results are small and pass in memory.
    "cache_policy": NO_CACHE,
    "persist_result": False,
}
"""Arguments of every ``@task``."""
