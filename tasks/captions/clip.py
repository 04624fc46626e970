"""Tags from lists of words, chosen by CLIP: of each list the word that fits best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models.clip.engine import ClipEngine
from models.errors import BadSettings, InputFault
from models.handoff import HandoffSettings
from models.records import Sample
from tasks.places import filesystem
from tasks.progress import Progress
from tasks.storage import Storage, named_errors

OURS = Path(__file__).with_name("vocabulary.yaml")
ELSE = "something else"
"""What CLIP is asked for the empty word."""


class Vocabulary(BaseModel):
    """Lists of words.

    Attributes:
        prompt: What CLIP is asked; ``{}`` stands for the word.
        lists: Words by the name of their list, two at least in each. An empty one stands for
            anything else: where it fits best, the list has nothing to say.
    """

    model_config = ConfigDict(extra="forbid")

    prompt: str = Field(pattern=r"\{\}")
    lists: dict[str, Annotated[list[str], Field(min_length=2)]] = Field(min_length=1)

    def phrases(self, words: Sequence[str]) -> list[str]:
        """What CLIP is asked of each word of a list."""
        return [self.prompt.replace("{}", word or ELSE) for word in words]


def clip_captions(
    settings: HandoffSettings, output: Storage, samples: Sequence[Sample], progress: Progress
) -> Mapping[str, str]:
    """The tags of each sample, joined by commas; samples that no word fits are left out.

    The words of a list share a softmax at the model's own temperature: the likelihood is among
    them, not that of the word itself.

    Raises:
        BadSettings: The vocabulary or the model cannot be read.
        ClipMissing: open_clip is not installed.
    """
    vocabulary = read_vocabulary(settings.captions.vocabulary)
    captions: dict[str, str] = {}
    if not samples:
        return captions
    progress.start(len(samples), "tagging")
    try:
        with ClipEngine(settings.clip) as engine:
            lists = {
                name: (words, engine.embed_texts(vocabulary.phrases(words)))
                for name, words in vocabulary.lists.items()
            }
            scale = engine.logit_scale
            reads: list[tuple[str, Callable[[], bytes]]] = [
                (sample.file_name, partial(output.read, sample.file_name)) for sample in samples
            ]
            for name, vector in engine.embed_images(reads):
                progress.advance()
                if isinstance(vector, InputFault):
                    continue
                found = [
                    choose(words, scale * (texts @ vector), settings.captions.certainty)
                    for words, texts in lists.values()
                ]
                if tags := ", ".join(filter(None, found)):
                    captions[name] = tags
    finally:
        progress.stop()
    return captions


def choose(words: Sequence[str], logits: Any, certainty: float) -> str:
    """The likeliest word of a list; empty if even that is not likely enough.

    Args:
        words: The list.
        logits: (words,) of the model.
        certainty: Least likelihood, 0 to 1.
    """
    likely = np.exp(logits - logits.max())
    likely /= likely.sum()
    best = int(likely.argmax())
    return words[best] if likely[best] >= certainty else ""


def read_vocabulary(path: str) -> Vocabulary:
    """Read a vocabulary.

    Args:
        path: Path or fsspec URL; empty for ours.

    Raises:
        BadSettings: There is no such file, or it is no vocabulary.
        StorageGone: It cannot be read.
    """
    place = path or str(OURS)
    cure = f"Begin with a copy of {OURS}."
    fs, name = filesystem(place)
    with named_errors(f"reading {place}"):
        if not fs.isfile(name):
            raise BadSettings(f"captions.vocabulary: there is no file {place}.", cure)
        data: bytes = fs.cat_file(name)
    try:
        return Vocabulary.model_validate(yaml.safe_load(data))
    except (yaml.YAMLError, ValidationError) as error:
        raise BadSettings(f"captions.vocabulary: {place}: {error}", cure) from error
