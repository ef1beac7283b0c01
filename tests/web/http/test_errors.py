"""One table from families of errors to HTTP, and the boundary that every request passes."""

import json
import logging

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from denizen.domain import errors
from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    LimitExceeded,
    NeedsApproval,
    NeedsAttention,
    NotAllowed,
    Unavailable,
    read_explanation,
)
from denizen.domain.turn import TurnFailure, TurnStatus
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.web.api.records import restore_error
from denizen.web.http.errors import ErrorBoundary, answer_error, openai_error
from denizen.web.http.problems import STATUS, describe_problem, read_problem
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.records import from_json
from tests.web_fixture import open_web

FAMILIES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, DenizenError) and kind is not DenizenError
]

pytestmark = pytest.mark.anyio


def test_the_table_names_every_family_and_nothing_else() -> None:
    assert set(STATUS) == set(FAMILIES)
    assert len(FAMILIES) >= 8


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_status_and_keeps_what_it_says(family: type[DenizenError]) -> None:
    class Kind(family):
        code = "kind"

    problem = describe_problem(Kind("It broke.", why="because", fix="Mend it."))
    assert problem == ProblemDetails("kind", "It broke.", STATUS[family], "because", "Mend it.")
    assert answer_error("/api/x", Kind("It broke.")).status_code == STATUS[family]


@pytest.mark.parametrize("family", [*FAMILIES, DenizenError])
def test_a_client_reads_the_error_that_was_described(family: type[DenizenError]) -> None:
    error = read_problem(describe_problem(family("It broke.", why="because", fix="Mend it.")))
    assert type(error) is (NotAllowed if family is NeedsApproval else family)
    assert (error.code, error.explain()) == (family.code, "It broke.\nwhy: because\nfix: Mend it.")


@pytest.mark.parametrize("code", ["credentials_missing", "credentials_wrong"])
def test_bad_credentials_are_401_and_name_the_scheme(code: str) -> None:
    response = answer_error("/api/x", NotAllowed("Who are you?", code=code))
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("after_s", "header"), [(None, "5"), (1.2, "2"), (30.0, "30")])
def test_unavailable_says_when_to_try_again(after_s: float | None, header: str) -> None:
    response = answer_error("/v1/x", Unavailable("Later.", retry_after_s=after_s))
    assert response.headers["retry-after"] == header
    assert "x-should-retry" not in response.headers


@pytest.mark.parametrize("error", [Conflict("No."), NeedsAttention("No."), NotAllowed("No.")])
def test_clients_are_told_not_to_repeat_what_cannot_help(error: DenizenError) -> None:
    assert answer_error("/v1/x", error).headers["x-should-retry"] == "false"


@pytest.mark.proves("S-http-errors")
def test_errors_of_the_api_carry_status_message_why_and_fix() -> None:
    response = answer_error("/api/x", LimitExceeded("Full.", why="it is full", fix="Wait."))
    assert json.loads(bytes(response.body)) == {
        "error": {
            "code": "exhausted",
            "message": "Full.",
            "status": 429,
            "why": "it is full",
            "fix": "Wait.",
            "reference": "",
        }
    }


@pytest.mark.proves("S-http-errors")
@pytest.mark.parametrize("family", [*FAMILIES, DenizenError])
def test_an_error_that_names_no_reason_and_no_remedy_has_those_of_its_family(family: type[DenizenError]) -> None:
    error = json.loads(bytes(answer_error("/api/x", family("It broke.")).body))["error"]
    assert error["message"] == "It broke."
    assert error["why"] and error["fix"]
    assert read_problem(from_json(ProblemDetails, error)).explain() == "It broke.", "the terminal adds no phrases"


@pytest.mark.proves("S-http-errors")
def test_errors_under_v1_have_the_form_of_openai_with_reason_and_remedy_in_the_text() -> None:
    response = answer_error("/v1/chat/completions", LimitExceeded("Full.", why="it is full", fix="Wait."))
    assert json.loads(bytes(response.body)) == {
        "error": {
            "message": "Full. Why: it is full. Wait.",
            "type": "rate_limit_error",
            "param": None,
            "code": "exhausted",
        }
    }
    bare = json.loads(bytes(answer_error("/v1/chat/completions", LimitExceeded("Full.")).body))
    assert bare["error"]["message"] == "Full."


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (413, "invalid_request_error"),
        (503, "server_error"),
    ],
)
def test_openai_types_follow_the_status(status: int, kind: str) -> None:
    assert openai_error(ProblemDetails("x", "y", status))["error"]["type"] == kind


@pytest.mark.parametrize("family", FAMILIES)
def test_a_turns_failure_is_the_same_error_again(family: type[DenizenError]) -> None:
    failure = TurnFailure("It broke.", "some_code", family.__name__, "Mend it.")
    error = restore_error(TurnStatus.FAILED, failure)
    assert (type(error), error.code, error.message, error.fix) == (family, "some_code", "It broke.", "Mend it.")


@pytest.mark.parametrize(
    ("end", "failure", "status"),
    [
        (TurnStatus.FAILED, TurnFailure("Reference: err_1.", "bug"), 500),
        (TurnStatus.REFUSED, None, 403),
        (TurnStatus.REFUSED, TurnFailure("That is enough.", family="LimitExceeded"), 429),
        (TurnStatus.CANCELLED, None, 409),
    ],
)
def test_ends_without_a_family_have_a_status_too(end: TurnStatus, failure: TurnFailure | None, status: int) -> None:
    assert describe_problem(restore_error(end, failure)).status == status


@pytest.mark.proves("S-http-errors")
async def test_a_fault_is_answered_with_a_reference_that_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("the secret is 1234")

    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    with caplog.at_level(logging.ERROR, logger="denizen.web"):
        await ErrorBoundary(broken)({"type": "http", "path": "/api/x", "method": "GET", "headers": []}, receive, send)
    body = json.loads(bytes(sent[1]["body"]))["error"]  # pyright: ignore[reportArgumentType]
    assert sent[0]["status"] == body["status"] == 500
    assert body["message"] and body["why"] and body["fix"]
    assert "1234" not in json.dumps(body)
    assert body["reference"].startswith("err_")
    assert [getattr(record, "reference", "") for record in caplog.records] == [body["reference"]]


@pytest.mark.proves("S-http-errors")
async def test_a_fault_inside_a_turn_shows_a_reference_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object) -> ScriptedReply:
        raise RuntimeError("the secret is 1234")

    async with open_web(ScriptedModel(broken)) as web, web.client() as client:
        body = {"messages": [{"role": "user", "content": "hi"}]}
        response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 500
    assert response.json()["error"]["type"] == "server_error"
    assert "turn_" in response.text, "the log knows it by the turn"
    assert "1234" not in response.text


@pytest.mark.proves("S-http-errors")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/nothing", 404, "route_unknown"),
        ("GET", "/v1/nothing", 404, "route_unknown"),
        ("DELETE", "/api/chat", 405, "method_not_allowed"),
        ("GET", "/api/sessions/x/messages?limit=0", 400, "field_invalid"),
    ],
)
async def test_what_the_framework_refuses_has_the_same_form(method: str, path: str, status: int, code: str) -> None:
    async with open_web() as web, web.client() as client:
        response = await client.request(method, path)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    told = ("message", "type") if path.startswith("/v1/") else ("status", "message", "why", "fix")
    assert all(error[each] for each in told)


async def test_a_body_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.web.http.request.MAX_BODY_BYTES", 100)
    async with open_web() as web, web.client() as client:
        response = await client.post("/api/chat", json={"message": "x" * 200})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"


def test_a_request_without_a_matching_handler_is_not_hidden() -> None:
    from denizen.web.http.errors import answer_http_exception

    request = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
    with pytest.raises(TypeError):
        answer_http_exception(request, ValueError("x"))


async def test_a_client_that_leaves_before_its_body_is_complete_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        pytest.fail("somebody who left was answered")

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()

    await ErrorBoundary(read)({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send)
    assert caplog.records == []


@pytest.mark.parametrize("why", ["", "because"])
@pytest.mark.parametrize("fix", ["", "Mend it.\nThen try again."])
def test_an_explained_error_can_be_taken_apart_again(why: str, fix: str) -> None:
    assert read_explanation(InvalidInput("It broke.", why=why, fix=fix).explain()) == ("It broke.", why, fix)
