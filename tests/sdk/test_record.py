"""Records are what `@dataclass(frozen=True, slots=True)` makes, except for when their methods are made."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace
from typing import Any

import pytest

from denizen_sdk.records import record

Decorate = Callable[[type], Any]


def make_places(decorate: Decorate, decorate_keywords: Decorate) -> tuple[Any, Any]:
    """Returns a class with every kind of field, and one that inherits from it."""

    class Place:
        name: str
        lines: tuple[int, ...] = ()
        notes: list[str] = field(default_factory=list[str])
        seen: int = field(default=0, compare=False)
        secret: str = field(default="", repr=False)
        size: int = field(init=False)
        kind: str = field(init=False, default="file")
        order: int = field(kw_only=True, default=1)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", len(self.name))

        @property
        def title(self) -> str:
            return self.name.title()

    base = decorate(Place)

    class Link(base):
        target: str

    return base, decorate_keywords(Link)


STANDARD = make_places(dataclass(frozen=True, slots=True), dataclass(frozen=True, slots=True, kw_only=True))
RECORDS = make_places(record, record(kw_only=True))


def outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error).replace(STANDARD[0].__qualname__, RECORDS[0].__qualname__)


ACTS: tuple[Callable[[Any, Any], object], ...] = (
    lambda place, link: place("a"),
    lambda place, link: place("a", (1, 2), ["x"], 3, "s", order=5),
    lambda place, link: link("a", target="b"),
    lambda place, link: place(),
    lambda place, link: place("a", nme="b"),
    lambda place, link: place("a", (), [], 0, "", 5),
    lambda place, link: link("a", "b"),
    lambda place, link: asdict(place("a", notes=["x"])),
    lambda place, link: astuple(link("a", target="b")),
    lambda place, link: replace(place("a"), name="bcd"),
    lambda place, link: replace(place("a"), size=3),
    lambda place, link: [(each.name, each.kw_only, each.init) for each in fields(link)],
    lambda place, link: place("a") == place("a", seen=9),
    lambda place, link: place("a") == place("a", secret="s"),
    lambda place, link: place("a") == link("a", target="b"),
    lambda place, link: place("a") == "a",
    lambda place, link: {place.__match_args__, link.__match_args__},
    lambda place, link: copy.deepcopy(link("a", notes=["x"], target="b")),
    lambda place, link: setattr(place("a"), "name", "b"),
    lambda place, link: delattr(place("a"), "name"),
    lambda place, link: link("a", target="b").title,
    lambda place, link: place.__slots__,
    lambda place, link: hasattr(place("a"), "__dict__"),
)


@pytest.mark.parametrize("few", [0, 100], ids=["compiled", "not compiled"])
@pytest.mark.parametrize("number", range(len(ACTS)))
def test_a_record_does_what_a_frozen_dataclass_does(number: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared as they are shown, since no two classes have equal instances."""
    monkeypatch.setattr("denizen_sdk.records.FEW", few)
    records = make_places(record, record(kw_only=True))
    assert repr(outcome(lambda: ACTS[number](*records))) == repr(outcome(lambda: ACTS[number](*STANDARD)))


@record
class Point:
    x: int
    y: int = 0


def test_equal_records_have_one_hash() -> None:
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_what_a_default_factory_makes_is_no_instance_s_but_its_own() -> None:
    place, _ = RECORDS
    assert place("a").notes is not place("b").notes


def test_a_class_keeps_the_methods_that_it_defines() -> None:
    @record
    class Secret:
        word: str

        def __repr__(self) -> str:
            return "Secret(...)"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    assert repr(Secret("a")) == "Secret(...)"
    assert Secret("a") == Secret("b")
    assert Secret.__hash__ is object.__hash__


def test_a_plain_subclass_is_made_by_the_same_arguments() -> None:
    class Moved(Point):
        pass

    moved = Moved(1, y=2)
    assert (moved.x, moved.y, Point(3).x) == (1, 2, 3)


def test_a_record_without_fields_has_equal_instances() -> None:
    @record
    class Nothing:
        """Says something by being there."""

    assert Nothing() == Nothing()


@pytest.mark.parametrize("name", ["x", "z"])
def test_a_record_takes_no_new_value(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Point(1), name, 1)
