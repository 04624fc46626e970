"""The verbs: one stage a module, a pure function first, a thin Prefect task beneath it."""
