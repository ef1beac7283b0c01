"""Checks an account for `denizen doctor`: credentials, webhook, permissions, repositories. It only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from denizen.adapters.github.access import list_repositories
from denizen.adapters.github.api import AppCredentials, build_credentials
from denizen.adapters.github.client import GitHubClient, Payload, get_object, get_text
from denizen.adapters.github.events import EVENTS
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.domain.clock import Clock
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import DenizenError

ROUTE = "/api/webhooks/github"
MIN_SECRET_CHARS = 16

_PERMISSIONS = {"issues": "Issues", "pull_requests": "Pull requests", "discussions": "Discussions"}
_OPTIONAL = frozenset({"discussions", "discussion", "discussion_comment"})
"""Permissions that an account can do without."""
_APP_PAGE = "Settings > Developer settings > GitHub Apps > the App"


async def check_account(settings: GitHubAccountSettings, clock: Clock) -> Sequence[Diagnosis]:
    """Returns the findings, in reading order. Raises nothing."""
    client = GitHubClient(settings.api_url, clock)
    credentials = build_credentials(client, settings, clock)
    findings: list[Diagnosis] = []
    try:
        identity = await credentials.identify()
        findings.append(Diagnosis(Severity.OK, f"The credentials belong to {identity.about} ({identity.login})."))
        findings += _check_secret(settings)
        if isinstance(credentials, AppCredentials):
            app = await credentials.load_app()
            findings += [*_check_app(app), *_check_hook(await credentials.load_hook())]
        names = [each.name for each in await list_repositories(client, credentials, settings)]
        findings.append(_describe_repositories(names, settings))
    except DenizenError as error:
        findings.append(Diagnosis(Severity.ERROR, f"{error.message} {error.why}".strip(), error.fix, error.code))
    finally:
        await client.aclose()
    return findings


def _check_secret(settings: GitHubAccountSettings) -> Iterator[Diagnosis]:
    place = f"{settings.setting}.webhook_secret"
    if not settings.webhook_secret:
        yield Diagnosis(
            Severity.ERROR,
            "There is no webhook secret, so webhooks are refused, and only regular scans find new messages.",
            f"Make up a long one, put it into {place} and into the webhook's settings on GitHub.",
            "github_secret_missing",
        )
    elif len(settings.webhook_secret) < MIN_SECRET_CHARS:
        text = f"The webhook secret has fewer than {MIN_SECRET_CHARS} characters and can be guessed."
        fix = f"Put a longer one into {place} and into the webhook's settings."
        yield Diagnosis(Severity.WARNING, text, fix, "github_secret_short")
    else:
        yield Diagnosis(Severity.OK, "The webhook secret is set.")


def _check_app(app: Payload) -> Iterator[Diagnosis]:
    """Checks the App's permissions and the events that GitHub sends it."""
    permissions, events = get_object(app, "permissions"), set(map(str, app.get("events") or ()))
    lacking = [name for name in _PERMISSIONS if get_text(permissions, name) != "write"]
    unheard = [name for name in EVENTS if name not in events]
    fix = f"Open {_APP_PAGE} > Permissions & events, change it, and accept that for each installation."
    for names, says in (
        ([_PERMISSIONS[name] for name in lacking if name not in _OPTIONAL], "The App may not write in: {}."),
        ([name for name in unheard if name not in _OPTIONAL], "The App is not subscribed to: {}."),
    ):
        if names:
            yield Diagnosis(Severity.ERROR, says.format(", ".join(names)), fix, "github_rights_missing")
    if set(lacking) & _OPTIONAL or set(unheard) & _OPTIONAL:
        yield Diagnosis(
            Severity.WARNING,
            "Discussions are not answered: the App may not write there, or hears not.",
            fix,
            "github_discussions_off",
        )
    if not lacking and not unheard:
        yield Diagnosis(Severity.OK, "The App has all permissions and events.")


def _check_hook(hook: Payload) -> Iterator[Diagnosis]:
    url, media_type = get_text(hook, "url"), get_text(hook, "content_type")
    fix = f"Open {_APP_PAGE} > General > Webhook."
    if not url:
        text = "The App has no webhook, so only regular scans find new messages."
        fix = f"{fix} Make it active, with a URL that ends with {ROUTE}."
        yield Diagnosis(Severity.ERROR, text, fix, "github_hook_missing")
    elif not url.rstrip("/").endswith(ROUTE):
        fix = f"{fix} The URL ends with {ROUTE}."
        yield Diagnosis(Severity.ERROR, f"The App's webhook goes to '{url}'.", fix, "github_hook_elsewhere")
    elif media_type not in ("json", "application/json"):
        yield Diagnosis(
            Severity.ERROR, "The App's webhook sends forms.", f"{fix} Choose application/json.", "github_hook_forms"
        )
    elif not get_text(hook, "secret"):
        fix = f"{fix} Enter the same secret."
        yield Diagnosis(Severity.ERROR, "The App's webhook has no secret on GitHub.", fix, "github_hook_open")
    else:
        yield Diagnosis(Severity.OK, f"The App's webhook goes to {url}.")


def _describe_repositories(names: Sequence[str], settings: GitHubAccountSettings) -> Diagnosis:
    if not names:
        fix = "Install the App where it should answer, or give the token access, and look at `repositories`."
        return Diagnosis(
            Severity.ERROR, "The account can read no repository in which it may answer.", fix, "github_no_repository"
        )
    shown = ", ".join(sorted(names)[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    new = " New issues are answered, too." if settings.reply_to_new_issues else ""
    return Diagnosis(Severity.OK, f"It answers in {shown}{more}.{new}")
