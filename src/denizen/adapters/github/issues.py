"""The issues of repositories for mirrors of tasks. Implements `ports.issues.IssueTracker`.

What the account writes ends in its hidden mark with the id of the task or comment from which it was made. A mark in
what others wrote says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from denizen.adapters.github.api import GitHubApi, build_credentials
from denizen.adapters.github.client import (
    PAGE,
    GitHubClient,
    GitHubRequest,
    Payload,
    format_time,
    get_number,
    get_object,
    get_text,
    get_time,
    list_items,
)
from denizen.adapters.github.markdown import from_body, to_body
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.adapters.github.threads import read_author
from denizen.domain.clock import Clock
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import NotFound
from denizen.domain.issue_mirror import Issue, IssueComment, IssueDraft, IssueState
from denizen.ports.issues import IssuePage

_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
_NUMBER = re.compile(r"/issues/(?P<number>\d+)\Z")
_REASONS = {IssueState.COMPLETED: "completed", IssueState.NOT_PLANNED: "not_planned"}


class GitHubIssues:
    """The issues of one login. It needs no connection of its own; `aclose` ends what it has open."""

    def __init__(self, settings: GitHubAccountSettings, clock: Clock) -> None:
        self._client = GitHubClient(settings.api_url, clock)
        self._credentials = build_credentials(self._client, settings, clock)
        self._api = GitHubApi(self._client, self._credentials)
        self._user_id = ""

    async def aclose(self) -> None:
        await self._client.aclose()

    # --- issues ------------------------------------------------------------------------------------------------------

    async def list_issues(
        self, repository: str, *, since: datetime | None = None, page: str = "", known: str = ""
    ) -> IssuePage:
        await self._identify()
        if since is None:
            params = {"state": "open", "sort": "created", "direction": "asc"}
        else:
            params = {"state": "all", "sort": "updated", "direction": "asc", "since": format_time(since)}
        params |= {"per_page": str(PAGE)}
        call = GitHubRequest("GET", f"/repos/{repository}/issues", "read issues", params=params, version=known)
        answer = await self._api.send(GitHubRequest("GET", page, call.doing) if page else call, repository)
        if answer.status == 304:
            return IssuePage(issues=(), version=known, has_changed=False)
        rows = [row for row in list_items(answer.body) if not get_object(row, "pull_request")]
        return IssuePage(issues=[self._read(row) for row in rows], next_page=answer.next_url, version=answer.version)

    async def get_issue(self, repository: str, number: int) -> Issue:
        await self._identify()
        call = GitHubRequest("GET", f"/repos/{repository}/issues/{number}", "read an issue")
        row = (await self._api.send(call, repository)).body
        issue = self._read(row)
        # GitHub redirects to where an issue was transferred, as it does for a repository that was renamed.
        if issue.number != number or not await self._is_home(repository, get_text(row, "repository_url")):
            raise NotFound(f"Issue #{number} has left {repository}.", code="github_gone", why=f"it is {issue.url} now")
        return issue

    async def _is_home(self, repository: str, url: str) -> bool:
        """Returns whether an issue with this `repository_url` is in the repository, which may have another name now."""
        home = "/".join(url.rsplit("/", 2)[-2:]).lower()
        if home == repository.lower():
            return True
        call = GitHubRequest("GET", f"/repos/{repository}", "read the name of a repository")
        return get_text((await self._api.send(call, repository)).body, "full_name").lower() == home

    async def create_issue(self, repository: str, draft: IssueDraft, *, mark: str) -> Issue:
        await self._identify()
        fields: dict[str, Any] = {"title": draft.title, "body": self._write(draft.text or "", mark)}
        fields |= {"labels": list(draft.labels)} if draft.labels else {}
        fields |= await self._find_assignees(repository, (), draft.assignee or "")
        call = GitHubRequest("POST", f"/repos/{repository}/issues", "open an issue", json=fields)
        return self._read((await self._api.send(call, repository)).body)

    async def change_issue(self, repository: str, number: int, draft: IssueDraft, *, known: Issue) -> Issue:
        await self._identify()
        fields: dict[str, Any] = {"title": draft.title} if draft.title is not None else {}
        if draft.text is not None:
            fields["body"] = self._write(draft.text, known.mark)
        if draft.state is not None:
            is_open = draft.state is IssueState.OPEN
            fields["state"] = "open" if is_open else "closed"
            fields |= {} if is_open else {"state_reason": _REASONS[draft.state]}
        if draft.labels is not None:
            fields["labels"] = list(draft.labels)
        if draft.assignee is not None:
            fields |= await self._find_assignees(repository, known.assignees, draft.assignee)
        if not fields:
            return known
        call = GitHubRequest("PATCH", f"/repos/{repository}/issues/{number}", "change an issue", json=fields)
        return self._read((await self._api.send(call, repository)).body)

    async def _find_assignees(self, repository: str, former: Sequence[str], login: str) -> dict[str, Any]:
        """Returns the assignees with another first one; nothing where that is none of GitHub's, or may not be."""
        if not login:
            return {"assignees": list(former[1:])} if former else {}
        if not _LOGIN.fullmatch(login):
            return {}
        call = GitHubRequest("GET", f"/repos/{repository}/assignees/{quote(login, safe='')}", "look for an assignee")
        try:
            await self._api.send(call, repository)
        except NotFound:
            return {}
        return {"assignees": [login, *(each for each in former[1:] if each.lower() != login.lower())]}

    # --- comments ----------------------------------------------------------------------------------------------------

    async def list_comments(self, repository: str, *, since: datetime) -> Sequence[IssueComment]:
        params = {"sort": "updated", "direction": "asc", "since": format_time(since)}
        return await self._list_comments(f"/repos/{repository}/issues/comments", repository, params)

    async def list_comments_on(self, repository: str, number: int) -> Sequence[IssueComment]:
        return await self._list_comments(f"/repos/{repository}/issues/{number}/comments", repository, {})

    async def add_comment(self, repository: str, number: int, text: str, *, mark: str) -> IssueComment:
        await self._identify()
        path, body = f"/repos/{repository}/issues/{number}/comments", self._write(text, mark)
        answer = await self._api.send(GitHubRequest("POST", path, "comment", json={"body": body}), repository)
        return self._read_comment(answer.body)

    async def change_comment(self, repository: str, comment_id: str, text: str, *, mark: str) -> IssueComment:
        await self._identify()
        path, body = f"/repos/{repository}/issues/comments/{quote(comment_id, safe='')}", self._write(text, mark)
        answer = await self._api.send(GitHubRequest("PATCH", path, "edit a comment", json={"body": body}), repository)
        return self._read_comment(answer.body)

    async def _list_comments(self, path: str, repository: str, params: dict[str, str]) -> list[IssueComment]:
        await self._identify()
        rows = await self._api.list_all(GitHubRequest("GET", path, "read comments", params=params), repository)
        return [self._read_comment(row) for row in rows]

    # --- texts -------------------------------------------------------------------------------------------------------

    def render(self, text: str) -> str:
        return to_body(MessageContent(text), {})

    def _write(self, text: str, mark: str) -> str:
        return to_body(MessageContent(text), {}, nonce=mark)

    async def _identify(self) -> None:
        self._user_id = self._user_id or (await self._credentials.identify()).user_id

    def _read(self, row: Payload) -> Issue:
        author = read_author(get_object(row, "user"))
        text, mark = from_body(get_text(row, "body"))
        return Issue(
            number=get_number(row, "number"),
            url=get_text(row, "html_url"),
            title=get_text(row, "title"),
            text=text,
            state=_read_state(row),
            labels=tuple(name for each in list_items(row, "labels") if (name := get_text(each, "name"))),
            assignees=tuple(login for each in list_items(row, "assignees") if (login := get_text(each, "login"))),
            author=author,
            created_at=get_time(row, "created_at"),
            updated_at=get_time(row, "updated_at"),
            comments=get_number(row, "comments"),
            mark=mark if author.id == self._user_id else "",
        )

    def _read_comment(self, row: Payload) -> IssueComment:
        author = read_author(get_object(row, "user"))
        text, mark = from_body(get_text(row, "body"))
        number = _NUMBER.search(get_text(row, "issue_url"))
        return IssueComment(
            id=str(get_number(row, "id")),
            number=int(number["number"]) if number else 0,
            text=text,
            author=author,
            created_at=get_time(row, "created_at"),
            updated_at=get_time(row, "updated_at"),
            mark=mark if author.id == self._user_id else "",
        )


def _read_state(row: Payload) -> IssueState:
    if get_text(row, "state") != "closed":
        return IssueState.OPEN
    return IssueState.COMPLETED if get_text(row, "state_reason") in ("", "completed") else IssueState.NOT_PLANNED
