"""The shape of `channels.github`: how agents behave in repositories, and with which logins.

Every key of the conduct may stand at an account too, where it counts for that account alone; `implied` fills in what an
account leaves open. What an account is to the rest of the program is in `github`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WrapValidator, model_validator

from denizen.app.settings.fields import (
    HttpUrl,
    Number,
    Secret,
    Section,
    Text,
    Whole,
    at_most,
    keep_template,
    read_digits,
    refuse,
)
from denizen.domain.attention import Manners

COMMENT_CHARS = 65_400
"""Of one comment at most, with room for the mark that finds it again."""
ROOM_FOR_CODE = 400
"""Names that would call somebody are set as code, which makes a piece longer."""
MESSAGE_CHARS = 2000

_MANNERS = Manners()
_ID = re.compile(r"[0-9]{1,20}")
_REPOSITORY = re.compile(r"[\w.*-]+/[\w.*-]+")
_WEEK_MINUTES = 7 * 24 * 60


class Association(StrEnum):
    """What somebody is to a repository, in GitHub's words."""

    OWNER = "owner"
    MEMBER = "member"
    COLLABORATOR = "collaborator"
    CONTRIBUTOR = "contributor"
    FIRST_TIMER = "first_timer"
    FIRST_TIME_CONTRIBUTOR = "first_time_contributor"
    NONE = "none"


REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
"""GitHub has no others."""


def _github_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise refuse(
            "this is not an id of GitHub.", "Write the number that https://api.github.com/users/NAME has as id."
        )
    return value


def _repository(value: str) -> str:
    if not _REPOSITORY.fullmatch(value):
        raise refuse("this is not a repository.", "Write owner/name, or owner/* for all of an owner.")
    return value


def _reaction(value: str) -> str:
    if value and value not in REACTIONS:
        raise refuse("GitHub has no such reaction.", f"Write one of {', '.join(REACTIONS)}; empty for none.")
    return value


GitHubId = Annotated[str, BeforeValidator(read_digits), AfterValidator(_github_id), WrapValidator(keep_template)]
"""Of a user; in the file with quotes or without. Names can be changed and taken by others."""
Repository = Annotated[str, AfterValidator(_repository), WrapValidator(keep_template)]
Reaction = Annotated[str, AfterValidator(_reaction), WrapValidator(keep_template)]


class GitHubReactionsSection(Section):
    """What shows the state of a question. Empty means none."""

    seen: Reaction = Field(
        default="eyes",
        description="Put on a question while it is answered: `+1`, `-1`, `laugh`, `confused`, `heart`, `hooray`, "
        "`rocket` or `eyes`; empty: none.",
    )
    done: Reaction = Field(default="", description="Put on a question that was answered; empty: none.")
    failed: Reaction = Field(default="confused", description="Put on one that could not be answered; empty: none.")


class GitHubConductSection(Section):
    """How an agent behaves in repositories: whom it hears, when it speaks, what its answers look like."""

    repositories: tuple[Repository, ...] = Field(
        default=(), description="Where it answers, as `owner/name` or `owner/*`; empty: wherever its login can read."
    )
    reply_to_new_issues: bool = Field(
        default=False, description="Whether it answers each issue that is opened, also without a mention."
    )
    answers: tuple[Association, ...] = Field(
        default=(),
        description="Whom it answers, by what they are to the repository: `owner`, `member` (of the organisation), "
        "`collaborator`, `contributor`, `first_time_contributor`, `first_timer`, `none`; empty: everybody. "
        "Needs `repositories`.",
    )
    owners: tuple[GitHubId, ...] = Field(default=(), description="Ids of users who may do everything.")
    admins: tuple[GitHubId, ...] = Field(default=(), description="Ids of users who may give administrative commands.")
    admin_associations: tuple[Association, ...] = Field(
        default=(),
        description="Who may, too, by what they are to the repository; empty: nobody. Needs `repositories`.",
    )
    max_exchanges: Whole = Field(
        default=0,
        ge=0,
        le=100,
        description="How many mentions by bots in a row are answered in a thread, until a person writes; 0: none.",
    )
    missed_limit_minutes: Number = Field(
        default=_WEEK_MINUTES / 7,
        ge=0,
        le=_WEEK_MINUTES,
        description="Mentions in one thread that came while Denizen was away and are older get one reply together.",
    )
    rescan_minutes: Number = Field(
        default=15.0,
        ge=0,
        le=_WEEK_MINUTES,
        description="How often it looks for messages whose webhook never came; 0: only when it starts.",
    )
    message_limit: Whole = Field(
        default=COMMENT_CHARS - ROOM_FOR_CODE,
        ge=50,
        le=COMMENT_CHARS,
        description="Characters at which answers are split.",
    )
    reactions: GitHubReactionsSection = Field(default_factory=GitHubReactionsSection)
    error_message: Annotated[Text, at_most(MESSAGE_CHARS)] = Field(
        default=_MANNERS.error_message,
        description="Told after a failure in place of the reason; a reference is added to it. Empty: the reason.",
    )
    failure_text: bool = Field(
        default=_MANNERS.failure_text, description="Whether a failure is told in words, beside the reaction."
    )


class _Login(Section):
    token: Secret = Field(default=None, description="A user's token. `NAME: ${TOKEN}` is the short form.")
    app_id: Annotated[Text, BeforeValidator(read_digits)] = Field(
        default="", description="Id of a GitHub App, in place of a token."
    )
    private_key: Secret = Field(
        default=None, description="The App's private key in PEM form; line breaks may be written as `\\n`."
    )
    private_key_file: Text = Field(
        default="", description="File of the App's private key, relative to the home folder; in place of `private_key`."
    )
    webhook_secret: Secret = Field(
        default=None, description="The secret of the webhook; without one webhooks of this account are refused."
    )


def _conduct_is_told_once(schema: dict[str, Any]) -> None:
    """In the reference an account shows its login only; the conduct stands at `channels.github`."""
    schema["properties"] = {name: schema["properties"][name] for name in _Login.model_fields}


class GitHubAccountSection(GitHubConductSection, _Login):
    """One agent's login. What it leaves open of the conduct is that of `channels.github`."""

    model_config = ConfigDict(json_schema_extra=_conduct_is_told_once)

    @property
    def foreign_keys(self) -> frozenset[str]:
        """What it shares with the other accounts stands there and is not repeated."""
        return frozenset(GitHubConductSection.model_fields) - self.model_fields_set

    @model_validator(mode="after")
    def _is_one_login(self) -> Self:
        has_key = self.private_key is not None or bool(self.private_key_file)
        if self.app_id and self.token is not None:
            raise refuse("an App needs no token.", "Keep app_id with its private key, or the token.", key="token")
        if has_key and not self.app_id:
            raise refuse("there is a private key, but no app_id.", "Write the App's id.", key="app_id")
        if self.app_id and not has_key:
            raise refuse("there is an app_id, but no private key.", "Write private_key_file.", key="private_key_file")
        return self


def _short_account(value: object) -> object:
    return {"token": value} if isinstance(value, str) else value


class _Access(Section):
    enabled: bool = Field(default=True, description="Whether the accounts are used.")
    accounts: dict[str, Annotated[GitHubAccountSection, BeforeValidator(_short_account)]] = Field(
        default_factory=dict[str, GitHubAccountSection]
    )


class GitHubSection(GitHubConductSection, _Access):
    """GitHub. Without accounts nothing happens."""

    api_url: HttpUrl = Field(
        default="", description="REST address of GitHub Enterprise, such as https://github.example.org/api/v3."
    )
