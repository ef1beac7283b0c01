"""The section `channels.github`: the policy of agents in repositories, their logins, and the accounts that they become.

Every key of the policy may stand at an account too, where it applies to that account alone; `load` fills in what an
account leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator, model_validator

from denizen.adapters.github.settings import API_URL, GitHubAccountSettings
from denizen.app.home.secrets import SECRETS_FILE, FileSecrets, SecretRef
from denizen.app.settings.fields import (
    AccountSection,
    HttpUrl,
    Number,
    Secret,
    Section,
    Text,
    Whole,
    at_most,
    default_section,
    keep_template,
    read_digits,
    read_short_account,
    refuse,
)
from denizen.app.settings.problem import ConfigProblem, KeyPath
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.attention import (
    AccountPolicy,
    AccountScope,
    AccountStaff,
    ConversationLimits,
    Reactions,
    ReplyStyle,
    ThreadMode,
    TriggerPolicy,
)
from denizen.domain.ids import AgentName
from denizen.domain.record import record

COMMENT_CHARS = 65_400
"""The limit of one comment, less the mark that finds it again."""
ROOM_FOR_CODE = 400
"""Room for code quotes: names that would notify somebody are quoted as code, which makes a comment longer."""
MESSAGE_CHARS = 2000

_MANNERS = AccountPolicy()
_ID = re.compile(r"[0-9]{1,20}")
_REPOSITORY = re.compile(r"[\w.*-]+/[\w.*-]+")
_WEEK_MINUTES = 7 * 24 * 60


class GitHubAssociation(StrEnum):
    """The relation of a user to a repository, in GitHub's words."""

    OWNER = "owner"
    MEMBER = "member"
    COLLABORATOR = "collaborator"
    CONTRIBUTOR = "contributor"
    FIRST_TIMER = "first_timer"
    FIRST_TIME_CONTRIBUTOR = "first_time_contributor"
    NONE = "none"


REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
"""The reactions that GitHub has."""


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
"""The id of a user; in the file with quotes or without. Names can be changed and taken by others."""
Repository = Annotated[str, AfterValidator(_repository), WrapValidator(keep_template)]
Reaction = Annotated[str, AfterValidator(_reaction), WrapValidator(keep_template)]


class GitHubReactionsSection(Section):
    """The reactions that show the state of a question. Empty means none."""

    seen: Reaction = Field(
        default="eyes",
        description="Put on a question while it is answered: `+1`, `-1`, `laugh`, `confused`, `heart`, `hooray`, "
        "`rocket` or `eyes`; empty: none.",
    )
    done: Reaction = Field(default="", description="Put on a question that was answered; empty: none.")
    failed: Reaction = Field(default="confused", description="Put on one that could not be answered; empty: none.")


