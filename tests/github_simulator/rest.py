"""The REST routes of the simulated GitHub. `api` calls `answer` with the caller and the request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from urllib.parse import unquote

from tests.github_simulator import payloads
from tests.github_simulator.access import ExternalCaller, RefusedError
from tests.github_simulator.graphql import run_graphql
from tests.github_simulator.payloads import Json
from tests.github_simulator.state import App, Comment, Issue, Repository, ReviewComment, User
from tests.github_simulator.world import GitHubWorld

BODY_CHARS = 65_536
_NUMBER = r"(?P<number>\d+)"


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request. `path` is decoded; `base` the address of this server."""

    world: GitHubWorld
    caller: ExternalCaller
    base: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None

    @property
    def fields(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.body) if isinstance(self.body, dict) else {}

    def text(self, name: str) -> str:
        """A field that has to be there and say something."""
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            raise RefusedError(422, "Validation Failed", [{"code": "missing_field", "field": name}])
        if len(value) > BODY_CHARS:
            message = f"{name} is too long (maximum is {BODY_CHARS} characters)"
            raise RefusedError(422, "Validation Failed", [{"code": "custom", "message": message}])
        return value


@dataclass(frozen=True, slots=True)
class RestResponse:
    """`body` is sent as JSON; a list is cut into pages, which stand below `key` where there is one."""

    body: Json | list[Json] | None
    status: int = 200
    key: str = ""
    location: str = ""


Act = Callable[[RestRequest, re.Match[str]], RestResponse]
_ROUTES: list[tuple[str, re.Pattern[str], Act]] = []


def handle_request(ask: RestRequest) -> RestResponse:
    """Raises RefusedError."""
    for method, pattern, act in _ROUTES:
        found = pattern.fullmatch(ask.path)
        if found is not None and method == ask.method:
            return act(ask, found)
    raise RefusedError(404, "Not Found")


def _route(method: str, path: str) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        _ROUTES.append((method, re.compile(path), act))
        return act

    return add


def _in_repository(
    method: str, path: str
) -> Callable[[Callable[[RestRequest, Repository, re.Match[str]], RestResponse]], Act]:
    """Below `/repos/{owner}/{name}`, or `/repositories/{id}`, to which the former name redirects."""

    def add(act: Callable[[RestRequest, Repository, re.Match[str]], RestResponse]) -> Act:
        def find(ask: RestRequest, found: re.Match[str]) -> RestResponse:
            repository, is_former = _find_repository(ask, found)
            if is_former:
                rest = ask.path.removeprefix(f"/repos/{found['owner']}/{found['name']}")
                return RestResponse(
                    {"message": "Moved Permanently"}, 301, location=f"{ask.base}/repositories/{repository.id}{rest}"
                )
            if moved := repository.transferred.get(int(found.groupdict().get("number") or 0)):
                target, number = moved
                rest = ask.path.partition(f"/issues/{found['number']}")[2]
                location = f"{ask.base}/repositories/{target.id}/issues/{number}{rest}"
                return RestResponse({"message": "Moved Permanently"}, 301, location=location)
            return act(ask, repository, found)

        prefix = r"/(?:repos/(?P<owner>[^/]+)/(?P<name>[^/]+)|repositories/(?P<id>\d+))"
        return _route(method, prefix + path)(find)

    return add


def _find_repository(ask: RestRequest, found: re.Match[str]) -> tuple[Repository, bool]:
    wanted = f"{found['owner']}/{found['name']}".lower()
    for each in ask.world.repositories:
        is_former = wanted in {name.lower() for name in each.former}
        is_meant = str(each.id) == found["id"] or each.full_name.lower() == wanted or is_former
        if is_meant and (ask.caller.app is not None or ask.caller.sees(each)):
            return each, is_former
    raise RefusedError(404, "Not Found")


def _find_issue(repository: Repository, found: re.Match[str]) -> Issue:
    issue = repository.issues.get(int(found["number"]))
    if issue is None:
        raise RefusedError(404, "Not Found")
    return issue


# --- who -------------------------------------------------------------------------------------------------------------


