"""The prompts: what CLIP is asked, from a YAML file that a user can edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, StringConstraints, ValidationError, model_validator

from models.errors import BadSettings
from models.settings import Group
from tasks.places import filesystem
from tasks.storage import named_errors

SHIPPED = Path(__file__).parent / "prompts.yaml"
Phrase = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Classes = Annotated[dict[Phrase, Annotated[list[Phrase], Field(min_length=1)]], Field(min_length=1)]


class StrictLoader(yaml.SafeLoader):
    """Refuses a key that is there twice, of which YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping of its keys to its values."""
        made = super().construct_mapping(node, deep)
        if len(made) < len(node.value):
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next(name for name in names if names.count(name) > 1)
            raise yaml.constructor.ConstructorError(
                None, None, f"{twice!r} is there twice", node.start_mark
            )
        return made


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
        # Labels name classes whatever their case.
        positive, negative = (
            {name.casefold() for name in c} for c in (self.positive, self.negative)
        )
        if both := sorted(positive & negative):
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
        told = yaml.load(data, StrictLoader)
    except Exception as error:
        # PyYAML answers dates that do not exist, tags that do not fit and too deep lists with any.
        raise BadSettings(f"prompts: {place} is no YAML: {error}", cure) from error
    try:
        return Prompts.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise BadSettings(
            f"prompts: {place}: {where} {message}.".replace("  ", " "), cure
        ) from error
