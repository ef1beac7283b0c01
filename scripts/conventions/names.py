"""Rules about names: a class is a noun and has one name, a function is a verb or a property, vendors stay outside."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scripts.python_sources import Module

_WORD = re.compile(r"[A-Z][a-z]+\d*")
_OF = re.compile(r"_of(_|$)")

_PARTICIPLES_TEXT = """
Begun Bought Bound Broken Brought Built Chosen Cut Done Drawn Driven Due Felt Forgotten Found Given Gone Grown Heard
Held Hidden Kept Known Laid Learnt Led Left Lent Lost Made Meant Met Paid Put Read Said Seen Sent Shown Sold Spent
Split Spoken Stood Stuck Taken Taught Thought Told Torn Understood Won Worn Written
"""
PARTICIPLES = frozenset(_PARTICIPLES_TEXT.split())
_ADJECTIVES_TEXT = """
Alike Alive Aside Asleep Aware Away Bad Bare Beside Big Brief Busy Calm Clean Dead Deep Early Easy Empty Far Fast Few
Final Free Fresh Full Good Great Half Hard Heavy High Large Last Late Less Light Live Local Long Loose Loud Low Many
Mere More Near New Next Old Open Other Own Past Plain Poor Proper Public Quick Quiet Rare Ready Remote Rich Safe Same
Secret Short Silent Slow Small Sole Sound Spare Stale Still Strong Such Sure True Typical Usual Weak Whole Wide Within
Wrong Young
"""
ADJECTIVES = frozenset(_ADJECTIVES_TEXT.split())
_NOUNS_TEXT = """
Bed Binding Building Drawing Embed Embedding Feed Finding Greeting Heading King Light Listing Logging Mapping Meeting
Need Painting Ping Pricing Ranking Rating Reading Recording Remote Ring Routing Secret Seed Setting Shed Sound Spacing
Speed Spring Stacking String Thing Thread Timing Typing Warning Wing
"""
NOUNS = frozenset(_NOUNS_TEXT.split())
"""Nouns that end like participles, and adjectives that the field uses as nouns."""
VENDORS = frozenset({"discord", "github"})
VENDOR_FREE = ("denizen.domain", "denizen.ports", "denizen.engine", "denizen.skill")


def find_duplicate_classes(modules: Sequence[Module]) -> Iterator[str]:
    """A public class name that several modules define: a reader who searches for it finds the wrong one."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{name}: {', '.join(sorted(found))}"


def find_bare_words(modules: Sequence[Module]) -> Iterator[str]:
    """A class whose name is one participle or adjective: it says how the thing is, not what it is."""
    for module in modules:
        for name, definition in module.definitions:
            if isinstance(definition, ast.ClassDef) and is_bare_word(definition.name):
                yield f"{module.path}::{name}"


def is_bare_word(name: str) -> bool:
    """Whether a class name is a single participle or adjective. A leading underscore does not count."""
    word = name.lstrip("_")
    if not _WORD.fullmatch(word) or word in NOUNS:
        return False
    return word in PARTICIPLES or word in ADJECTIVES or word.endswith(("ed", "ing"))


def find_of_functions(modules: Sequence[Module]) -> Iterator[str]:
    """A function named `x_of` or `x_of_y`: `y.x`, `get_x` or `find_x` says the same in the order of speech."""
    for module in modules:
        for name, definition in module.definitions:
            if not isinstance(definition, ast.ClassDef) and _OF.search(definition.name):
                yield f"{module.path}::{name}"


def find_vendor_literals(modules: Sequence[Module]) -> Iterator[str]:
    """The name of a platform's vendor as a value in a layer that knows none: adapters and the configuration hand it in.

    Docstrings may name vendors.
    """
    for module in modules:
        if not f"{module.name}.".startswith(tuple(f"{layer}." for layer in VENDOR_FREE)):
            continue
        texts = {node.value for node in module.nodes if isinstance(node, ast.Expr)}
        for node in module.nodes:
            match node:
                case ast.Constant(value=str(value)) if value in VENDORS and node not in texts:
                    yield f'{module.path} says "{value}"'
                case _:
                    pass
