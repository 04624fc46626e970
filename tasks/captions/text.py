"""A caption as every trainer can take it: one line, no brackets that mean something, not too long.

kohya reads only the first line of a caption file, SimpleTuner and OneTrainer take further lines for
alternatives; kohya's wildcards are written in braces, and ai-toolkit fills in ``[trigger]``. No
escape is read alike by all of them, so brackets become round ones.
"""

from __future__ import annotations

import gzip
import math
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MOST_TOKENS = 75
"""What a CLIP text encoder reads of a prompt; trainers cut there."""
_BRACKETS = str.maketrans("{}[]", "()()")
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
"""How CLIP's tokenizer divides text before byte-pair encoding."""
_MERGES = 49152 - 256 - 2
"""Pairs that CLIP's vocabulary is made of, beside bytes and specials."""


def tidy(text: str) -> str:
    """A caption on one line, without control characters, with round brackets alone."""
    printable = "".join(c if c.isprintable() else " " for c in text.translate(_BRACKETS))
    return " ".join(printable.split()).strip(" ,")


def join(parts: list[str]) -> str:
    """Parts of a caption, separated by commas; what was said before is not said again."""
    said: dict[str, str] = {}
    for part in map(tidy, parts):
        if part:
            said.setdefault(part.casefold(), part)
    return ", ".join(said.values())


def count_tokens(text: str) -> int:
    """CLIP tokens of a text, without those that begin and end every prompt.

    Without the vocabulary, which comes with open_clip, this is counted rather too high.
    """
    tokenizer = _tokenizer()
    if tokenizer is None:
        return sum(math.ceil(len(word) / 3) for word in re.findall(r"\w+|[^\w\s]", text))
    return len(tokenizer.encode(text).tokens)


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    """CLIP's byte-pair encoding, read from open_clip's file without importing it (and torch)."""
    found = find_spec("open_clip")
    if found is None or not found.submodule_search_locations or find_spec("tokenizers") is None:
        return None
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    path = Path(found.submodule_search_locations[0]) / "bpe_simple_vocab_16e6.txt.gz"
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")[1 : _MERGES + 1]
    merges = [(first, second) for first, second in map(str.split, lines)]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    ends = [f"{letter}</w>" for letter in letters]
    words = [*letters, *ends, *(first + second for first, second in merges)]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer
