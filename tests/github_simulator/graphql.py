"""The GraphQL that discussions need: reading one, and the mutations on its comments. Fields that were not asked for
come along; what else is asked is refused as GitHub refuses unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.github_simulator.access import ExternalCaller
from tests.github_simulator.payloads import Json, moment
from tests.github_simulator.state import Comment, Discussion, Repository, User
from tests.github_simulator.world import GitHubWorld

_CONTENTS = {
    "THUMBS_UP": "+1",
    "THUMBS_DOWN": "-1",
    "LAUGH": "laugh",
    "CONFUSED": "confused",
    "HEART": "heart",
    "HOORAY": "hooray",
    "ROCKET": "rocket",
    "EYES": "eyes",
}


def run_graphql(world: GitHubWorld, caller: ExternalCaller, text: str, variables: Mapping[str, Any]) -> Json:
    """GitHub's whole answer: data, or errors."""
    if " discussion(number:" in text:
        return _read(world, caller, variables)
    for name, act in (
        ("addDiscussionComment(", _add),
        ("updateDiscussionComment(", _edit),
        ("deleteDiscussionComment(", _delete),
        ("addReaction(", _react),
        ("removeReaction(", _unreact),
    ):
        if name in text:
            return act(world, caller, variables)
    return _error("undefinedField", "This field does not exist here.")


def _read(world: GitHubWorld, caller: ExternalCaller, variables: Mapping[str, Any]) -> Json:
    for repository in world.repositories:
        if (repository.owner, repository.name) == (variables["owner"], variables["name"]) and caller.sees(repository):
            found = repository.discussions.get(int(variables["number"]))
            if found is None:
                return _error("NOT_FOUND", "Could not resolve to a Discussion with the number.")
            return {"data": {"repository": {"discussion": _discussion(found, repository)}}}
    return _error("NOT_FOUND", "Could not resolve to a Repository with that name.")


def _add(world: GitHubWorld, caller: ExternalCaller, variables: Mapping[str, Any]) -> Json:
    discussion = _find_discussion(world, caller, str(variables["discussion"]))
    if discussion is None:
        return _error("NOT_FOUND", "Could not resolve to a node.")
    if _lacks_permission(caller):
        return _error("FORBIDDEN", "Resource not accessible by integration")
    parent = next((each for each in discussion.comments if f"DC_{each.id}" == variables.get("replyTo")), None)
    made = world.comment(caller.writes_as, discussion, str(variables["body"]), parent=parent)
    told = {"id": f"DC_{made.id}", "databaseId": made.id, "createdAt": moment(made.created_at)}
    return {"data": {"addDiscussionComment": {"comment": told}}}


def _edit(world: GitHubWorld, caller: ExternalCaller, variables: Mapping[str, Any]) -> Json:
    discussion, comment = _find_comment(world, caller, str(variables["id"]))
    if discussion is None or comment is None:
        return _error("NOT_FOUND", "Could not resolve to a node.")
    world.edit(caller.writes_as, discussion, comment, str(variables["body"]))
    return {"data": {"updateDiscussionComment": {"comment": {"id": variables["id"]}}}}


def _delete(world: GitHubWorld, caller: ExternalCaller, variables: Mapping[str, Any]) -> Json:
    discussion, comment = _find_comment(world, caller, str(variables["id"]))
    if discussion is None or comment is None:
        return _error("NOT_FOUND", "Could not resolve to a node.")
    world.remove(caller.writes_as, discussion, comment)
    return {"data": {"deleteDiscussionComment": {"clientMutationId": None}}}


def _react(world: GitHubWorld, caller: ExternalCaller, variables: Mapping[str, Any]) -> Json:
    target = _find_target(world, caller, str(variables["id"]))
    if target is None:
        return _error("NOT_FOUND", "Could not resolve to a node.")
    world.react(caller.writes_as, target, _CONTENTS[str(variables["content"])])
    return {"data": {"addReaction": {"clientMutationId": None}}}


def _unreact(world: GitHubWorld, caller: ExternalCaller, variables: Mapping[str, Any]) -> Json:
    target = _find_target(world, caller, str(variables["id"]))
    if target is None:
        return _error("NOT_FOUND", "Could not resolve to a node.")
    content = _CONTENTS[str(variables["content"])]
    target.reactions[:] = [r for r in target.reactions if (r.user, r.content) != (caller.writes_as, content)]
    return {"data": {"removeReaction": {"clientMutationId": None}}}


def _lacks_permission(caller: ExternalCaller) -> bool:
    return caller.installation is not None and caller.installation.app.permissions.get("discussions") != "write"


def _find_target(world: GitHubWorld, caller: ExternalCaller, node: str) -> Discussion | Comment | None:
    return _find_discussion(world, caller, node) or _find_comment(world, caller, node)[1]


def _find_discussion(world: GitHubWorld, caller: ExternalCaller, node: str) -> Discussion | None:
    for repository in world.repositories:
        for each in repository.discussions.values() if caller.sees(repository) else ():
            if f"D_{each.id}" == node:
                return each
    return None


def _find_comment(world: GitHubWorld, caller: ExternalCaller, node: str) -> tuple[Discussion | None, Comment | None]:
    for repository in world.repositories:
        for discussion in repository.discussions.values() if caller.sees(repository) else ():
            for each in discussion.comments:
                if f"DC_{each.id}" == node:
                    return discussion, each
    return None, None


def _discussion(of: Discussion, at: Repository) -> Json:
    roots = [each for each in of.comments if each.parent is None][-50:]
    return _words(of, at, f"D_{of.id}") | {
        "number": of.number,
        "title": of.title,
        "labels": {"nodes": [{"name": name} for name in of.labels]},
        "comments": {"nodes": [_comment(each, of, at) for each in roots]},
    }


def _comment(of: Comment, on: Discussion, at: Repository) -> Json:
    replies = [each for each in on.comments if each.parent is of][-50:]
    nodes = [_words(each, at, f"DC_{each.id}") for each in replies]
    return _words(of, at, f"DC_{of.id}") | {"replies": {"nodes": nodes}}


def _words(of: Discussion | Comment, at: Repository, node: str) -> Json:
    return {
        "id": node,
        "databaseId": of.id,
        "body": of.body,
        "createdAt": moment(of.created_at),
        "updatedAt": moment(of.updated_at),
        "authorAssociation": at.association(of.user),
        "author": _actor(of.user),
    }


def _actor(of: User) -> Json:
    kind = "Bot" if of.is_bot else "User"
    return {"__typename": kind, "login": of.login.removesuffix("[bot]"), "databaseId": of.id}


def _error(kind: str, message: str) -> Json:
    return {"data": None, "errors": [{"type": kind, "message": message}]}
