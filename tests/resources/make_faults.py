"""One tiny PDF for each fault, always the same.

    python -m tests.resources.make_faults FOLDER

``fault_pdf.py`` says what most of them show.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.resources import fault_codings, fault_files, fault_pictures

MAKERS = fault_files.FAULTS | fault_pictures.FAULTS | fault_codings.FAULTS


def make(folder: Path) -> dict[str, Path]:
    """Writes all faults into a folder, which is made if need be.

    Returns:
        The files by the fault's name, which is also the file's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.pdf" for name in MAKERS}
    for name, file in files.items():
        file.write_bytes(MAKERS[name]())
    return files


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.resources.make_faults FOLDER")
    for written in make(Path(sys.argv[1])).values():
        print(written)
