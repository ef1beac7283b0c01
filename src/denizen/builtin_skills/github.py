"""GitHub: searching and reading repositories, issues and pull requests, and writing issues and comments.

The token is used for the repositories that the owner lists, and for no other: without it only what is public can be
read, so nobody reads a private repository through the agent that the owner did not open. What people wrote on GitHub
comes from strangers; writing there is public and needs somebody's approval.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal
from urllib.parse import quote, urlencode

from denizen.builtin_skills.attempts import begin_once
from denizen.skill import (
    Effect,
    InvalidInput,
    Json,
    NotAllowed,
    NotFound,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    WebRequest,
    quote_untrusted,
    truncate,
)

TIMEOUT_S = 30.0
MAX_ANSWER_CHARS = 12_000
MAX_BODY_CHARS = 6000
LISTED = 20

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_OK, _CREATED, _MISSING, _REFUSED = 200, 201, (404, 410), (401, 403, 429)


@dataclass(frozen=True, slots=True)
class GitHubSettings:
    """`repositories` are those that `token` is used for, such as `club/site` or `club/*`: they may be private, and may
    be written to. `server` is another address of the API, of GitHub Enterprise.
    """

    token: str = field(default="", repr=False)
    repositories: tuple[str, ...] = ()
    server: str = "https://api.github.com"


skill = Skill("github", description="Reads and writes on GitHub.", settings=GitHubSettings)

Repository = Annotated[str, Param("owner/name", max_length=140)]
Number = Annotated[int, Param(ge=1, le=999_999_999)]


@skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=TIMEOUT_S + 10, reads={Taint.WEB})
async def search_github(
    context: ToolContext,
    query: Annotated[str, Param("in GitHub's search syntax", max_length=250)],
    kind: Literal["issues", "repositories"] = "issues",
) -> str:
    """Searches public issues and pull requests, or repositories, of GitHub."""
    path = f"search/{kind}?{urlencode({'q': query, 'per_page': LISTED})}"
    found = _items(await _read_json(context, "", path))
    return _quote([_line(each) for each in found], f"search of {kind}")


@skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=TIMEOUT_S + 10, reads={Taint.WEB})
async def read_github(
    context: ToolContext,
    repository: Repository,
    what: Literal["repository", "issue", "pull", "file", "issues", "pulls", "commits", "releases"],
    which: Annotated[str, Param("number, or path of the file", max_length=300)] = "",
) -> str:
    """Reads an issue or pull request with comments, a file, or the newest of a list."""
    base = f"repos/{_check(repository)}"
    match what:
        case "repository":
            return _quote([_line(await _read_json(context, repository, base))], repository)
        case "file":
            return _quote([await _read_file(context, repository, which)], f"{repository}/{which}")
        case "issue" | "pull":
            if not _NUMBER.fullmatch(which):
                raise InvalidInput("An issue has a number.", code="github_number", fix="Give it as which.")
            issue = await _read_json(context, repository, f"{base}/issues/{which}")
            path = f"{base}/issues/{which}/comments?per_page=50"
            comments = _items(await _read_json(context, repository, path))
            said = [f"{_name(each)}: {truncate(_text(each, 'body'), MAX_BODY_CHARS)}" for each in comments]
            text = truncate(_text(issue, "body"), MAX_BODY_CHARS)
            return _quote([_line(issue), text, *said], f"{repository}#{which}")
        case _:
            rows = _items(await _read_json(context, repository, f"{base}/{what}?per_page={LISTED}"))
            return _quote([_line(each) for each in rows], f"{repository} {what}")


@skill.tool(
    tier=Tier.DANGEROUS,
    timeout_s=TIMEOUT_S + 10,
    effects={Effect.SEND},
    destinations=("repository",),
    destructive=True,  # GitHub mails it to people at once
)
async def create_issue(
    context: ToolContext,
    repository: Repository,
    title: Annotated[str, Param(max_length=250)],
    body: Annotated[str, Param(max_length=20_000)] = "",
) -> str:
    """Opens an issue on GitHub."""
    await begin_once(context, "Look for the issue before you open it again.")
    return await _write(context, repository, "issues", {"title": title, "body": body})


@skill.tool(
    tier=Tier.DANGEROUS,
    timeout_s=TIMEOUT_S + 10,
    effects={Effect.SEND},
    destinations=("repository",),
    destructive=True,  # GitHub mails it to people at once
)
async def comment_on_github(
    context: ToolContext, repository: Repository, number: Number, text: Annotated[str, Param(max_length=20_000)]
) -> str:
    """Comments on an issue or pull request."""
    await begin_once(context, "Read the issue before you comment again.")
    return await _write(context, repository, f"issues/{number}/comments", {"body": text})


@skill.tool(tier=Tier.SENSITIVE, timeout_s=TIMEOUT_S + 10, effects={Effect.SEND}, destinations=("repository",))
async def close_issue(
    context: ToolContext,
    repository: Repository,
    number: Number,
    reopen: bool = False,  # noqa: FBT001, FBT002 - a model
) -> str:
    """Closes or reopens an issue or pull request."""
    return await _write(context, repository, f"issues/{number}", {"state": "open" if reopen else "closed"}, "PATCH")


async def _read_json(context: ToolContext, repository: str, path: str) -> Json:
    text = await _send(context, repository, WebRequest(method="GET", url=path))
    return _parse(text)


async def _read_file(context: ToolContext, repository: str, path: str) -> str:
    parts = [part for part in path.split("/") if part]
    if not parts or any(part in (".", "..") for part in parts):
        raise InvalidInput(
            "This is no path of a file.", code="github_path", fix="Give it as which, like docs/index.md."
        )
    where = f"repos/{repository}/contents/{'/'.join(quote(part, safe='') for part in parts)}"
    raw = {"Accept": "application/vnd.github.raw+json"}
    return await _send(context, repository, WebRequest(method="GET", url=where, headers=raw))


async def _write(
    context: ToolContext, repository: str, path: str, body: Mapping[str, str], method: str = "POST"
) -> str:
    settings = context.settings(GitHubSettings)
    if not settings.token or not _is_listed(_check(repository), settings):
        raise NotAllowed(
            f"Nothing may be written to {repository}.",
            code="github_repository",
            fix="The owner lists it under tools.github.repositories, with a token.",
        )
    request = WebRequest(method=method, url=f"repos/{repository}/{path}", body=json.dumps(body))
    written = _parse(await _send(context, repository, request))
    return f"Done: {_text(written, 'html_url')}"


async def _send(context: ToolContext, repository: str, request: WebRequest) -> str:
    """Returns the text of the answer. Raises NotFound, NotAllowed or ToolError for any that is no success."""
    if context.send_request is None:
        raise ToolError("Requests cannot be sent here.")
    settings = context.settings(GitHubSettings)
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28", **request.headers}
    if settings.token and _is_listed(repository, settings):
        headers["Authorization"] = f"Bearer {settings.token}"
    sent = WebRequest(
        method=request.method, url=f"{settings.server.rstrip('/')}/{request.url}", headers=headers, body=request.body
    )
    answer = await context.send_request(sent, timeout_s=TIMEOUT_S)
    if answer.status in (_OK, _CREATED):
        return answer.text
    if answer.status in _MISSING:
        raise NotFound(
            "GitHub shows no such thing.",
            code="github_missing",
            why="it does not exist, or is private and not listed under tools.github.repositories",
        )
    if answer.status in _REFUSED:
        raise NotAllowed(
            f"GitHub refuses that ({answer.status}).",
            code="github_refused",
            why="the token may not do it, or there were too many requests",
            fix="Try later, or ask the owner to look at the token.",
        )
    raise ToolError(f"GitHub answered {answer.status}.", is_own=True)


def _is_listed(repository: str, settings: GitHubSettings) -> bool:
    return any(fnmatchcase(repository.lower(), pattern.lower()) for pattern in settings.repositories)


def _check(repository: str) -> str:
    if not _REPOSITORY.fullmatch(repository):
        raise InvalidInput("This is no repository.", code="github_name", fix="Write owner/name.")
    return repository


def _parse(text: str) -> Json:
    try:
        content: Json = json.loads(text)
    except ValueError as error:
        raise ToolError("The answer of GitHub could not be read; it may be too long.", is_own=True) from error
    return content


def _items(found: Json) -> Sequence[Json]:
    """Returns the entries of a list, or of a result of a search."""
    rows = found.get("items") if isinstance(found, Mapping) else found
    return rows if isinstance(rows, list) else []


def _text(row: Json, name: str) -> str:
    value = row.get(name) if isinstance(row, Mapping) else None
    return "" if value is None else str(value)


def _name(row: Json) -> str:
    return _text(row.get("user") if isinstance(row, Mapping) else None, "login")


def _line(row: Json) -> str:
    """Returns one line about an issue, a pull request, a repository, a commit or a release."""
    commit = row.get("commit") if isinstance(row, Mapping) else None
    number = _text(row, "number")
    parts = (
        f"#{number}" if number else "",
        _text(row, "full_name") or _text(row, "tag_name") or _text(row, "sha")[:10],
        _text(row, "state"),
        _text(row, "title") or _text(row, "name") or _text(row, "description"),
        _text(commit, "message").partition("\n")[0],
        f"by {_name(row)}" if _name(row) else "",
        _text(row, "html_url"),
    )
    return " ".join(filter(None, parts))


def _quote(lines: Sequence[str], source: str) -> str:
    text = "\n".join(filter(None, lines)) or "Nothing was found."
    return quote_untrusted(truncate(text, MAX_ANSWER_CHARS), source=f"GitHub {source}")
