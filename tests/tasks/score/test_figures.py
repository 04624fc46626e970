"""The figures of scoring, against what can be worked out by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tasks.score.map import lay_out
from tasks.score.purity import by_examples, by_prompts
from tasks.score.select import choose
from tasks.score.spread import balance, coverage, vendi, year
from tasks.score.vectors import centred
from tests.resources.make_dataset import make_sample

RNG = np.random.default_rng(4)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def heaps(sizes: list[int], dim: int = 16, width: float = 0.05) -> np.ndarray:
    """Heaps of like vectors, at right angles to each other."""
    rows = [
        np.eye(dim)[i] + width * RNG.normal(size=dim) for i, n in enumerate(sizes) for _ in "x" * n
    ]
    return unit(np.array(rows))


def test_vendi_counts_distinct_pictures() -> None:
    assert vendi(np.eye(7, 9, dtype=np.float32)) == pytest.approx(7)
    assert vendi(np.repeat(np.eye(3, 9, dtype=np.float32), 200, axis=0)) == pytest.approx(3)
    assert vendi(heaps([30, 30, 30, 30], width=0.001)) == pytest.approx(4, rel=0.01)
    assert vendi(centred(np.eye(7, 9, dtype=np.float32))) == pytest.approx(6, rel=1e-4)
    # By the definition, from the matrix of all similarities.
    vectors = unit(RNG.normal(size=(40, 6)))
    values = np.linalg.eigvalsh((vectors @ vectors.T).astype(float) / len(vectors))
    values = values[values > 1e-9]
    assert vendi(vectors) == pytest.approx(np.exp(-(values * np.log(values)).sum()), rel=1e-4)


def test_coverage_is_the_share_with_a_kept_neighbour() -> None:
    vectors = heaps([40, 30, 20, 10])
    kept = np.zeros(100, bool)
    assert coverage(vectors, kept, 5) == 0
    kept[::3] = True
    assert coverage(vectors, kept, 5) > 0.8
    kept[70:] = False
    whole = coverage(vectors, kept, 5)
    assert whole is not None and whole <= 0.7
    assert coverage(vectors, np.ones(100, bool), 5) == 1


def test_balance_against_the_archive() -> None:
    even = balance(["a", "b"] * 10, [True] * 20)
    assert even.evenness == pytest.approx(1) and even.drift == 0
    lopsided = balance(["a"] * 10 + ["b"] * 10, [True] * 10 + [False] * 10)
    assert lopsided.evenness == 0 and lopsided.drift == pytest.approx(1)
    assert lopsided.groups == {"a": (10, 10), "b": (0, 10)}


def test_the_choice_covers_each_heap_and_proves_how_good_it_is() -> None:
    vectors = heaps([6, 4, 3, 2], dim=8)
    weights = np.full(15, 0.9)
    chosen, account = choose(vectors, weights, range(15), 4)
    assert sorted(np.searchsorted([6, 10, 13], chosen, side="right").tolist()) == [0, 1, 2, 3]
    alike = np.clip(vectors @ vectors.T, 0, None)
    best = max(alike[:, list(some)].max(1).sum() for some in combinations(range(15), 4))
    whole = alike.max(1).sum()
    assert (
        (1 - 1 / np.e) * best / whole
        <= account.value
        <= best / whole + 1e-3
        <= account.bound + 2e-3
    )
    assert account.curve[0] == (0, 0) and account.curve[-1] == (4, account.value)


@pytest.mark.parametrize("noise", [0, 1e-7])
def test_one_picture_many_times(noise: float) -> None:
    vectors = unit(np.eye(1, 16) + noise * RNG.normal(size=(12, 16)))
    places = lay_out(vectors)
    assert places[:, 0] == pytest.approx(np.linspace(0.1, 0.9, 12)) and (places[:, 1] == 0.5).all()
    chosen, account = choose(centred(vectors), np.full(12, 0.9), range(12), 3)
    assert len(chosen) == 3 and (account.value, account.bound) == (1, 1)
    assert vendi(centred(vectors)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("distinct", [2, 3])
def test_the_map_of_few_pictures_there_many_times(distinct: int) -> None:
    places = lay_out(np.eye(distinct, 16, dtype=np.float32)[np.arange(40) % distinct])
    assert np.isfinite(places).all() and places.min() == 0 and places.max() == 1
    assert len(np.unique(places[:, 0])) > 1


def test_nothing_is_seen_from_the_mean_of_nothing() -> None:
    assert centred(np.empty((0, 4), np.float32)).shape == (0, 4)


def test_a_probable_illustration_weighs_more() -> None:
    vectors = heaps([5, 5], dim=4)
    weights = np.array([0.9] * 5 + [0.1] * 5)
    (first,), _ = choose(vectors, weights, range(10), 1)
    assert first < 5


def test_margins_use_the_scale_of_the_model() -> None:
    from tasks.score.prompts import Prompts

    prompts = Prompts(
        templates=["{}"], positive={"plate": ["a"], "cut": ["b"]}, negative={"text": ["c"]}
    )
    classes = np.eye(3, dtype=np.float32)
    vectors = unit(np.array([[1.0, 0, 0.2], [0, 0, 1.0]]))
    found = by_prompts(vectors, classes, prompts, 10)
    logits = vectors.astype(float) * 10
    odds = np.log(np.exp(logits[:, :2]).mean(1)) - logits[:, 2]
    assert found.margin == pytest.approx(odds, abs=1e-5)
    assert found.wanted == ["plate", "plate"] and found.unwanted == ["text", "text"]


def test_likeness_to_examples() -> None:
    vectors = heaps([12, 12, 12])
    found = by_examples(vectors[12:], np.concatenate([vectors[:8], vectors[12:16]]))
    assert (found.margin[:12] > -1).all() and (found.margin[12:] < -5).all()


def test_the_year_is_that_of_the_print() -> None:
    sample = make_sample("the-season-1911/p0001-1.jpg", b"")
    assert year(sample) == "1911"
    scanned = sample.model_copy(update={"pdf": "scan-12345.pdf"})
    assert year(scanned) == "unknown"
    assert year(scanned.model_copy(update={"metadata": {"title": "The Season, 1886"}})) == "1886"