@_route("GET", "/app")
def _app(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    app = _own_app(ask)
    told = {"id": app.id, "slug": app.slug, "name": app.slug.title(), "permissions": app.permissions}
    return RestResponse(told | {"events": list(app.events)})


@_route("GET", "/app/hook/config")
def _hook(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    hook = _own_app(ask).hook
    told = {"url": hook.url, "content_type": hook.content_type, "insecure_ssl": "0"}
    return RestResponse(told | ({"secret": "********"} if hook.secret else {}))


@_route("GET", "/app/installations")
def _installations(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    return RestResponse([{"id": each.id, "suspended_at": None} for each in _own_app(ask).installations])


@_route("POST", rf"/app/installations/{_NUMBER}/access_tokens")
def _token(ask: RestRequest, found: re.Match[str]) -> RestResponse:
    for each in _own_app(ask).installations:
        if each.id == int(found["number"]):
            token = ask.world.give_token(each)
            return RestResponse({"token": token.text, "expires_at": payloads.moment(token.expires_at)}, 201)
    raise RefusedError(404, "Not Found")


@_in_repository("GET", "/installation")
def _installation(ask: RestRequest, repository: Repository, _: re.Match[str]) -> RestResponse:
    for each in _own_app(ask).installations:
        if repository in each.repositories:
            return RestResponse({"id": each.id})
    raise RefusedError(404, "Not Found")


@_route("GET", "/user")
def _me(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    if ask.caller.installation is not None:
        raise RefusedError(403, "Resource not accessible by integration")
    return RestResponse(payloads.user(ask.caller.writes_as))


@_route("GET", rf"/user/{_NUMBER}")
def _user_by_id(ask: RestRequest, found: re.Match[str]) -> RestResponse:
    user = ask.world.users.get(int(found["number"]))
    if user is None:
        raise RefusedError(404, "Not Found")
    return RestResponse(payloads.user(user))


@_route("GET", r"/users/(?P<login>[^/]+)")
def _user(ask: RestRequest, found: re.Match[str]) -> RestResponse:
    for user in ask.world.users.values():
        if user.login.lower() == unquote(found["login"]).lower():
            return RestResponse(payloads.user(user))
    raise RefusedError(404, "Not Found")


# --- repositories ----------------------------------------------------------------------------------------------------


@_route("GET", "/user/repos")
def _own_repositories(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    mine = [each for each in ask.world.repositories if each.association(ask.caller.writes_as) != "NONE"]
    return RestResponse([payloads.repository(each, ask.base) for each in mine])


@_route("GET", "/installation/repositories")
def _installed(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    if ask.caller.installation is None:
        raise RefusedError(403, "You must authenticate with an installation access token")
    rows = [payloads.repository(each, ask.base) for each in ask.caller.installation.repositories]
    return RestResponse(rows, key="repositories")


@_in_repository("GET", "")
def _repository(ask: RestRequest, repository: Repository, _: re.Match[str]) -> RestResponse:
    return RestResponse(payloads.repository(repository, ask.base))


@_in_repository("GET", r"/collaborators/(?P<login>[^/]+)/permission")
def _permission(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    user = next((each for each in ask.world.users.values() if each.login == found["login"]), None)
    if user is None:
        raise RefusedError(404, "Not Found")
    permission = {"OWNER": "admin", "MEMBER": "write", "COLLABORATOR": "write"}.get(repository.association(user))
    return RestResponse({"permission": permission or ("none" if repository.private else "read")})


# --- issues and pull requests ----------------------------------------------------------------------------------------


@_in_repository("GET", "/issues")
def _issues(ask: RestRequest, repository: Repository, _: re.Match[str]) -> RestResponse:
    wanted = ask.query.get("state", "open")
    rows = [each for each in repository.issues.values() if wanted in ("all", "closed" if each.closed else "open")]
    found = _since(ask, rows)
    return RestResponse([payloads.issue(each, repository, ask.base) for each in found])


@_in_repository("GET", f"/issues/{_NUMBER}")
def _issue(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    return RestResponse(payloads.issue(_find_issue(repository, found), repository, ask.base))


@_in_repository("POST", "/issues")
def _add_issue(ask: RestRequest, repository: Repository, _: re.Match[str]) -> RestResponse:
    ask.caller.check_may("issues")
    body, labels = str(ask.fields.get("body") or ""), tuple(ask.fields.get("labels") or ())
    issue = ask.world.open_issue(ask.caller.writes_as, repository, ask.text("title"), body, labels=labels)
    issue.assignees = _assignees(ask, repository)
    return RestResponse(payloads.issue(issue, repository, ask.base), 201)


@_in_repository("PATCH", f"/issues/{_NUMBER}")
def _change_issue(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    ask.caller.check_may("issues")
    issue, fields = _find_issue(repository, found), dict[str, Any]()
    action = "edited"
    if "title" in ask.fields:
        fields["title"] = ask.text("title")
    if "body" in ask.fields:
        fields["body"] = str(ask.fields["body"] or "")
    if "labels" in ask.fields:
        fields["labels"], action = tuple(ask.fields["labels"]), "labeled"
    if "assignees" in ask.fields:
        fields["assignees"], action = _assignees(ask, repository), "assigned"
    if "state" in ask.fields:
        is_closed = ask.fields["state"] == "closed"
        fields["closed"] = str(ask.fields.get("state_reason") or "completed") if is_closed else ""
        action = "closed" if is_closed else "reopened"
    ask.world.change_issue(ask.caller.writes_as, issue, action, **fields)
    return RestResponse(payloads.issue(issue, repository, ask.base))


@_in_repository("GET", r"/assignees/(?P<login>[^/]+)")
def _assignee(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    if not _find_assignable(ask, repository, found["login"]):
        raise RefusedError(404, "Not Found")
    return RestResponse(None, 204)


@_in_repository("GET", f"/issues/{_NUMBER}/comments")
def _comments(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    issue = _find_issue(repository, found)
    rows = [each for each in issue.comments if each.updated_at >= _moment(ask)]
    return RestResponse([payloads.comment(each, issue, repository, ask.base) for each in rows])


@_in_repository("POST", f"/issues/{_NUMBER}/comments")
def _add_comment(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    issue = _find_issue(repository, found)
    _check_writing(ask, repository, issue)
    comment = ask.world.comment(ask.caller.writes_as, issue, ask.text("body"))
    return RestResponse(payloads.comment(comment, issue, repository, ask.base), 201)


@_in_repository("GET", "/issues/comments")
def _all_comments(ask: RestRequest, repository: Repository, _: re.Match[str]) -> RestResponse:
    pairs = {each.id: (each, issue) for issue in repository.issues.values() for each in issue.comments}
    found = _since(ask, [each for each, _ in pairs.values()])
    return RestResponse([payloads.comment(each, pairs[each.id][1], repository, ask.base) for each in found])


@_in_repository("GET", "/pulls/comments")
def _all_review_comments(ask: RestRequest, repository: Repository, _: re.Match[str]) -> RestResponse:
    pairs = {each.id: (each, pull) for pull in repository.issues.values() for each in pull.review_comments}
    found = _since(ask, [each for each, _ in pairs.values()])
    return RestResponse([payloads.review_comment(each, pairs[each.id][1], repository, ask.base) for each in found])


@_in_repository("GET", f"/pulls/{_NUMBER}/comments")
def _review_comments(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    pull = _find_issue(repository, found)
    rows = [each for each in pull.review_comments if each.updated_at >= _moment(ask)]
    return RestResponse([payloads.review_comment(each, pull, repository, ask.base) for each in rows])


@_in_repository("POST", rf"/pulls/{_NUMBER}/comments/(?P<comment>\d+)/replies")
def _reply(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    pull = _find_issue(repository, found)
    _check_writing(ask, repository, pull)
    for each in pull.review_comments:
        if each.id == int(found["comment"]):
            made = ask.world.comment_code(ask.caller.writes_as, pull, ask.text("body"), answers=each)
            return RestResponse(payloads.review_comment(made, pull, repository, ask.base), 201)
    raise RefusedError(404, "Not Found")


@_in_repository("GET", f"/pulls/{_NUMBER}/reviews")
def _reviews(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    rows = [each for each in _find_issue(repository, found).reviews if each.updated_at >= _moment(ask)]
    return RestResponse([payloads.review(each, repository) for each in rows])


@_in_repository("PATCH", r"/(?P<kind>issues|pulls)/comments/(?P<comment>\d+)")
def _edit(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    issue, comment = _find_comment(repository, found)
    _check_writing(ask, repository, issue)
    ask.world.edit(ask.caller.writes_as, issue, comment, ask.text("body"))
    return RestResponse(_comment_json(ask, repository, issue, comment))


@_in_repository("DELETE", r"/(?P<kind>issues|pulls)/comments/(?P<comment>\d+)")
def _delete(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    issue, comment = _find_comment(repository, found)
    _check_writing(ask, repository, issue)
    ask.world.remove(ask.caller.writes_as, issue, comment)
    return RestResponse(None, 204)


# --- reactions -------------------------------------------------------------------------------------------------------

_ON = rf"/(?P<kind>issues|pulls)/(?:comments/(?P<comment>\d+)|{_NUMBER})/reactions"


@_in_repository("GET", _ON)
def _reactions(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    rows = _find_words(repository, found).reactions
    wanted = ask.query.get("content", "")
    return RestResponse([payloads.reaction(each) for each in rows if wanted in ("", each.content)])


@_in_repository("POST", _ON)
def _react(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    ask.caller.check_may("issues" if found["kind"] == "issues" else "pull_requests")
    made, is_new = ask.world.react(ask.caller.writes_as, _find_words(repository, found), ask.text("content"))
    return RestResponse(payloads.reaction(made), 201 if is_new else 200)


@_in_repository("DELETE", rf"{_ON}/(?P<reaction>\d+)")
def _unreact(ask: RestRequest, repository: Repository, found: re.Match[str]) -> RestResponse:
    me, rows = ask.caller.writes_as, _find_words(repository, found).reactions
    rows[:] = [each for each in rows if each.id != int(found["reaction"]) or each.user is not me]
    return RestResponse(None, 204)


@_route("POST", "/graphql")
def _graphql(ask: RestRequest, _: re.Match[str]) -> RestResponse:
    return RestResponse(run_graphql(ask.world, ask.caller, ask.text("query"), ask.fields.get("variables") or {}))


# --- parts -----------------------------------------------------------------------------------------------------------


def _own_app(ask: RestRequest) -> App:
    if ask.caller.app is None:
        raise RefusedError(401, "A JSON web token could not be decoded")
    return ask.caller.app


def _check_writing(ask: RestRequest, repository: Repository, issue: Issue) -> None:
    ask.caller.check_may("pull_requests" if issue.is_pull else "issues")
    is_member = repository.association(ask.caller.writes_as) in ("OWNER", "MEMBER", "COLLABORATOR")
    if issue.locked and not is_member:
        raise RefusedError(403, "Unable to create comment because issue is locked.")


def _assignees(ask: RestRequest, repository: Repository) -> tuple[User, ...]:
    """Those who cannot be assigned are left out without a word, as GitHub does."""
    wanted = [_find_assignable(ask, repository, str(login)) for login in ask.fields.get("assignees") or ()]
    return tuple(user for user in wanted if user is not None)


def _find_assignable(ask: RestRequest, repository: Repository, login: str) -> User | None:
    for user in ask.world.users.values():
        if user.login.lower() == login.lower() and repository.association(user) in ("OWNER", "MEMBER", "COLLABORATOR"):
            return user
    return None


def _find_comment(repository: Repository, found: re.Match[str]) -> tuple[Issue, Comment | ReviewComment]:
    for issue in repository.issues.values():
        for each in issue.comments if found["kind"] == "issues" else issue.review_comments:
            if each.id == int(found["comment"]):
                return issue, each
    raise RefusedError(404, "Not Found")


def _find_words(repository: Repository, found: re.Match[str]) -> Issue | Comment | ReviewComment:
    return _find_comment(repository, found)[1] if found["comment"] else _find_issue(repository, found)


def _comment_json(ask: RestRequest, at: Repository, issue: Issue, comment: Comment | ReviewComment) -> Json:
    if isinstance(comment, ReviewComment):
        return payloads.review_comment(comment, issue, at, ask.base)
    return payloads.comment(comment, issue, at, ask.base)


def _moment(ask: RestRequest) -> datetime:
    return datetime.fromisoformat(ask.query.get("since") or "1970-01-01T00:00:00Z")


def _since(ask: RestRequest, rows: Sequence[Any]) -> list[Any]:
    """Lists of a repository: what changed since, in the order that was asked for (by default the newest first)."""
    key = "updated_at" if ask.query.get("sort") == "updated" else "created_at"
    found = [each for each in rows if each.updated_at.replace(microsecond=0) >= _moment(ask)]
    return sorted(found, key=lambda each: getattr(each, key), reverse=ask.query.get("direction", "desc") == "desc")
