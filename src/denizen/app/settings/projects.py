"""The sections `projects` and `task_watcher`: mirrors of issues, and the agent that looks at changed tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from denizen.adapters.github.settings import PLATFORM
from denizen.app.settings.discord import DiscordSection
from denizen.app.settings.fields import Section, SomeText, Text, Whole, at_most, default_section, refuse
from denizen.app.settings.github import GitHubSection, Repository
from denizen.app.settings.hooks import HooksSection
from denizen.app.settings.problem import ConfigProblem
from denizen.app.settings.schedules import DeliverySection, find_delivery_problems, read_short_delivery
from denizen.app.settings.tools import ToolSection
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.ids import AgentName
from denizen.domain.issue_mirror import IssueMirror
from denizen.domain.project import HOURLY_LOOKS, MAX_NAME_CHARS, TASK_SKILL, TaskAction, TaskWatcherPolicy

PROMPT_CHARS = 20_000
PROMPT = (
    "A task has changed. Look whether there is something that you can do for it: answer a question in a comment, fill "
    "in what is missing, set its status. If there is nothing to do, change nothing and say so in a word."
)


def _one_repository(value: str) -> str:
    if "*" in value:
        raise refuse("a project mirrors one repository.", "Write owner/name.")
    return value


def _project_name(value: str) -> str:
    if not value.strip() or len(value) > MAX_NAME_CHARS or value != " ".join(value.split()):
        raise refuse("this cannot be the name of a project.", f"Use one line of at most {MAX_NAME_CHARS} characters.")
    return value


ProjectName = Annotated[str, AfterValidator(_project_name)]


class IssueMirrorSection(Section):
    """A repository whose issues are tasks."""

    repository: Annotated[Repository, AfterValidator(_one_repository)] = Field(description="As `owner/name`.")
    direction: Literal["in", "both"] = Field(
        default="in",
        description="`in`: issues become tasks. `both`: tasks become issues too, and whoever reads the repository "
        "reads what is written in the project.",
    )
    account: Text = Field(default="", description="The agent whose GitHub account is used; empty: the only one.")
    every: Whole = Field(
        default=300, ge=60, le=86_400, description="Seconds between two looks for what no webhook told of."
    )


class ProjectSection(Section):
    """A project that is about something outside, by its name or id."""

    readers: Literal["owners", "everybody"] = Field(
        default="owners", description="Whom the project is for if it has to be made: `owners` and admins, or everybody."
    )
    github: IssueMirrorSection | None = Field(default=None, description="Mirrors the issues of a repository.")


def build_mirrors(projects: Mapping[str, ProjectSection], github: GitHubSection) -> tuple[IssueMirror, ...]:
    """Returns the mirrors that the sections mean."""
    return tuple(
        IssueMirror(
            project=name,
            platform=PLATFORM,
            repository=section.github.repository,
            account=AgentName(_find_account(section.github, github)),
            goes_out=section.github.direction == "both",
            every=timedelta(seconds=section.github.every),
            for_everybody=section.readers == "everybody",
        )
        for name, section in projects.items()
        if section.github is not None
    )


def find_mirror_problems(
    document: ConfigDocument, projects: Mapping[str, ProjectSection], github: GitHubSection
) -> Iterator[ConfigProblem]:
    """Yields a problem for each mirror without an account that may read its repository, and for a repository of two."""
    taken: dict[str, str] = {}
    for name, section in projects.items():
        if (mirror := section.github) is None:
            continue
        path = ("projects", name, "github")
        account = github.accounts.get(_find_account(mirror, github))
        if account is None:
            known = ", ".join(github.accounts) or "none"
            fix = f"Write one that channels.github.accounts has: {known}."
            yield document.problem((*path, "account"), "there is no such GitHub account.", fix)
        elif account.repositories and not any(
            fnmatchcase(mirror.repository.lower(), each.lower()) for each in account.repositories
        ):
            fix = "Add it to the repositories of channels.github, or of the account, or choose another account."
            yield document.problem((*path, "repository"), "the account does not work in this repository.", fix)
        other = taken.setdefault(mirror.repository.lower(), name)
        if other != name:
            fix = "Mirror each repository into one project."
            yield document.problem((*path, "repository"), f"the project '{other}' mirrors it already.", fix)


def _find_account(mirror: IssueMirrorSection, github: GitHubSection) -> str:
    return mirror.account or (next(iter(github.accounts)) if len(github.accounts) == 1 else "")


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
