"""Pseudo-prose about dress and household, for pages that read like an old fashion paper."""

from __future__ import annotations

import re

import numpy as np

_WORDS = {
    "adj": "charming graceful simple elegant costly fashionable becoming novel dainty sombre rich "
    "plain pretty durable stylish quaint modest superb serviceable picturesque",
    "colour": "black ivory dove-gray prune-colored bronze moss-green navy-blue cream garnet "
    "tobacco-brown pale-blue heliotrope silver-gray old-rose olive",
    "stuff": "cashmere faille surah velvet foulard serge muslin India-silk nun's-veiling brocade "
    "crêpe-de-Chine alpaca satin poplin organdy cloth étamine plush",
    "dress": "walking costume|house dress|evening toilette|visiting gown|tea gown|travelling cloak|"
    "wrap|polonaise|mantle|bodice|redingote|morning wrapper|carriage dress|ball gown|jacket",
    "trim": "jet passementerie|Chantilly lace|narrow braid|a pleated ruche|bands of fur|"
    "moiré ribbon|steel beads|silk cord|box-pleated flounces|embroidered galloon|"
    "tortoise-shell buttons|ostrich tips|loops of velvet|Valenciennes edging",
    "place": "collar wrist shoulder waist hem front back belt throat elbow",
    "verb": "finished trimmed edged bordered faced adorned completed relieved enriched ornamented",
    "cut": "gathered pleated draped shirred laced folded caught fastened arranged carried",
    "who": "our lady readers|young girls|the Parisienne|every careful housewife|the hostess|"
    "matrons of taste|the best houses|a well-known modiste|the bride|her younger sister",
    "time": "this season|in early spring|for the autumn|during the past month|at present|"
    "on cool evenings|for the country|at the sea-side|in the morning|after Easter",
    "thing": "bonnet parasol fan glove slipper muff sash sleeve hat girdle skirt veil pelerine",
    "home": "work-basket|lamp-shade|table-cover|foot-stool|curtain|toilette cushion|screen|cabinet|"
    "easy-chair|sideboard|mantel|sofa pillow",
    "num": "two three four six eight nine twelve",
}
_BANK = {k: v.split("|") if "|" in v else v.split() for k, v in _WORDS.items()}

_PROSE = """
The skirt of this {adj} {dress} is of {colour} {stuff}, {cut} at the {place} and {verb} with
{trim}.

Nothing could be more {adj} than the {thing} worn {time}; it is made of {stuff} and {verb} with
{trim}.

For {who} a {dress} of {colour} {stuff} is considered {adj}, especially when the {place} is {verb}
with {trim}.

{Time} {who} will prefer {colour} to {colour2}, and {stuff} to the {adj} {stuff2} so lately in
favor.

The {place} is {cut} in {num} deep pleats, which are held by {trim} and fall loosely over the
{place2}.

Cut from the pattern {num} pieces of {stuff}, and line each with {colour} {stuff2} before they are
{cut}.

It was remarked {time} that {who} had quite given up the {thing}, and that the {adj} {thing2} had
taken its place.

A {adj} {home} may be covered with {stuff} and {verb} with {trim}, at a cost of not more than
{num} dollars.

The {thing} matches the {dress}, and is of {colour} {stuff} {verb} with {trim}.

Work {num} rows of chain stitch along the {place}, and repeat from * until the {home} is {verb}.

“I have never,” said she, “seen so {adj} a {dress}; the {thing} alone must have cost her {num}
weeks of labor.”

Her {thing} was of {colour} {stuff}, and she carried a {adj} {thing2} of the same.

It is a mistake to suppose that {stuff} is out of favor; {who} wear it {time} with {trim}.

At the last reception in the Avenue de l’Opéra a {dress} of {colour} {stuff} was much admired.

Housekeepers will find that a little borax in the water keeps {stuff} {adj} for {num} seasons.

Fasten the {place} with {num} hooks, and conceal them under {trim}.

No {home} is complete without a cover of {stuff}, {verb} with {trim} and lined with {colour} silk.

Mrs. T.—A {dress} for half-mourning should be of {stuff}, {cut} at the {place} without trimming.

{Who} may wear {colour} {stuff} {time}, but never with a {thing} of another shade.

The newest {thing} is {adj} beyond description, being {verb} with {trim} and {num} small bows.

The {adj} effect is due to the {place}, {cut} with {trim}, and to the absence of any other
ornament.

See illustration on this page. The original is of {colour} {stuff}, the {place} {cut} and {verb}
with {trim}.

With it is worn a {adj} {thing} of {stuff2}, and long gloves of {colour} kid.

We are indebted to {who} for the model, which is both {adj} and {adj2}.

In answer to many inquiries, {who} may be told that the {dress} is still worn {time}.
"""
_FORMS = [" ".join(form.split()) for form in _PROSE.split("\n\n")]
"""Sentences with places for words."""

HEADINGS = (
    "New York Fashions", "Paris Gossip", "Answers to Correspondents", "The Work-Table",
    "Household Hints", "Spring Wraps and Mantles", "Notes of the Season", "The Toilette",
    "Manners and Social Usages", "Gowns for the Sea-side", "A Lady of the Old School",
    "Millinery", "Evening Dress", "Our Paris Letter", "Useful Recipes", "Description of the Plates",
    "Furniture and Decoration", "Embroidery Designs", "The Tea Table", "What Women Are Doing",
)  # fmt: skip


def pick(kind: str, rng: np.random.Generator) -> str:
    """Choose one word or phrase of a kind of the vocabulary."""
    bank = _BANK[kind]
    return bank[int(rng.integers(len(bank)))]


def _capital(words: str) -> str:
    """Begin with a capital and leave the rest."""
    return words[:1].upper() + words[1:]


def sentence(rng: np.random.Generator) -> str:
    """Write one sentence of pseudo-prose."""
    return fill(_FORMS[int(rng.integers(len(_FORMS)))], rng)


def fill(form: str, rng: np.random.Generator) -> str:
    """Put words into a form with places such as {adj} or {Time}, and mend its articles."""
    text = re.sub(
        r"\{(\w+?)2?\}",
        lambda m: _capital(pick(m[1].lower(), rng)) if m[1][0].isupper() else pick(m[1], rng),
        form,
    )
    return re.sub(r"\b([Aa]) (?=[aeiouAEIOUé])", r"\1n ", text)


def paragraph(rng: np.random.Generator, sentences: int) -> list[str]:
    """Write a paragraph as a list of words."""
    return " ".join(sentence(rng) for _ in range(sentences)).split()


def caption(form: str, number: int, rng: np.random.Generator) -> str:
    """Write the line under a picture from a form of words, which may bring its own number."""
    small = ("of", "with", "and", "for", "a", "an", "on", "in")
    words = [w if w in small else _capital(w) for w in fill(form, rng).split()]
    line = f"{' '.join(words)}."
    return line if line.startswith("Figs.") else f"Fig. {number}.—{line}"
