"""The section `task_watcher`: the agent that looks at changed tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from denizen.app.settings.discord import DiscordSection
from denizen.app.settings.fields import Section, SomeText, Text, Whole, at_most, default_section
from denizen.app.settings.hooks import HooksSection
from denizen.app.settings.problem import ConfigProblem
from denizen.app.settings.schedules import DeliverySection, find_delivery_problems, read_short_delivery
from denizen.app.settings.tools import ToolSection
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.ids import AgentName
from denizen.domain.project import HOURLY_LOOKS, TASK_SKILL, TaskAction, TaskWatcherPolicy

PROMPT_CHARS = 20_000
PROMPT = (
    "A task has changed. Look whether there is something that you can do for it: answer a question in a comment, fill "
    "in what is missing, set its status. If there is nothing to do, change nothing and say so in a word."
)


class TaskWatcherSection(Section):
    """An agent that looks at each task that was made or changed, whoever did that and wherever."""

    enabled: bool = Field(default=False, description="Whether it looks.")
    agent: Text = Field(
        default="", description="The agent that looks; empty: the default agent. It has the tools for tasks besides."
    )
    prompt: Annotated[SomeText, at_most(PROMPT_CHARS)] = Field(
        default=PROMPT, description="What it is told; the task stands below."
    )
    debounce_ms: Whole = Field(
        default=5000,
        ge=0,
        le=3_600_000,
        description="Milliseconds after the last change of a task: changes in between count as one.",
    )
    triggers: tuple[TaskAction, ...] = Field(
        default=tuple(TaskAction),
        min_length=1,
        description="Which changes count: `created`, and `updated`, which comments are too.",
    )

    per_hour: Whole = Field(
        default=HOURLY_LOOKS,
        ge=1,
        le=10_000,
        description="How often an hour it looks at most, half of them at what the same person changed. The rest waits.",
    )

    delivery: Annotated[DeliverySection, BeforeValidator(read_short_delivery)] = default_section()
    hooks: HooksSection = default_section(
        "Calls of tools around each turn, behind those of the agent. `{{action}}`, `{{task_id}}`, `{{task_title}}`, "
        "`{{task_status}}`, `{{task_project}}`, `{{task_author}}`, `{{task_assignee}}`, `{{task_tags}}`, "
        "`{{task_due}}` and `{{task_description}}` stand for the change and the task."
    )

    def build_policy(self, default_agent: AgentName) -> TaskWatcherPolicy:
        """Returns what the section means."""
        return TaskWatcherPolicy(
            agent=AgentName(self.agent) or default_agent,
            prompt=self.prompt,
            debounce_ms=self.debounce_ms,
            triggers=frozenset(self.triggers),
            delivery=self.delivery.record,
            hooks=self.hooks.record,
            per_hour=self.per_hour,
        )


def find_watcher_problems(
    document: ConfigDocument,
    watcher: TaskWatcherSection,
    default_agent: str,
    discord: DiscordSection,
    tools: Mapping[str, ToolSection],
) -> Iterator[ConfigProblem]:
    """Yields a problem where the watcher's answers can never arrive, or its agent would lack the tools for tasks."""
    if not watcher.enabled:
        return
    agent, skill = watcher.agent or default_agent, tools.get(TASK_SKILL)
    yield from find_delivery_problems(document, ("task_watcher", "delivery"), watcher.delivery, agent, discord)
    if skill is not None and skill.enabled is False:
        path = ("tools", TASK_SKILL, "enabled")
        yield document.problem(path, "the task watcher needs these tools.", "Leave it out, or switch the watcher off.")
