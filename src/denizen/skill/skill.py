"""`Skill` and `Tool`: how a skill is declared, and how its settings are read.

Declaring checks what can be checked without types (names, docstrings, parameter kinds), so that a wrong skill fails
when it is loaded. Schemas are made when they are first asked for, by `signature`.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.tool import CacheScope, DataFlow, Effect, Taint, Tier, ToolSpec
from denizen.skill.signature import ToolSignature

F = TypeVar("F", bound=Callable[..., object])

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True)
class Tool:
    """One tool of a skill. `description` is what the model reads."""

    name: str
    description: str
    function: Callable[..., object]
    tier: Tier
    read_only: bool
    idempotent: bool
    timeout_s: float
    destructive: bool = False
    flow: DataFlow = field(default_factory=DataFlow)
    listed_only: bool = False
    administration: bool = False
    changes_configuration: bool = False

    @cached_property
    def signature(self) -> ToolSignature:
        return ToolSignature(self.name, self.function)


class Skill:
    """A named set of tools and, if it has any, the type of its settings.

    `settings` is a dataclass or pydantic model whose fields all have defaults; the section of the configuration with
    the skill's name is read into it. Raises InvalidInput (`bad_skill`) for a wrong declaration.

    `acts_on_platform`: no tool of it does anything before its first action on the platform. So a call can be run up to
    there without effect, and people are not asked to approve one that the platform would refuse. What uses another
    service first is not checked.
    """

    def __init__(
        self, name: str, *, description: str, settings: type | None = None, acts_on_platform: bool = False
    ) -> None:
        _check(_NAME.fullmatch(name) is not None, f"`{name}` cannot be a skill's name", "use a-z, 0-9 and _")
        self.name = name
        self.description = description
        self.acts_on_platform = acts_on_platform
        self._settings = settings
        self._tools: dict[str, Tool] = {}

    def __repr__(self) -> str:
        return f"Skill({self.name!r})"

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools in the order of declaration."""
        return tuple(self._tools.values())

    def find_tool(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def tool(  # noqa: PLR0913 - keywords, each of which a reader of a skill understands
        self,
        *,
        name: str = "",
        tier: Tier = Tier.DANGEROUS,
        read_only: bool = False,
        idempotent: bool = False,
        timeout_s: float = 30.0,
        destructive: bool = False,
        reads: Iterable[Taint] = (),
        effects: Iterable[Effect] = (),
        destinations: Iterable[str] = (),
        statement: str = "",
        listed_only: bool = False,
        administration: bool = False,
        changes_configuration: bool = False,
    ) -> Callable[[F], F]:
        """Makes the decorated function a tool; the function itself stays as it is.

        Its first parameter is the `ToolContext`; the others, with their annotations, are the tool's parameters. The
        first paragraph of its docstring is the description for the model. `async def` runs on the event loop and must
        not block; a plain `def` runs in a thread, so it may block, but cannot fetch or call other tools.

        A tool that does not state its tier has the highest. `reads` says which untrusted texts the tool reads, and
        `effects` what it does: from these the gate knows what a stranger's text must not make it do. `destinations` are
        the parameters that say where the tool sends to, `statement` the one that a call without any other writes down
        about the user, for the user alone: what the user has just said need not be approved. A `listed_only` tool is
        for agents whose `tools` name it in full. One of the `administration` is there only in chats about that, for
        owners and admins. One that `changes_configuration` does nothing before that: those who approve a call are shown
        the difference that it would make.
        """

        def declare(function: F) -> F:
            tool = Tool(
                name=name or function.__name__,
                description=_describe(function),
                function=function,
                tier=tier,
                read_only=read_only,
                idempotent=idempotent,
                timeout_s=timeout_s,
                destructive=destructive,
                flow=DataFlow(frozenset(reads), frozenset(effects), tuple(destinations), statement=statement),
                listed_only=listed_only,
                administration=administration,
                changes_configuration=changes_configuration,
            )
            _check(_NAME.fullmatch(tool.name) is not None, f"`{tool.name}` cannot be a tool's name", "use a-z, 0-9, _")
            _check(tool.name not in self._tools, f"the skill {self.name} has two tools `{tool.name}`", "rename one")
            _check_parameters(tool.name, function)
            self._tools[tool.name] = tool
            return function

        return declare

    def specs(self) -> tuple[ToolSpec, ...]:
        """Returns the tools as models and the gate see them."""
        return tuple(
            ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=tool.signature.schema,
                tier=tool.tier,
                read_only=tool.read_only,
                idempotent=tool.idempotent or tool.read_only,
                cache=CacheScope.ASKER if tool.idempotent and tool.read_only else CacheScope.NONE,
                timeout_s=tool.timeout_s,
                source=self.name,
                destructive=tool.destructive,
                flow=tool.flow,
                listed_only=tool.listed_only,
                administration=tool.administration,
            )
            for tool in self.tools
        )

    def read_settings(self, section: Mapping[str, Json]) -> object:
        """Returns the section of the configuration as the declared type; None for a skill without settings.

        Raises InvalidInput that names the key, the reason and, for an unknown key, the nearest known one.
        """
        return parse_settings(self.name, self._settings, section)


