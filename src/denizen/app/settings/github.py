"""From `channels.github` to the accounts that answer there, each with its login and its manners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.adapters.github.settings import API_URL, AccountSettings
from denizen.app.secrets import SECRETS_FILE, FileSecrets, SecretRef
from denizen.app.settings.document import Document
from denizen.app.settings.problem import KeyPath, Problem
from denizen.app.settings.schema_github import GitHubAccountSection, GitHubConductSection, GitHubSection
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

ACCOUNTS: KeyPath = ("channels", "github", "accounts")
SECRETS = frozenset({"token", "private_key", "webhook_secret"})


@dataclass(frozen=True, slots=True)
class GitHubLogin:
    """One agent's account. An App whose key could not be read is there without one, and says so when it is used."""

    account: AccountSettings
    account_policy: AccountPolicy

    @property
    def agent(self) -> AgentName:
        return self.account.agent


def build_github_logins(section: GitHubSection, secrets: FileSecrets) -> tuple[GitHubLogin, ...]:
    """The accounts in the order of the file; those without a login are left out, all of them when GitHub is off."""
    if not section.enabled:
        return ()
    return tuple(
        GitHubLogin(_account(name, account, section, secrets), _manners(account))
        for name, account in section.accounts.items()
        if _has_login(account, secrets)
    )


def is_github_login(path: KeyPath) -> bool:
    """Whether a secret stands at this key path without which an account does nothing."""
    return path[:3] == ACCOUNTS and len(path) > 3 and path[4:] in ((), ("token",), ("private_key",))


def find_github_problems(document: Document, section: GitHubSection) -> Iterator[Problem]:
    """Trust in what somebody is to a repository, wherever that is: in a repository of their own everybody is `owner`,
    and anybody can install an App or invite a user there. Asks the accounts that `implied` filled in.
    """
    for name, account in section.accounts.items() if section.enabled else ():
        for key in ("answers", "admin_associations"):
            if getattr(account, key) and not _names_owners(account.repositories):
                own = key in account.model_fields_set
                yield document.problem(
                    (*ACCOUNTS, name, key) if own else ("channels", "github", key),
                    f"counts wherever the login of '{name}' can read, and in a repository of their own everybody is "
                    "`owner`: strangers could make their own repository one of yours.",
                    "Write repositories, each with its owner in full, such as harbour/*; or name people by id in "
                    "admins.",
                )


def _names_owners(repositories: Sequence[str]) -> bool:
    return bool(repositories) and not any("*" in each.partition("/")[0] for each in repositories)


def find_github_left_out(document: Document, section: GitHubSection, secrets: FileSecrets) -> Iterator[Problem]:
    """A notice for each account that has no login, and for each that cannot be told anything."""
    file = document.file.parent / SECRETS_FILE
    for name, account in section.accounts.items() if section.enabled else ():
        path = (*ACCOUNTS, name)
        if not account.app_id and account.token is None:
            fix = "Write app_id and private_key_file, or token, or take the account out."
            yield document.problem(path, f"there is no login, so '{name}' stays away from GitHub.", fix)
        elif _has_login(account, secrets) and not _find(account.webhook_secret, secrets):
            fix = f"Write webhook_secret: ${{GITHUB_WEBHOOK_SECRET}} here, and its value into {file}."
            yield document.problem(path, f"there is no webhook secret, so webhooks for '{name}' are refused.", fix)


def _has_login(account: GitHubAccountSection, secrets: FileSecrets) -> bool:
    if account.app_id:
        return bool(account.private_key_file or _find(account.private_key, secrets))
    return bool(_find(account.token, secrets))


def _account(name: str, account: GitHubAccountSection, section: GitHubSection, secrets: FileSecrets) -> AccountSettings:
    return AccountSettings(
        AgentName(name), api_url=section.api_url or API_URL, app_id=account.app_id,
        private_key=_read_key(account, secrets), token="" if account.app_id else _find(account.token, secrets),
        webhook_secret=_find(account.webhook_secret, secrets), repositories=account.repositories,
        reply_to_new_issues=account.reply_to_new_issues, rescan_s=account.rescan_minutes * 60,
    )  # fmt: skip


def _read_key(account: GitHubAccountSection, secrets: FileSecrets) -> str:
    """Empty when it cannot be read: then the account is left off, and says what to do."""
    if not account.private_key_file:
        return _find(account.private_key, secrets).replace("\\n", "\n")
    try:
        return (secrets.home / Path(account.private_key_file).expanduser()).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _manners(section: GitHubConductSection) -> AccountPolicy:
    """The conduct as the engine works with it. Who is not answered is not told so in public, and nothing is decided
    there: there are no buttons, and strangers read it.
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
            reactions=Reactions(section.reactions.seen, section.reactions.done, section.reactions.failed),
            error_message=section.error_message,
            failure_text=section.failure_text,
            tells_refusals=False,
            asks_here=False,
        ),
    )


def _find(ref: SecretRef | None, secrets: FileSecrets) -> str:
    return (secrets.find(ref.name) or "") if ref else ""