class GitHubPolicySection(Section):
    """The policy of an agent in repositories: whom it answers, when it speaks, what its answers look like."""

    repositories: tuple[Repository, ...] = Field(
        default=(), description="Where it answers, as `owner/name` or `owner/*`; empty: wherever its login can read."
    )
    reply_to_new_issues: bool = Field(
        default=False, description="Whether it answers each issue that is opened, also without a mention."
    )
    answers: tuple[GitHubAssociation, ...] = Field(
        default=(),
        description="Whom it answers, by what they are to the repository: `owner`, `member` (of the organisation), "
        "`collaborator`, `contributor`, `first_time_contributor`, `first_timer`, `none`; empty: everybody. "
        "Needs `repositories`.",
    )
    owners: tuple[GitHubId, ...] = Field(default=(), description="Ids of users who may do everything.")
    admins: tuple[GitHubId, ...] = Field(default=(), description="Ids of users who may give administrative commands.")
    admin_associations: tuple[GitHubAssociation, ...] = Field(
        default=(), description="Who may, too, by what they are to the repository; empty: nobody. Needs `repositories`."
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
    reactions: GitHubReactionsSection = default_section()
    error_message: Annotated[Text, at_most(MESSAGE_CHARS)] = Field(
        default=_MANNERS.style.error_message,
        description="Told after a failure in place of the reason; a reference is added to it. Empty: the reason.",
    )
    failure_text: bool = Field(
        default=_MANNERS.style.failure_text, description="Whether a failure is told in words, beside the reaction."
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


class GitHubAccountSection(AccountSection, GitHubPolicySection, _Login):
    """One agent's login. What it leaves open of the policy is that of `channels.github`."""

    POLICY = GitHubPolicySection

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


class _Access(Section):
    enabled: bool = Field(default=True, description="Whether the accounts are used.")
    accounts: dict[str, Annotated[GitHubAccountSection, BeforeValidator(read_short_account)]] = Field(
        default_factory=dict[str, GitHubAccountSection]
    )


class GitHubSection(GitHubPolicySection, _Access):
    """GitHub. Without accounts nothing happens."""

    api_url: HttpUrl = Field(
        default="", description="REST address of GitHub Enterprise, such as https://github.example.org/api/v3."
    )


ACCOUNTS: KeyPath = ("channels", "github", "accounts")
SECRETS = frozenset({"token", "private_key", "webhook_secret"})


@record
class GitHubLogin:
    """One agent's account. An App whose key cannot be read is there without one, and fails with the reason when it is
    used.
    """

    account: GitHubAccountSettings
    account_policy: AccountPolicy

    @property
    def agent(self) -> AgentName:
        return self.account.agent


def build_github_logins(section: GitHubSection, secrets: FileSecrets) -> tuple[GitHubLogin, ...]:
    """Returns the accounts in the order of the file; those without a login are left out, all of them when GitHub is
    off.
    """
    if not section.enabled:
        return ()
    return tuple(
        GitHubLogin(_account(name, account, section, secrets), _manners(account))
        for name, account in section.accounts.items()
        if _has_login(account, secrets)
    )


def is_github_login(path: KeyPath) -> bool:
    """Returns whether a secret stands at this key path without which an account does nothing."""
    return path[:3] == ACCOUNTS and len(path) > 3 and path[4:] in ((), ("token",), ("private_key",))


def find_github_problems(document: ConfigDocument, section: GitHubSection) -> Iterator[ConfigProblem]:
    """Yields a problem for trust in associations without a list of repositories. In a repository of their own everybody
    is `owner`, and anybody can install an App or invite a user there. The accounts are those that `load` filled in.
    """
    for name, account in section.accounts.items() if section.enabled else ():
        names_owners = account.repositories and not any("*" in each.partition("/")[0] for each in account.repositories)
        for key in ("answers", "admin_associations"):
            if getattr(account, key) and not names_owners:
                own = key in account.model_fields_set
                yield document.problem(
                    (*ACCOUNTS, name, key) if own else ("channels", "github", key),
                    f"counts wherever the login of '{name}' can read, and in a repository of their own everybody is "
                    "`owner`: strangers could make their own repository one of yours.",
                    "Write repositories, each with its owner in full, such as harbour/*; or name people by id in "
                    "admins.",
                )


def find_github_left_out(
    document: ConfigDocument, section: GitHubSection, secrets: FileSecrets
) -> Iterator[ConfigProblem]:
    """Yields a notice for each account without a login, and for each whose webhooks are refused."""
    file = document.file.parent / SECRETS_FILE
    for name, account in section.accounts.items() if section.enabled else ():
        path = (*ACCOUNTS, name)
        if not account.app_id and account.token is None:
            fix = "Write app_id and private_key_file, or token, or take the account out."
            yield document.problem(path, f"there is no login, so '{name}' stays away from GitHub.", fix)
        elif (missing := _read_key(account, secrets)[1]) and account.app_id:
            fix = "Generate a private key on the App's page, and put it there."
            yield document.problem((*path, "private_key_file"), f"{missing} So '{name}' stays away from GitHub.", fix)
        elif _has_login(account, secrets) and not _find(account.webhook_secret, secrets):
            fix = f"Write webhook_secret: ${{GITHUB_WEBHOOK_SECRET}} here, and its value into {file}."
            yield document.problem(path, f"there is no webhook secret, so webhooks for '{name}' are refused.", fix)


def _has_login(account: GitHubAccountSection, secrets: FileSecrets) -> bool:
    if account.app_id:
        return bool(account.private_key_file or _find(account.private_key, secrets))
    return bool(_find(account.token, secrets))


def _account(
    name: str, account: GitHubAccountSection, section: GitHubSection, secrets: FileSecrets
) -> GitHubAccountSettings:
    private_key, key_problem = _read_key(account, secrets)
    return GitHubAccountSettings(
        AgentName(name),
        api_url=section.api_url or API_URL,
        app_id=account.app_id,
        private_key=private_key,
        key_problem=key_problem,
        token="" if account.app_id else _find(account.token, secrets),
        webhook_secret=_find(account.webhook_secret, secrets),
        repositories=account.repositories,
        reply_to_new_issues=account.reply_to_new_issues,
        rescan_s=account.rescan_minutes * 60,
    )


def _read_key(account: GitHubAccountSection, secrets: FileSecrets) -> tuple[str, str]:
    """Returns the App's private key, and why there is none. Then the account is left off, and says what to do."""
    if not account.private_key_file:
        return _find(account.private_key, secrets).replace("\\n", "\n"), ""
    file = secrets.home / Path(account.private_key_file).expanduser()
    try:
        return file.read_text(encoding="utf-8"), ""
    except FileNotFoundError:
        return "", f"There is no file {file}."
    except OSError as error:
        return "", f"{file} cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        return "", f"{file} is no text, and so no key in PEM form."


def _manners(section: GitHubPolicySection) -> AccountPolicy:
    """Returns the policy in the form that the engine works with. Refusals are not told in public, and approvals are not
    asked there: GitHub has no buttons, and strangers read along.
    """
    return AccountPolicy(
        staff=AccountStaff(
            owners=frozenset(section.owners),
            admins=frozenset(section.admins),
            admin_roles=frozenset(map(str, section.admin_associations)),
        ),
        scope=AccountScope(roles=frozenset(map(str, section.answers))),
        triggers=TriggerPolicy(threads=ThreadMode.NONE, replies=False),
        limits=ConversationLimits(
            max_exchanges=section.max_exchanges, missed_limit_s=section.missed_limit_minutes * 60, edit_window_s=0.0
        ),
        style=ReplyStyle(
            message_limit=section.message_limit,
            keep_blank_lines=True,
            preview=False,
            reactions=Reactions(
                waiting="",  # GitHub has eight reactions, and none for this
                seen=section.reactions.seen,
                done=section.reactions.done,
                failed=section.reactions.failed,
            ),
            error_message=section.error_message,
            failure_text=section.failure_text,
            tells_refusals=False,
            asks_here=False,
        ),
    )


def _find(ref: SecretRef | None, secrets: FileSecrets) -> str:
    return (secrets.find(ref.name) or "") if ref else ""