def _describe(function: Callable[..., object]) -> str:
    doc = inspect.getdoc(function) or ""
    _check(bool(doc), f"`{function.__name__}` has no docstring", "say in one sentence what it does, for the model")
    return " ".join(doc.split("\n\n")[0].split())


def _check_parameters(tool: str, function: Callable[..., object]) -> None:
    parameters = list(inspect.signature(function).parameters.values())
    _check(bool(parameters), f"`{tool}` takes no context", "make `context: ToolContext` its first parameter")
    for parameter in parameters[1:]:
        # A schema has names only: *args, **kwargs and positional-only parameters cannot be filled from it.
        plain = parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
        _check(plain, f"`{tool}` has the parameter `{parameter}`", "name each parameter; no *args, **kwargs or /")
        _check(
            parameter.annotation is not parameter.empty,
            f"`{tool}` does not say the type of `{parameter.name}`",
            "annotate it: its schema is made from that",
        )


def _check(holds: bool, message: str, fix: str) -> None:  # noqa: FBT001
    if not holds:
        raise InvalidInput(message, code="bad_skill", fix=fix)


ENABLED = "enabled"
"""The key that the section of every skill has beside the skill's own."""


def parse_settings(skill: str, kind: type | None, section: Mapping[str, Json]) -> object:
    """Returns the section as an instance of `kind`; None for a skill without settings. Raises InvalidInput
    (`bad_skill_settings`) that names the key and the reason.
    """
    if kind is None:
        for key in section:
            near = difflib.get_close_matches(key, [ENABLED], n=1)
            fix = f"did you mean `{ENABLED}`?" if near else f"remove it; `{ENABLED}` is all that it takes"
            raise _refuse(skill, f"the skill {skill} has no settings", fix, key)
        return None
    from pydantic import TypeAdapter, ValidationError

    known = _keys(kind)
    for key in section:
        if key not in known:
            near = difflib.get_close_matches(key, [*known, ENABLED], n=1)
            fix = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known) or 'none'}"
            raise _refuse(skill, f"the skill {skill} has no setting `{key}`", fix, key)
    try:
        return TypeAdapter[object](kind).validate_python(dict(section))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(step) for step in first["loc"])
        which = f"the setting `{key}`" if key else "a setting"
        why, _, fix = first["msg"].removeprefix("Value error, ").partition("\nfix: ")
        message = f"{which} of the skill {skill} is wrong"
        raise _refuse(skill, f"{message}: {why.removesuffix('.')}" if fix else message, fix or why, key) from error


def _keys(kind: type) -> list[str]:
    name = kind.__name__
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    from pydantic import BaseModel

    if issubclass(kind, BaseModel):
        return list(kind.model_fields)
    raise InvalidInput(f"settings cannot be a {name}", code="bad_skill", fix="declare a dataclass or a pydantic model")


def _refuse(skill: str, message: str, fix: str, key: str = "") -> InvalidInput:
    return InvalidInput(message, code="bad_skill_settings", fix=fix, skill=skill, key=key)
