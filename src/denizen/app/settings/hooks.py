"""The section `hooks` of an agent, and of what triggers turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator

from denizen.app.settings.fields import Section, SomeText, Text, keep_template, refuse
from denizen.app.settings.problem import ConfigProblem, KeyPath, find_closest
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.hook import RESPONSE, Hook, Hooks, list_variables
from denizen.engine.hooks.skip_rule import check_pattern


def _skip_rule(value: str) -> str:
    try:
        check_pattern(value)
    except ValueError:
        fix = "Correct it (a bracket in brackets is `\\[`); put it in single quotes, so that backslashes stay."
        raise refuse("this is not a regular expression.", fix) from None
    return value


def _list_hooks(value: object) -> object:
    """One hook may stand without a list."""
    return [cast("object", value)] if isinstance(value, dict) else value


class HookSection(Section):
    """One call of a tool, with the arguments that are written here."""

    tool: SomeText = Field(description="The tool, by its name; any that is loaded, not only the agent's.")
    args: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Its arguments. `{{name}}` in a text stands for a variable: `{{response}}` is the answer, in "
        "`after_run`. What triggers turns by itself gives others.",
    )
    skip_if: Annotated[Text, AfterValidator(_skip_rule), WrapValidator(keep_template)] = Field(
        default="",
        description="A regular expression. Where it is found in the output, in `before_run` the turn is skipped, in "
        "`after_run` only the hooks that follow are. A hook that fails skips nothing.",
    )

    @property
    def record(self) -> Hook:
        return Hook(self.tool, dict(self.args), self.skip_if)


HookList = Annotated[tuple[HookSection, ...], BeforeValidator(_list_hooks)]


class HooksSection(Section):
    """Calls of tools around each turn, which no model decides about. One hook, or a list that is run in order. Each
    passes the gate in the name of whoever asked; one that is not allowed, or fails, is logged, and the next one runs.
    """

    before_run: HookList = Field(default=(), description="Before the model is asked.")
    after_run: HookList = Field(default=(), description="After the answer, which does not wait for them.")

    @property
    def record(self) -> Hooks:
        before, after = (tuple(each.record for each in hooks) for hooks in (self.before_run, self.after_run))
        return Hooks(before, after)


def find_misspelt_variables(
    document: ConfigDocument, path: KeyPath, hooks: HooksSection, known: Iterable[str]
) -> Iterator[ConfigProblem]:
    """Yields a warning for each variable that nothing gives and that is nearly one of these: it stays as it is written.
    Other words in such brackets may be meant for the tool.
    """
    for when, listed, names in (
        ("before_run", hooks.before_run, [*known]),
        ("after_run", hooks.after_run, [*known, RESPONSE]),
    ):
        for index, hook in enumerate(listed):
            for name in sorted(list_variables(hook.args) - {*names}):
                if near := find_closest(name, names):
                    at: KeyPath = (*path, when, index)
                    where = at if document.has(at) else (*path, when)
                    message = f"{{{{{name}}}}} is no variable here, and stays as it is written."
                    yield document.problem(where, message, f"Did you mean {{{{{near}}}}}?")
