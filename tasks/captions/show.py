"""``report/captions.js``: the captions for the page of the report, which can read no CSV file.

Scoring comes before the hand-off: whichever ran last has written it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from models.handoff import Caption
from tasks.score.look import REPORT
from tasks.storage import Storage

SCRIPT = f"{REPORT}/captions.js"


def show_captions(output: Storage, captions: Mapping[str, Caption]) -> None:
    """Write ``const CAPTIONS``: text, source and picture of each caption by file name.

    Args:
        output: The dataset.
        captions: As in ``captions.csv``. The page shows those of the pictures it knows.
    """
    shown = {name: (said.text, said.source, said.picture) for name, said in captions.items()}
    script = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
    output.write(SCRIPT, f"const CAPTIONS = {script};\n".encode())
