"""Scoring as a user runs it: real commands, a real server, a real browser."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from models.score import Verdict
from tasks.score.judge import CAUSES
from tasks.score.words import rows

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROOT = Path(__file__).resolve().parent.parent.parent
Start = Callable[..., "subprocess.Popen[str]"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def start(prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Start ``python -m flows.NAME`` with a model of random weights where one is needed."""
    pytest.importorskip("open_clip")
    from tests.resources.tiny_clip import make_model

    model = make_model(tmp_path_factory.mktemp("tiny"))

    def begin(flow: str, *arguments: object) -> subprocess.Popen[str]:
        given = {"INTAGLIO_CLIP__PRETRAINED": model, "INTAGLIO_PURITY__THRESHOLD": "0"}
        return subprocess.Popen(
            [sys.executable, "-m", f"flows.{flow}", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, **given, "PREFECT_API_URL": prefect_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


def end(process: subprocess.Popen[str]) -> str:
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert "Traceback" not in printed
    return printed


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def scored(demo: Path, start: Start, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo archive, extracted and scored by one command, and what that printed."""
    output = tmp_path_factory.mktemp("scored") / "dataset"
    return output, end(start("pipeline", "--source", demo, "--output", output, "--select", 9))


def test_extraction_finds_nothing_to_do_after_scoring(
    scored: tuple[Path, str], demo: Path, start: Start
) -> None:
    output, printed = scored
    verdict = json.loads((output / "verdict.json").read_text())
    assert verdict["kept"] == 9 and "not among the best" in printed
    before = {path: digest(path) for path in output.rglob("*") if path.is_file()}
    with zipfile.ZipFile(output / "dataset.zip") as archive:
        names = archive.namelist()
        kept = archive.read("manifest.jsonl").splitlines()
    assert len(names) == 10 and len(kept) == 9
    assert {json.loads(line)["file_name"] for line in kept} < set(names)
    assert "Nothing to do" in end(start("extract", "--source", demo, "--output", output))
    end(start("verify", "--output", output))
    end(start("package", "--dataset", output))
    changed = {p for p, old in before.items() if not p.exists() or digest(p) != old}
    assert not {path for path in changed if ".intaglio" not in path.parts}


@pytest.mark.nightly
def test_a_killed_scoring_goes_on_to_the_same_dataset(
    scored: tuple[Path, str], start: Start, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    shutil.copytree(scored[0], output)
    # As it was before scoring, with everything still to be done.
    for name in ("dropped.jsonl", "scores.parquet", "verdict.json", "embeddings.npy"):
        (output / name).unlink()
    shutil.rmtree(output / ".intaglio" / "score")
    end(start("package", "--dataset", output))
    assert not list(output.glob("dropped/*/*"))
    process = start("score", "--dataset", output, "--select", 9)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (output / "dropped.jsonl").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    end(start("score", "--dataset", output, "--select", 9))
    for name in ("dataset.zip", "dropped.jsonl", "scores.parquet"):
        assert digest(output / name) == digest(scored[0] / name), name
    verdict = json.loads((output / "verdict.json").read_text())
    assert verdict["embedded"] == 0, "the killed run had embedded them"


def test_no_dataset_ends_with_2(start: Start, tmp_path: Path) -> None:
    process = start("score", "--dataset", tmp_path)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 2 and "holds no finished dataset" in printed, printed


@contextmanager
def opened(report: Path) -> Iterator[Page]:
    """The report in a real browser, which must neither complain nor ask the network."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((report / "index.html").as_uri())
        yield page
        assert not said, said
        assert all(url.startswith(("file:", "data:")) for url in asked)
        browser.close()


def test_the_report_opens_filters_and_sorts(scored: tuple[Path, str]) -> None:
    with opened(scored[0] / "report") as page:
        cards = page.locator(".card")
        samples = json.loads((scored[0] / "verdict.json").read_text())["samples"]
        assert cards.count() == samples
        shown = [float(text.rstrip(" %")) for text in page.locator(".card b").all_inner_texts()]
        assert shown == sorted(shown), "worst first"
        page.select_option("#order", "best")
        turned = [float(text.rstrip(" %")) for text in page.locator(".card b").all_inner_texts()]
        assert turned == sorted(shown, reverse=True)
        page.click('[data-filter="kept"]')
        assert cards.count() == 9
        page.click('[data-filter="not_selected"]')
        assert cards.count() == page.locator(".card[data-reason=not_selected]").count() > 0
        cards.first.hover()
        assert "probability" in page.locator(".card .scores").first.inner_text()
        cards.first.click()
        box = page.locator("dialog .box").bounding_box()
        paper = page.locator("dialog .paper").bounding_box()
        assert box and paper and paper["x"] <= box["x"] + 3 and box["width"] <= paper["width"] + 6
        page.keyboard.press("Escape")
        assert page.locator("#droppedPages img").count() > 0
        assert page.locator("#histogram rect").count() > 0


def test_nothing_in_the_report_hides_anything_else(scored: tuple[Path, str]) -> None:
    with opened(scored[0] / "report") as page:
        names = page.locator(".strip figcaption").all_inner_texts()
        assert any("scan0042.pdf" in name for name in names), "a name without a place to break"
        wide = "all => all.filter(each => each.scrollWidth > each.clientWidth).length"
        assert page.locator(".strip figure").evaluate_all(wide) == 0
        card = page.locator(".card").first
        card.hover()
        where, scores = card.locator(".where span").last, card.locator(".scores")
        assert where.inner_text().startswith("page ")
        assert page.locator(".card .where span:last-child").evaluate_all(wide) == 0
        box, over = where.bounding_box(), scores.bounding_box()
        assert box and over and over["y"] >= box["y"] + box["height"]
        page.locator("#droppedPages").evaluate("section => section.scrollIntoView()")
        bar = page.locator("#bar").bounding_box()
        assert bar and bar["y"] + bar["height"] <= 0, "the filters stay with what they filter"
        assert page.evaluate("[1, 1200].map(pagesOf)") == ["1 page", "1,200 pages"]
        volumes = page.locator("#volume option").all_inner_texts()[1:]
        assert page.locator("#hues span").all_inner_texts() == volumes
        page.select_option("#colour", "kept")
        assert page.locator("#hues span").all_inner_texts() == ["kept", "dropped"]
        assert page.evaluate("[.9998, 1].map(percent)") == ["99.9 %", "100.0 %"]


@pytest.fixture(scope="module")
def damaged(
    scored: tuple[Path, str], start: Start, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """The demo again, never looked at before, with one broken sample; and that one's name."""
    output = tmp_path_factory.mktemp("damaged") / "dataset"
    shutil.copytree(scored[0], output)
    shutil.rmtree(output / "report")
    shutil.rmtree(output / ".intaglio" / "score")
    broken = min(output.glob("images/*/*"))
    broken.write_bytes(b"no picture")
    end(start("score", "--dataset", output))
    return output, str(broken.relative_to(output))


def test_a_sample_without_a_picture_shows_its_fault(damaged: tuple[Path, str]) -> None:
    output, name = damaged
    with opened(output / "report") as page:
        page.locator("#reasons").scroll_into_view_if_needed()
        assert name in page.locator("#reasons .unseen").inner_text()
        page.click('[data-filter="unreadable"]')
        card = page.locator(".card")
        assert card.count() == 1 and card.locator("img").count() == 0
        assert f"{name} is not the file" in card.locator(".unseen").inner_text()
        card.click()
        assert name in page.locator("dialog .sample .unseen").inner_text()
        assert "probability" not in page.locator("dialog .caption").inner_text()


def test_prefect_has_the_verdict(damaged: tuple[Path, str], prefect_url: str) -> None:
    output, _ = damaged

    def ask(what: str, body: dict[str, object]) -> list[dict[str, Any]]:
        answer = httpx.post(f"{prefect_url}/{what}/filter", json=body, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()

    runs = ask("flow_runs", {"flows": {"name": {"any_": ["score"]}}})
    mine = [r["id"] for r in runs if r["parameters"]["settings"]["dataset"] == str(output)]
    made = ask("artifacts", {"flow_runs": {"id": {"any_": mine}}})
    found = {artifact["key"]: artifact["data"] for artifact in made}
    assert set(found) == {"score-verdict", "score-dropped"}
    verdict = Verdict.model_validate_json((output / "verdict.json").read_text())
    assert verdict.kept > 0 and verdict.dropped["unreadable"] == 1
    for name, value in rows(verdict):
        assert f"| {name} | {value} |" in found["score-verdict"]
    table = {row["reason"]: row["samples"] for row in json.loads(found["score-dropped"])}
    assert table == {CAUSES[why]: count for why, count in verdict.dropped.items()}


def test_the_report_shows_captions_of_a_later_hand_off(
    scored: tuple[Path, str], start: Start, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    shutil.copytree(scored[0], output)
    handoff = ("handoff", "--dataset", output, "--trainers", "kohya")
    end(start(*handoff))
    rows = list(csv.reader((output / "captions.csv").read_text().splitlines()))
    written, edited, other = rows[1], rows[2], rows[3]
    edited[1] = 'A "gown" of <b>velvet</b>'
    with (output / "captions.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    end(start(*handoff))
    # As if another picture had got the file name since the report was written.
    script = output / "report" / "captions.js"
    script.write_text(script.read_text().replace(other[4], "s" + "0" * 16))
    with opened(output / "report") as page:

        def card(row: list[str]) -> Locator:
            return page.locator(".card", has=page.locator(f'img[alt="{row[0]}"]'))

        card(written).hover()
        said = card(written).locator(".said").inner_text()
        assert written[1] in said and "template" in said
        card(edited).click()
        assert page.locator("dialog .said").inner_text() == f"“{edited[1]}” (caption: edited)"
        page.keyboard.press("Escape")
        card(other).click()
        assert page.locator("dialog .said").inner_text() == ""
