"""Copy a remote file to standard output: how shards on S3 reach the trainer, without the disk.

python -m tasks.finetune.stream s3://bucket/shard-00000.tar
"""

from __future__ import annotations

import shutil
import sys

from tasks.places import filesystem


def main() -> None:
    """Copy the file named on the command line."""
    fs, path = filesystem(sys.argv[1])
    with fs.open(path, "rb") as stream:
        shutil.copyfileobj(stream, sys.stdout.buffer, 1 << 20)


if __name__ == "__main__":
    main()
