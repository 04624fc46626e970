"""The ledger: what was written in one step is there as a whole, or not at all."""

from __future__ import annotations

import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from models.records import Cut, Detection, Fault, Look, PageFacts, Region, RegionKind, Sample
from tasks.ledger import Ledger, to_line
from tasks.storage import Storage
from tests.tasks.conftest import tree

A, B = "a" * 64, "b" * 64


def look(index: int, key: str = "k") -> Look:
    detection = Detection(
        score=0.123456,
        measures={f"measure_{n}": 0.1 * n for n in range(8)},
        regions=[Region(box=(0.1, 0.2, 0.3, 0.4))],
    )
    page = PageFacts(label=str(index + 1), width=595.3, height=841.9, native_dpi=300)
    return Look(page_index=index, key=key, page=page, detection=detection)


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, memory: Any) -> Storage:
    return Storage(str(tmp_path / "out") if request.param == "local" else "memory://bucket/out")


def ledger(storage: Storage) -> Ledger[Look]:
    return Ledger(storage, "looks", Look)


def test_what_was_added_is_there_for_this_run_and_the_next(storage: Storage) -> None:
    first = ledger(storage)
    assert first.load(A) == {}
    first.add(A, [look(3), look(1)])
    first.add(A, [look(2)])
    first.add(B, [look(1)])
    for book in (first, ledger(storage)):
        assert book.load(A) == {n: look(n) for n in (1, 2, 3)}
        assert book.load(B) == {1: look(1)}
        assert book.scattered(A) and not book.scattered(B)
    assert Ledger(storage, "cuts", Cut).load(A) == {}


def test_files_are_named_after_their_content(storage: Storage) -> None:
    first = ledger(storage)
    first.add(A, [look(1)])
    first.add(A, [look(1)])
    assert len(storage.names("")) == 1
    assert ledger(storage).load(A) == {1: look(1)}


def test_replacing_leaves_one_file_in_page_order(storage: Storage) -> None:
    first = ledger(storage)
    for n in (5, 2, 9):
        first.add(A, [look(n)])
    first.add(B, [look(0)])
    first.replace(A, [look(9), look(5)])
    assert not first.scattered(A)
    for book in (first, ledger(storage)):
        assert list(book.load(A)) == [5, 9]
        assert list(book.load(B)) == [0]
    assert f".intaglio/looks/{A}.jsonl" in storage.names("") and len(storage.names("")) == 2
    first.replace(A, [])
    assert ledger(storage).load(A) == {}


def test_a_kill_between_the_steps_of_replacing_loses_nothing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ledger(storage)
    for n in range(4):
        first.add(A, [look(n)])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "remove", killed)
    with pytest.raises(KeyboardInterrupt):
        first.replace(A, [look(n) for n in range(4)])
    assert ledger(storage).load(A) == {n: look(n) for n in range(4)}


def test_lines_that_cannot_be_read_are_no_records(storage: Storage) -> None:
    good = to_line(look(7), A).rstrip()
    data = good[9:]
    newer = data[:-1] + b',"invented_later":1}'
    sealed = b"%08x %b" % (crc32(newer), newer)
    # As valid as the good one, but for the checksum.
    other = good.replace(b'"page_index":7', b'"page_index":8')
    elsewhere = [to_line(look(8), B).rstrip(), to_line(look(9)).rstrip()]
    bad = [b"", b"{", b"null", b"[]", b"\xff\xfe", good[:40], sealed, b"\x00" * 10, other, data]
    bad += elsewhere
    storage.write(f".intaglio/looks/{A}.jsonl", b"\n".join([*bad, good]))
    storage.write(f".intaglio/looks/{A}/notes.txt", b"what?")
    assert ledger(storage).load(A) == {7: look(7)}


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd", "../x.jpg", "images/../../x.jpg", "images/./x.jpg", "images//etc/x.jpg",
        "images", "x.jpg", "images/v/x.jpg\0.png", "images\\..\\x.jpg", "images/..\\x.jpg", "",
    ],
)  # fmt: skip
def test_a_record_whose_sample_escapes_the_output_is_no_record(storage: Storage, name: str) -> None:
    sample = Sample(
        file_name="images/v/p0001-1.jpg", pdf="a.pdf", pdf_sha256=A, page_index=0, page_size=(9, 9),
        box=(0, 0, 9, 9), kind=RegionKind.OTHER, confidence=1, dpi=72, width=9, height=9, bytes=9,
        sha256=B, transforms=[],
    )  # fmt: skip
    book = Ledger(storage, "cuts", Cut)
    good = Cut(page_index=0, key="k", samples=[sample])
    bad = sample.model_copy(update={"file_name": name})
    book.add(A, [good, good.model_copy(update={"page_index": 1, "samples": [bad]})])
    assert book.load(A) == {0: good}


def test_texts_of_all_kinds_come_back(storage: Storage) -> None:
    fault = Fault(kind="x", message="caf\udce9 \n\r\u2028\x00", cure="é漢📰")
    record = Look(page_index=0, key="k", fault=fault)
    book = ledger(storage)
    book.add(A, [record])
    assert ledger(storage).load(A) == {0: record}


def test_a_record_file_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(tmp_path))
    book = ledger(storage)
    book.add(A, [look(1)])
    before = tree(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            book.add(A, [look(2)])
    assert tree(tmp_path) == before
    assert list(ledger(storage).load(A)) == [1]


def test_many_threads_may_add(storage: Storage) -> None:
    book = ledger(storage)

    def work(start: int) -> None:
        for n in range(start, start + 20):
            book.add(A if n % 2 else B, [look(n)])

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {n for start in range(0, 600, 100) for n in range(start, start + 20)}
    for each in (book, ledger(storage)):
        assert set(each.load(A)) | set(each.load(B)) == wanted


def test_ninety_thousand_records_are_read_one_pdf_at_a_time(
    tmp_path: Path, record_property: Any
) -> None:
    storage = Storage(str(tmp_path))
    book = ledger(storage)
    shas = [f"{n:064x}" for n in range(90)]
    for sha in shas:
        whole = b"".join(to_line(look(n), sha) for n in range(1000))
        storage.write(f".intaglio/looks/{sha}.jsonl", whole)
    begun = time.monotonic()
    book = ledger(storage)
    assert sum(len(book.load(sha)) for sha in shas) == 90_000
    record_property("seconds", round(time.monotonic() - begun, 2))
    tracemalloc.start()
    book.load(shas[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    record_property("peak_bytes_for_one_pdf", peak)
    assert peak < 30_000_000
