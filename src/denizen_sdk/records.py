"""Records, and the JSON that they stand for. It needs the standard library only: the server makes its own records here.

`@record` does what `@dataclass(frozen=True, slots=True)` does, in a tenth of the time. The standard decorator compiles
seven methods for each class, which takes half a millisecond; with some 1000 records that was a quarter of the time in
which a command starts. Here all records share their methods, and the `__init__` of each is compiled when it has made a
few instances. `fields`, `replace`, `asdict`, `match` and inheritance work as for every dataclass.

Clients decode with `from_json`, which leaves out fields that it does not know: an older client can read a newer server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Protocol,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

Json = dict[str, Any]


class _IsDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Record = TypeVar("Record", bound=_IsDataclass)


def from_json(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Returns a record of that class from a JSON object, without what the class has no field for.

    Raises TypeError when a field that has no default is missing.
    """
    return kind(**{name: _read_value(hint, row[name]) for name, hint in _field_types(kind).items() if name in row})


@cache
def _field_types(kind: type[Any]) -> Mapping[str, Any]:
    # Resolving annotations takes far longer than reading a row, and a stream has many rows of few classes.
    return {name: hint for name, hint in get_type_hints(kind).items() if name in kind.__dataclass_fields__}


def _read_value(hint: Any, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Returns the value as a field with that annotation holds it."""
    if value is None:
        return None
    inner = get_args(hint)
    if get_origin(hint) is UnionType:
        return _read_value(next(each for each in inner if each is not NoneType), value)
    if get_origin(hint) is tuple:
        return tuple(_read_value(inner[0], each) for each in value)
    if get_origin(hint) is dict:
        return {key: _read_value(inner[1], each) for key, each in value.items()}
    return from_json(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value


# --- the decorator ----------------------------------------------------------------------------------------------------

FEW = 4
"""So few instances of a class are not worth an `__init__`: most records of a short command are as rare."""

_Class = TypeVar("_Class", bound=type)


@overload
def record(cls: _Class, /) -> _Class: ...
@overload
def record(*, kw_only: bool = False) -> Callable[[_Class], _Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type | None = None, /, *, kw_only: bool = False) -> Any:
    """Makes a class a frozen dataclass with slots, equality, a hash and a representation. Its own methods stay."""

    def decorate(plain: type[object]) -> type[object]:
        if not plain.__doc__:  # then `dataclass` writes the signature there, which takes longer than all else
            plain.__doc__ = f"{plain.__name__}()"
        made: type[object] = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(plain)
        own = vars(plain)
        for name, method in {**_SHARED, **_plan_equality(made), "__init__": _plan_init(made)}.items():
            if own.get(name) is None:  # Python sets the hash of a class with an `__eq__` of its own to None
                setattr(made, name, method)
        return made

    return decorate if cls is None else decorate(cls)


def _plan_init(cls: type[object]) -> Callable[..., None]:
    """Returns an `__init__` that sets the fields of the first instances one by one. Then it compiles the real one and
    puts it in its place; that one also refuses arguments that do not fit.
    """
    made = 0

    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807
        nonlocal made
        made += 1
        if made <= FEW and _set_fields(self, _fields(cls), args, kwargs):
            if hasattr(cls, "__post_init__"):
                cast("Any", self).__post_init__()
            return
        source = _InitSource(cls)
        for each in _fields(cls):
            source.add(each)
        compiled = source.compile()
        type.__setattr__(cls, "__init__", compiled)
        compiled(self, *args, **kwargs)

    return __init__


def _set_fields(
    it: object, declared: tuple[Field[Any], ...], args: tuple[object, ...], given: dict[str, object]
) -> bool:
    """Returns False for arguments that do not fit."""
    positional = [each.name for each in declared if each.init and not each.kw_only]
    if len(args) > len(positional) or not given.keys().isdisjoint(positional[: len(args)]):
        return False
    values = {**given, **dict(zip(positional, args, strict=False))}
    for each in declared:
        if each.init and each.name in values:
            value = values.pop(each.name)
        elif each.default_factory is not MISSING:
            value = each.default_factory()
        elif each.default is not MISSING:
            value = each.default
        elif each.init:
            return False
        else:
            continue  # `__post_init__` sets it
        object.__setattr__(it, each.name, value)
    return not values


class _InitSource:
    """The source of the `__init__` of a record."""

    def __init__(self, cls: type[object]) -> None:
        self._cls = cls
        self._known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
        self._positional, self._keyword, self._lines = ["self"], list[str](), list[str]()

    def add(self, each: Field[Any]) -> None:
        name, default = each.name, f"_default_{each.name}"
        value = parameter = name
        if each.default_factory is not MISSING:
            self._known[default] = each.default_factory
            value = f"{default}() if {name} is _MISSING else {name}" if each.init else f"{default}()"
            parameter = f"{name}=_MISSING"
        elif each.default is not MISSING:
            self._known[default] = each.default
            value, parameter = (name if each.init else default), f"{name}={default}"
        elif not each.init:
            return  # `__post_init__` sets it
        self._lines.append(f" _set(self, {name!r}, {value})")
        if each.init:
            (self._keyword if each.kw_only else self._positional).append(parameter)

    def compile(self) -> Callable[..., None]:
        keyword = ["*", *self._keyword] if self._keyword else []
        lines = self._lines + ([" self.__post_init__()"] if hasattr(self._cls, "__post_init__") else [])
        parameters = ", ".join([*self._positional, *keyword])
        exec("\n".join([f"def __init__({parameters}):", *(lines or [" pass"])]), self._known)  # noqa: S102 - names only
        init: Callable[..., None] = self._known["__init__"]
        init.__qualname__ = f"{self._cls.__qualname__}.__init__"  # stands in the error about a wrong argument
        return init


def _plan_equality(cls: type[object]) -> dict[str, Callable[..., object]]:
    declared = _fields(cls)
    compared = _read_fields([each.name for each in declared if each.compare])
    hashed = _read_fields([each.name for each in declared if (each.compare if each.hash is None else each.hash)])

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _read_fields(names: list[str]) -> Callable[[object], object]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _fields(it: object) -> tuple[Field[Any], ...]:
    return fields(cast("Any", it))


class _Methods:
    """The methods that all records share."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
        return f"{self.__class__.__qualname__}({shown})"

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return [getattr(self, each.name) for each in _fields(self)]

    def __setstate__(self, state: list[object]) -> None:
        for each, value in zip(_fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)


_SHARED: dict[str, Callable[..., object]] = {
    name: vars(_Methods)[name] for name in ("__repr__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
}
