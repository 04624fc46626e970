"""The settings tree and the records."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from models.errors import (
    ExitCode,
    InputFault,
    IntaglioError,
    StopRun,
    UnreadableFile,
    WorkerKilled,
)
from models.records import Fault, Pdf, PdfFacts, RegionKind
from models.settings import PRESETS, Fit, Group, Kind, Settings, fingerprint, with_preset


def settings(**given: Any) -> Settings:
    return Settings.model_validate({"source": "in", "output": "out", **given})


def groups() -> list[type[BaseModel]]:
    nested = [f.annotation for f in Settings.model_fields.values()]
    return [Settings, *(g for g in nested if isinstance(g, type) and issubclass(g, Group))]


def test_the_kinds_to_choose_from_are_those_of_regions() -> None:
    assert set(get_args(Kind)) == {kind.value for kind in RegionKind}


@pytest.mark.parametrize("group", groups())
def test_every_field_has_a_sentence_and_says_its_bounds_once(group: type[BaseModel]) -> None:
    assert group.__doc__
    for name, field in group.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Group):
            continue
        assert field.description and field.description.rstrip(".)] 0123456789"), name
        bounds = {type(m).__name__: m for m in field.metadata}
        if field.annotation in (int, float):
            assert {"Ge", "Le"} <= set(bounds), f"{name} has no bounds"
            shown = f"[{bounds['Ge'].ge} to {bounds['Le'].le}]"
            assert field.description.count(shown) == 1


@pytest.mark.parametrize("group", groups()[1:])
def test_bounds_are_kept_and_defaults_lie_within(group: type[BaseModel]) -> None:
    for name, field in group.model_fields.items():
        bounds = {type(m).__name__: m for m in field.metadata}
        if "Ge" not in bounds:
            continue
        low, high = bounds["Ge"].ge, bounds["Le"].le
        assert low <= field.default <= high
        for value in (low - 1, high + 1, "x", None, float("nan")):
            with pytest.raises(ValidationError, match=name):
                group(**{name: value})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"source": ""}, "source"),
        ({"source": "  "}, "source"),
        ({"output": "\t"}, "output"),
        ({"fit": {"size": 3}}, "fit.size"),
        ({"nonsense": 1}, "nonsense"),
        ({"fit": 3}, "fit"),
        ({"regions": {"keep_kinds": []}}, "regions.keep_kinds"),
        ({"fit": {"side": 64, "step": 128}}, "fit"),
        ({"fit": {"side": 4096}}, "fit"),
        ({"read": {"dpi": 35}}, "read.dpi"),
        ({"run": {"pages_per_task": 0}}, "run.pages_per_task"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    for error in caught.value.errors():
        assert ".".join(map(str, error["loc"])).startswith(field)


def test_sides_need_to_agree_for_buckets_only() -> None:
    assert Fit(mode="pad", side=4096).side == 4096


def test_the_preset_is_the_article_and_anything_given_overrides_it() -> None:
    def preset(**given: Any) -> Settings:
        whole = with_preset({"source": "in", "output": "out", "preset": "article", **given})
        del whole["preset"]
        return Settings.model_validate(whole)

    plain = preset()
    assert (plain.read.dpi, plain.triage.method, plain.regions.unit) == (144, "sigma", "page")
    assert (plain.triage.sigma_threshold, plain.encode.quality) == (45, 92)
    assert (plain.fit.mode, plain.fit.side, plain.fit.min_side) == ("stretch", 1024, 1)
    changed = preset(fit={"side": 512}, triage={"sigma_threshold": 20})
    assert (changed.fit.mode, changed.fit.side) == ("stretch", 512)
    assert (changed.triage.method, changed.triage.sigma_threshold) == ("sigma", 20)
    assert all(set(PRESETS[name]) <= set(Settings.model_fields) for name in PRESETS)


@pytest.mark.parametrize("given", [{"fit": 3}, {"fit": None}, {"preset": []}, {"preset": "none"}])
def test_a_preset_leaves_what_makes_no_sense_to_be_refused(given: dict[str, Any]) -> None:
    data = {"preset": "article", **given}
    assert with_preset(data).items() >= given.items()


def test_settings_survive_json_as_prefect_stores_them() -> None:
    for whole in (settings(), settings(fit={"side": 512}, read={"dpi": 300})):
        again = Settings.model_validate(json.loads(whole.model_dump_json()))
        assert again == whole
        # Keys are made of how values are written: 60 and 60.0 must not differ.
        assert fingerprint(again, again.read.max_megapixels, again.run.page_timeout_s) == (
            fingerprint(whole, whole.read.max_megapixels, whole.run.page_timeout_s)
        )


def test_passwords_are_never_shown() -> None:
    secret = settings(read={"passwords": ["sesame"]})
    assert "sesame" not in repr(secret) + str(secret) + secret.model_dump_json()
    assert secret.read.passwords == [SecretStr("sesame")]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        settings().fit.side = 3  # type: ignore[misc]


def test_fingerprints_are_stable_and_tell_apart() -> None:
    assert fingerprint(Fit(), 1, "a") == fingerprint(Fit(), 1, "a")
    prints = {fingerprint(*p) for p in [(1,), ("1",), (1, 2), (12,), (Fit(),), (Fit(side=512),)]}
    assert len(prints) == 6 and all(len(p) == 16 for p in prints)


def family(base: type[IntaglioError]) -> list[type[IntaglioError]]:
    return [base, *(each for child in base.__subclasses__() for each in family(child))]


def test_every_error_has_a_kind_of_its_own_and_a_cure() -> None:
    kinds = [error.kind for error in family(InputFault)]
    assert len(set(kinds)) == len(kinds)
    for error in family(IntaglioError):
        assert error.cure.endswith(".") and error.__doc__
    for stop in family(StopRun):
        assert issubclass(stop, StopRun) and stop.exit_code in ExitCode and stop.exit_code != 0


@pytest.mark.parametrize("error", family(IntaglioError))
def test_errors_travel_between_processes(error: type[IntaglioError]) -> None:
    import pickle

    for one in (error("what", "cure"), error("what")):
        copy = pickle.loads(pickle.dumps(one))
        assert (type(copy), str(copy), copy.cure) == (error, "what", one.cure)


def test_text_that_no_file_can_hold_is_escaped() -> None:
    pdf = Pdf(name="caf\udce9.pdf", path="/in/caf\udce9.pdf")
    assert pdf.name == "caf\\udce9.pdf"
    assert pdf.path == "/in/caf\udce9.pdf", "or it could not be opened"
    assert "udce9" in pdf.model_dump_json()
    assert Fault.of(InputFault("\udcff")).message == "\\udcff"


def test_metadata_is_cut_to_a_length_that_can_be_repeated() -> None:
    facts = PdfFacts(page_count=1, metadata={"title": "x" * 10**6, "author": "y"})
    assert len(facts.metadata["title"]) == 2000 and facts.metadata["title"].endswith("…")
    assert facts.metadata["author"] == "y"


def test_only_what_came_from_outside_is_tried_again_by_itself() -> None:
    passing = [error for error in family(InputFault) if Fault.of(error("x")).passing]
    assert set(passing) == {UnreadableFile, WorkerKilled}


def test_no_more_shards_than_leases_are_listed() -> None:
    assert settings(shard="7/999").shard == "7/999"
    with pytest.raises(ValidationError, match="shard"):
        settings(shard="1/1000")
