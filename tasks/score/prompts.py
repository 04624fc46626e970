"""The prompts: what CLIP is asked, from a YAML file that a user can edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, StringConstraints, ValidationError, model_validator

from models.errors import BadSettings
from models.settings import Group
from tasks.places import filesystem
from tasks.storage import named_errors

SHIPPED = Path(__file__).parent / "prompts.yaml"
Phrase = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Classes = Annotated[dict[Phrase, Annotated[list[Phrase], Field(min_length=1)]], Field(min_length=1)]


class Prompts(Group):
    """Classes of pictures by what is asked of CLIP."""

    templates: Annotated[list[Phrase], Field(min_length=1)]
    """Sentences with {} for the phrase."""
    positive: Classes
    """Kinds of illustration, each with its phrases."""
    negative: Classes
    """Everything else, by kind."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Prompts:
        for template in self.templates:
            if template.count("{}") != 1:
                raise ValueError(f"the template {template!r} needs {{}} once")
        if both := sorted(self.positive.keys() & self.negative.keys()):
            raise ValueError(f"{both[0]!r} is both positive and negative")
        return self

    def ensembles(self) -> dict[str, list[str]]:
        """Every class with its phrases in all templates, positive classes first."""
        return {
            name: [t.replace("{}", phrase) for phrase in phrases for t in self.templates]
            for name, phrases in (self.positive | self.negative).items()
        }


def read_prompts(place: str) -> Prompts:
    """The prompts of a file, or those that ship.

    Args:
        place: Path or fsspec URL; empty for those that ship.

    Raises:
        BadSettings: The file is missing or wrong; names the cause.
    """
    fs, path = filesystem(place or str(SHIPPED))
    with named_errors(f"reading {place}"):
        if not fs.isfile(path):
            raise BadSettings(f"prompts: there is no file {place}.")
        data = fs.cat_file(path)
    cure = f"Correct the file; {SHIPPED} shows the form."
    try:
        return Prompts.model_validate(yaml.safe_load(data))
    except yaml.YAMLError as error:
        raise BadSettings(f"prompts: {place} is no YAML: {error}", cure) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise BadSettings(
            f"prompts: {place}: {where} {message}.".replace("  ", " "), cure
        ) from error
