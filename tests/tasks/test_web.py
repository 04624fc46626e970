"""PDFs on the web, named in a list: one at a time, and never more than scratch may take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from models.errors import DiskLow, StorageGone, StorageRefused, TooLargeForScratch, UnreadableFile
from models.records import Pdf
from tasks.discover import discover, find_pdfs
from tasks.staging import MB, Staging
from tasks.storage import Storage
from tests.tasks.conftest import MakePdf, OpenSession

pytest.importorskip("aiohttp", reason="fsspec needs it for http://")


class Web:
    """A web server.

    Attributes:
        files: What it has, by path.
        status: What it answers for a path instead, by path.
        told: Whether it says how large a file is.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.status: dict[str, int] = {}
        self.told = True
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = web.files.get(self.path, b"")
                self.send_response(web.status.get(self.path, 200 if data else 404))
                if web.told:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            def do_HEAD(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever)
    thread.start()
    yield web
    web.server.shutdown()
    thread.join()
    web.server.server_close()


@pytest.fixture
def listed(web: Web, tmp_path: Path) -> Callable[[], str]:
    """A local list of what the server has."""

    def write() -> str:
        path = tmp_path / "list.txt"
        path.write_text("".join(f"{web.url}{name}\n" for name in web.files))
        return str(path)

    return write


def find(source: str) -> list[Pdf]:
    return find_pdfs(source, Storage("/nowhere"))


@pytest.mark.parametrize("told", [True, False], ids=["size known", "size unknown"])
def test_a_list_is_worked_within_the_budget(
    web: Web,
    listed: Callable[[], str],
    told: bool,
    make_pdf: MakePdf,
    open_session: OpenSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web.told = told
    # A tail larger than what the web's filesystem asks for at a time.
    web.files = {f"/{n}.pdf": make_pdf("t" * n) + b"\n" * 6 * MB for n in range(1, 5)}
    scratch = tmp_path / "scratch"
    most: list[int] = []
    real = Staging._bring

    def watched(self: Staging, *args: Any) -> None:
        real(self, *args)
        most.append(sum(path.stat().st_size for path in scratch.rglob("*.pdf*")))

    monkeypatch.setattr(Staging, "_bring", watched)
    run = open_session(
        listed(), tmp_path / "out", run={"scratch": str(scratch), "scratch_budget_mb": 10}
    )
    found = discover(run)
    assert [pdf.facts and pdf.facts.page_count for pdf in found] == [1, 2, 3, 4]
    assert len(most) == 4 and max(most) < 10 * MB


def test_what_says_no_size_and_is_too_large_is_given_up_at_the_budget(
    web: Web, listed: Callable[[], str], tmp_path: Path
) -> None:
    web.told = False
    web.files = {"/a.pdf": b"x" * 12 * MB}
    staging = Staging(tmp_path / "scratch", "test", budget_mb=10)
    (pdf,) = find(listed())
    with pytest.raises(TooLargeForScratch, match=r"a\.pdf has over 10 MB; scratch may take 10 MB"):
        staging.fetch(pdf)
    assert not list(tmp_path.rglob("*.part"))


def test_the_reserve_of_scratch_holds_for_a_list(
    web: Web,
    listed: Callable[[], str],
    open_session: OpenSession,
    tmp_path: Path,
) -> None:
    web.files = {"/a.pdf": b"x"}
    run = {"scratch": str(tmp_path / "scratch"), "disk_reserve_mb": 10_000_000}
    with pytest.raises(DiskLow, match=f"free at {tmp_path}/scratch"):
        discover(open_session(listed(), "memory://out", run=run))


@pytest.mark.parametrize("status", [401, 403])
def test_one_that_is_refused_is_at_fault_and_all_are_not(
    web: Web, listed: Callable[[], str], tmp_path: Path, status: int
) -> None:
    web.files = {"/a.pdf": b"x", "/b.pdf": b"y", "/c.pdf": b"z"}
    web.status = {"/a.pdf": status}
    staging = Staging(tmp_path, "test", budget_mb=10)
    staging.archive = find(listed())
    with pytest.raises(UnreadableFile, match=f"a.pdf cannot be read, though .* {status}"):
        staging.fetch(staging.archive[0])
    web.status |= {"/b.pdf": status, "/c.pdf": status}
    for pdf in staging.archive:
        with pytest.raises(StorageRefused, match=f"{pdf.name}: {status}"):
            staging.fetch(pdf)


def test_a_server_that_fails_condemns_nothing(web: Web, listed: Callable[[], str]) -> None:
    web.files = {"/a.pdf": b"x", "/b.pdf": b"y"}
    web.status = {"/a.pdf": 503}
    with pytest.raises(StorageGone, match="503"):
        find(listed())
    web.status = {"/a.pdf": 404}
    gone, there = find(listed())
    assert gone.fault and gone.fault.kind == "unreadable_file" and not there.fault
    web.server.shutdown()
    web.server.server_close()
    with pytest.raises(StorageGone, match="Cannot connect"):
        find(listed())
