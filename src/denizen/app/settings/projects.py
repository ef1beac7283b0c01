"""The section `task_watcher`: the agent that looks at changed tasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from denizen.app.settings.fields import Section, SomeText, Text, Whole, at_most
from denizen.domain.ids import AgentName
from denizen.domain.project import TaskAction, TaskWatcherPolicy

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

    def build_policy(self, default_agent: AgentName) -> TaskWatcherPolicy:
        """Returns what the section means."""
        return TaskWatcherPolicy(
            agent=AgentName(self.agent) or default_agent,
            prompt=self.prompt,
            debounce_ms=self.debounce_ms,
            triggers=frozenset(self.triggers),
        )
