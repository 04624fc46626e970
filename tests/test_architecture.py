"""The shape of the house: arrows point one way, modules stay small, one module knows MuPDF."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("models", "tasks", "flows")
MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
HEAVY = {"prefect", "torch", "fsspec", "s3fs", "torchvision", "open_clip", "pymupdf", "cv2"}
MOST_LINES = 400


def imports(path: Path, late: bool = True) -> Iterator[str]:
    """What a module imports; without those inside functions if ``late`` is false."""
    tree = ast.parse(path.read_text())
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += ast.iter_child_nodes(node)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_run_from_flows_to_tasks_to_models(path: Path) -> None:
    layer = LAYERS.index(path.relative_to(ROOT).parts[0])
    forbidden = {*LAYERS[layer + 1 :], "tests", "benchmarks"}
    assert not {each.partition(".")[0] for each in imports(path)} & forbidden


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_are_small_and_explained(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES
    if path.stat().st_size:
        assert ast.get_docstring(ast.parse(path.read_text())), "what is it for?"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_one_family_of_modules_knows_the_renderer(path: Path) -> None:
    # The labelled corpus is read by a development tool, never in a run.
    if not name(path).startswith("tasks/mupdf") and path.name != "corpus.py":
        assert not {each.partition(".")[0] for each in imports(path)} & {"pymupdf", "fitz"}


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.is_relative_to(ROOT / "models")], ids=name
)
def test_the_nouns_import_nothing_heavy(path: Path) -> None:
    found = {each.partition(".")[0] for each in imports(path, late=False)}
    assert not found & HEAVY


def loaded_by(module: str) -> set[str]:
    program = f"import sys, {module}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_what_workers_load_has_neither_prefect_nor_torch() -> None:
    assert not loaded_by("tasks.work, tasks.worker") & {
        "prefect",
        "torch",
        "fsspec",
        "pydantic_settings",
    }


def test_the_base_install_needs_no_torch() -> None:
    assert not loaded_by("flows.extract") & {"torch", "torchvision", "open_clip", "s3fs"}
