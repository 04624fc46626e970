"""The error family: what went wrong, what the user can do about it, and how the process ends.

Two branches matter to callers. A :class:`StopRun` ends the run with its exit code. An
:class:`InputFault` condemns one PDF or one page: it becomes a line in ``quarantine.jsonl`` and
everything else goes on.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """How ``python -m flows.NAME`` ends."""

    OK = 0
    """Every page is accounted for, quarantine included."""
    USAGE = 2
    """A bad setting or a bad command line; nothing was started."""
    STOPPED = 3
    """Stopped half-way and resumable: disk low, storage gone, output in use."""
    UNUSABLE = 4
    """Nothing usable in the source, or something quarantined under ``--strict``."""
    INTERRUPTED = 130
    """Interrupted by the user; resumable."""


class IntaglioError(Exception):
    """An error a user can act on.

    Args:
        message: What happened, naming the file or the setting.
        cure: What to do about it; the class's own cure if not given.
    """

    kind: ClassVar[str] = "error"
    cure: str = "Please report this with the message above."

    def __init__(self, message: str, cure: str | None = None) -> None:
        super().__init__(message, cure)
        self.message = message
        if cure is not None:
            self.cure = cure

    def __str__(self) -> str:
        return self.message


class StopRun(IntaglioError):
    """Ends the whole run."""

    exit_code: ClassVar[ExitCode] = ExitCode.STOPPED


class BadSettings(StopRun):
    """A setting is out of bounds, unknown or contradicts another."""

    kind = "bad_settings"
    exit_code = ExitCode.USAGE
    cure = "Correct the setting named above; `--help` lists every setting with its bounds."


class NothingUsable(StopRun):
    """The source holds no PDF with a readable page."""

    kind = "nothing_usable"
    exit_code = ExitCode.UNUSABLE
    cure = "Check the source; quarantine.jsonl says what was wrong with each file."


class DiskLow(StopRun):
    """Free space fell below the reserve."""

    kind = "disk_low"
    cure = "Free some space, and run the same command again."


class StorageGone(StopRun):
    """A read or write failed for a reason outside the input."""

    kind = "storage_gone"
    cure = "Check that the storage is reachable and writable, and run the same command again."


class StorageRefused(StorageGone):
    """The storage answers and says no: credentials, permissions, or a bucket that is not there."""

    kind = "storage_refused"
    cure = (
        "Check the credentials (for S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "AWS_PROFILE), what they may do, and this machine's clock, and run the same command again."
    )


class DamagedDataset(StopRun):
    """A line in a file of a finished dataset cannot be read."""

    kind = "damaged_dataset"
    cure = "Run python -m flows.verify --repair on the dataset."


class WorkersGone(StopRun):
    """No worker process can be started, or all that are die."""

    kind = "workers_gone"
    cure = "Free memory or lower --run.workers, and run the same command again."


class OutputInUse(StopRun):
    """Another run holds the lock of this output."""

    kind = "output_in_use"
    cure = "Wait for the other run to end, stop it, or choose another output."


class ServerGone(StopRun):
    """Prefect's server cannot be reached, or only fails."""

    kind = "server_gone"
    cure = (
        "Start it anew (prefect server start), or unset PREFECT_API_URL to run without one; the "
        "same command goes on from here."
    )


class InputFault(IntaglioError):
    """One PDF or one page cannot be worked; it is quarantined and the run goes on."""

    kind = "unexpected"


class EmptyFile(InputFault):
    """The file has no bytes."""

    kind = "empty_file"
    cure = "Fetch the file again; the download or copy never wrote anything."


class NotAPdf(InputFault):
    """The file is something else under a PDF's name."""

    kind = "not_a_pdf"
    cure = "Replace it by the real PDF; servers often send an error page under the PDF's name."


class TruncatedPdf(InputFault):
    """The end of the file is missing and no page could be saved."""

    kind = "truncated_pdf"
    cure = "Fetch the file again; the download was cut short."


class DamagedPdf(InputFault):
    """The structure is broken beyond the renderer's repair."""

    kind = "damaged_pdf"
    cure = "Try to repair it (for instance `qpdf broken.pdf repaired.pdf`) and run again."


class EncryptedPdf(InputFault):
    """A password is needed and none of those given opens it."""

    kind = "encrypted_pdf"
    cure = "Give the password with --read.passwords or --read.password-of and run again."


class NoPages(InputFault):
    """The PDF opens and has no page."""

    kind = "no_pages"
    cure = "Fetch the file again; a PDF without pages is usually a damaged one."


class UnreadableFile(InputFault):
    """The operating system refuses to read the file, or it vanished."""

    kind = "unreadable_file"
    cure = "Check the file's permissions and that it still exists, and run again."


class TooLargeForScratch(InputFault):
    """A remote PDF alone is larger than scratch may be."""

    kind = "too_large_for_scratch"
    cure = "Raise --run.scratch-budget-mb and run again."


class DamagedPage(InputFault):
    """The page cannot be rendered."""

    kind = "damaged_page"
    cure = "Open the page in a viewer; if it shows, please report it, else fetch the PDF again."


class PageTooLarge(InputFault):
    """Even at the lowest useful resolution the page needs more pixels than the budget."""

    kind = "page_too_large"
    cure = "Raise --read.max-megapixels and --run.worker-memory-mb if the machine has the memory."


class PageTimeout(InputFault):
    """The page took longer than its time limit and its worker was killed."""

    kind = "page_timeout"
    cure = "Raise --run.page-timeout-s and run again."


class WorkerDied(InputFault):
    """The worker process died on this page, twice."""

    kind = "worker_died"
    cure = "The page crashes the renderer; re-save the PDF (for instance with qpdf) and run again."


class WorkerKilled(WorkerDied):
    """The worker process was ended from outside while it was at this page, twice."""

    kind = "worker_killed"
    cure = (
        "Something outside ended the worker, perhaps the system for lack of memory. Run again; if "
        "it happens again, lower --run.workers."
    )


class OutOfMemory(InputFault):
    """The page needs more memory than a worker may have."""

    kind = "out_of_memory"
    cure = "Raise --run.worker-memory-mb, or lower --read.max-megapixels, and run again."
