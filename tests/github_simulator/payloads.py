"""The JSON that GitHub speaks, in REST and in webhooks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.github_simulator.state import Comment, Discussion, Issue, Reaction, Repository, Review, ReviewComment, User

Json = dict[str, Any]


def moment(time: datetime) -> str:
    """To the second, as GitHub has it."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def user(of: User) -> Json:
    return {"id": of.id, "login": of.login, "type": "Bot" if of.is_bot else "User", "node_id": f"U_{of.id}"}


def repository(of: Repository, base: str) -> Json:
    updated = [each.updated_at for each in (*of.issues.values(), *of.discussions.values())]
    return {
        "id": of.id,
        "name": of.name,
        "full_name": of.full_name,
        "private": of.private,
        "description": of.description or None,
        "default_branch": of.default_branch,
        "clone_url": f"{base}/{of.full_name}.git",
        "url": f"{base}/repos/{of.full_name}",
        "pushed_at": moment(max(updated)) if updated else None,
        "updated_at": moment(max(updated)) if updated else None,
    }


def issue(of: Issue, at: Repository, base: str) -> Json:
    url = f"{base}/repos/{at.full_name}"
    told: Json = {
        "id": of.id,
        "number": of.number,
        "title": of.title,
        "body": of.body or None,
        "user": user(of.user),
        "labels": [{"name": name} for name in of.labels],
        "comments": len(of.comments),
        "locked": of.locked,
        "state": "closed" if of.closed else "open",
        "state_reason": of.closed or None,
        "assignees": [user(each) for each in of.assignees],
        "html_url": f"https://github.com/{at.full_name}/issues/{of.number}",
        "author_association": at.association(of.user),
        "created_at": moment(of.created_at),
        "updated_at": moment(of.updated_at),
        "url": f"{url}/issues/{of.number}",
        "repository_url": url,
    }
    return told | ({"pull_request": {"url": f"{url}/pulls/{of.number}"}} if of.is_pull else {})


def pull(of: Issue, at: Repository, base: str) -> Json:
    """A pull request as such: with another id, and no trace of the issue."""
    told = issue(of, at, base) | {"id": of.pull_id}
    told.pop("pull_request", None)
    return told


def comment(of: Comment, on: Issue, at: Repository, base: str) -> Json:
    return _words(of, at) | {"issue_url": f"{base}/repos/{at.full_name}/issues/{on.number}"}


def review_comment(of: ReviewComment, on: Issue, at: Repository, base: str) -> Json:
    told = _words(of, at) | {
        "path": of.path,
        "diff_hunk": of.diff_hunk,
        "pull_request_url": f"{base}/repos/{at.full_name}/pulls/{on.number}",
    }
    return told | ({"in_reply_to_id": of.root.id} if of.root else {})


def review(of: Review, at: Repository) -> Json:
    told = _words(of, at) | {"submitted_at": moment(of.created_at), "state": "COMMENTED"}
    for name in ("created_at", "updated_at"):
        del told[name]
    return told


def discussion(of: Discussion, at: Repository) -> Json:
    return _words(of, at) | {
        "number": of.number,
        "title": of.title,
        "labels": [{"name": name} for name in of.labels],
        "node_id": f"D_{of.id}",
    }


def discussion_comment(of: Comment, at: Repository) -> Json:
    return _words(of, at) | {"parent_id": of.parent.id if of.parent else None, "node_id": f"DC_{of.id}"}


def reaction(of: Reaction) -> Json:
    return {"id": of.id, "user": user(of.user), "content": of.content}


def _words(of: Comment | ReviewComment | Review | Discussion, at: Repository) -> Json:
    return {
        "id": of.id,
        "body": of.body,
        "user": user(of.user),
        "author_association": at.association(of.user),
        "created_at": moment(of.created_at),
        "updated_at": moment(of.updated_at),
    }
