"""`POST /api/hooks/{route}`: who gets an event in, and what is done about it."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace

import httpx2
import pytest

from denizen.adapters.webhooks import SchemeName, find_scheme
from denizen.domain.event_listener import ActionKind, EventAction, EventListener, FieldCondition
from denizen.domain.ids import AgentName
from denizen.domain.principal import PrincipalKind
from denizen.domain.turn import TurnStatus
from denizen.ports.events import EventSearch, EventSettings
from denizen.ports.webhooks import WebhookRoute
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.web.api.hooks import MAX_HOOK_BYTES
from tests.web_fixture import ANN, WebFixture, open_web
from tests.webhook_signature import sign_standard

pytestmark = pytest.mark.anyio

SECRET = "the-secret-of-the-route"
ALERTS = WebhookRoute(name="alerts", scheme=find_scheme(SchemeName.BEARER), secret=SECRET)
HUB = WebhookRoute(name="hub", scheme=find_scheme(SchemeName.GITHUB), secret=SECRET)
LAB = WebhookRoute(name="lab", scheme=find_scheme(SchemeName.GITLAB), secret=SECRET)
SLACK = WebhookRoute(name="slack", scheme=find_scheme(SchemeName.SLACK), secret=SECRET)
SITE = WebhookRoute(name="site", scheme=find_scheme(SchemeName.STANDARD), secret=SECRET)
ANSWER = EventAction(kind=ActionKind.AGENT, agent=AgentName("denizen"), message="Alert on {{host.name}}: {{text}}")
LOG = replace(ANSWER, kind=ActionKind.LOG)


def listen(route: WebhookRoute, action: EventAction = LOG) -> EventListener:
    return EventListener(name=route.name, on=("*",), source=route.source, action=action, kind=PrincipalKind.WEBHOOK)


def settings(*listeners: EventListener) -> EventSettings:
    found = listeners or (listen(ALERTS), listen(HUB), listen(SLACK))
    routes = {route.name: route for route in (ALERTS, HUB, SLACK, LAB, SITE)}
    return EventSettings(listeners={each.key: each for each in found}, routes=routes)


async def send(web: WebFixture, route: str, body: str = "{}", **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with web.client(**named) as client:
        return await client.post(f"/api/hooks/{route}", content=body.encode())


async def send_alert(web: WebFixture, payload: object, *, key: str = "") -> httpx2.Response:
    return await send(web, "alerts", json.dumps(payload), x_webhook_token=SECRET, x_webhook_id=key)


def sign(body: str) -> str:
    return f"sha256={hmac.digest(SECRET.encode(), body.encode(), 'sha256').hex()}"


@pytest.mark.proves("T-http-webhooks-off")
async def test_webhooks_that_are_off_are_answered_503_and_an_unknown_route_404() -> None:
    async with open_web() as web:
        off = await send(web, "alerts", x_webhook_token=SECRET)
        assert (off.status_code, off.json()["error"]["code"]) == (503, "webhooks_off")
    async with open_web(events=settings(), keys=[ANN]) as web:
        unknown = await send(web, "alert", x_webhook_token=SECRET)
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "webhook_unknown")


@pytest.mark.parametrize("headers", [{}, {"x_webhook_token": "wrong"}, {"authorization": f"Bearer {SECRET}"}])
async def test_a_wrong_secret_and_none_are_refused_with_the_same_answer(headers: dict[str, str]) -> None:
    async with open_web(events=settings(), keys=[ANN]) as web:
        refused = await send(web, "alerts", **headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "signature_wrong")
        assert "signature or token" in refused.json()["error"]["why"]
        assert refused.content == (await send(web, "alerts")).content
        async with web.store.work(write=False) as work:
            assert not await work.events.list_failed(limit=1)


@pytest.mark.proves("V34")
async def test_a_webhook_is_accepted_only_with_a_valid_hmac_signature() -> None:
    body = '{"a": 1}'
    async with open_web(events=settings(listen(SITE)), keys=[ANN]) as web:
        good = sign_standard(SECRET, body.encode(), now=web.clock.now())
        forged = sign_standard("another-secret-of-16", body.encode(), now=web.clock.now())
        tokens = {"authorization": f"Bearer {SECRET}", "x-webhook-token": SECRET, "x-gitlab-token": SECRET}
        unsigned = good | {"webhook-signature": SECRET}
        for headers in ({}, forged, tokens, {"authorization": "Bearer key-of-ann"}, unsigned):
            assert (await send(web, "site", body, **headers)).status_code == 401
        assert (await send(web, "site", '{"a": 2}', **good)).status_code == 401
        async with web.store.work(write=False) as work:
            assert not await work.events.search(EventSearch())
        assert (await send(web, "site", body, **good)).status_code == 202
        assert (await send(web, "site", body, **good)).status_code == 200
        web.clock.advance(minutes=6)
        assert (await send(web, "site", body, **good)).status_code == 401


@pytest.mark.proves("TW4")
async def test_a_webhook_passes_beside_api_keys_whatever_key_comes_with_it() -> None:
    async with open_web(events=settings(), keys=[ANN]) as web:
        for header in ({}, {"authorization": "Bearer key-of-ann"}, {"authorization": "Bearer nobody's"}):
            assert (await send(web, "alerts", x_webhook_token=SECRET, **header)).status_code == 202


@pytest.mark.proves("T-http-webhooks")
async def test_a_route_fills_its_template_and_starts_its_agent_in_its_session_or_only_logs() -> None:
    model = ScriptedModel(ScriptedReply("Look at the disk."), ScriptedReply("And again."))
    async with open_web(model, events=settings(listen(ALERTS, ANSWER), listen(HUB))) as web:
        taken = await send_alert(web, {"host": {"name": "db1"}, "text": "disk full"})
        assert taken.status_code == 202
        await web.bus.look()
        turn = await web.ended(TurnStatus.DONE)
        assert (turn.principal.key, turn.agent) == ("webhook:alerts", "denizen")
        async with web.store.work(write=False) as work:
            [first, _] = await work.messages.list_tail(turn.session_id, limit=9)
            home = await work.conversations.get(turn.conversation_id)
        assert (first.text, home.place.thread) == ("Alert on db1: disk full", "webhook:alerts")
        empty = await send(web, "alerts", "", x_webhook_token=SECRET)
        assert empty.status_code == 202
        body = '{"repository": {"full_name": "club/site"}}'
        logged = await send(web, "hub", body, x_hub_signature_256=sign(body), x_github_event="push")
        assert logged.status_code == 202
        await web.bus.look()
        again, *_ = [each for each in await web.turns() if each.id != turn.id]
        assert again.session_id == turn.session_id
        assert len(await web.turns()) == 2
        async with web.store.work(write=False) as work:
            event = await work.events.find(logged.json()["event"])
            assert event is not None and (event.type, event.subject) == ("github.push", "club/site")


@pytest.mark.proves("V30-webhooks")
async def test_github_and_gitlab_are_told_apart_by_type_and_other_json_by_conditions_on_its_fields() -> None:
    full = FieldCondition(path="disk.percent", at_least=90)
    host = FieldCondition(path="host", not_any=("test-*",))
    kinds = ("github.push", "github.pull_request", "gitlab.push", "gitlab.merge_request")
    listeners = [EventListener(name=kind.replace(".", "-"), on=(kind,), action=LOG) for kind in kinds]
    listeners += [EventListener(name="disk", on=("webhook.alerts",), action=LOG, conditions=(full, host))]
    async with open_web(events=settings(*listeners)) as web:

        async def heard(answer: httpx2.Response) -> list[str]:
            async with web.store.work(write=False) as work:
                found = await work.events.list_deliveries([answer.json()["event"]])
            return [each.listener.partition(":")[2] for each in found]

        for name in ("push", "pull_request", "issues", "release", "workflow_run"):
            body = json.dumps({"about": name})
            sent = await send(web, "hub", body, x_hub_signature_256=sign(body), x_github_event=name)
            assert await heard(sent) == [f"github-{name}"] * (name in ("push", "pull_request"))
        for name in ("push", "merge_request", "pipeline", "issue"):
            sent = await send(web, "lab", json.dumps({"object_kind": name}), x_gitlab_token=SECRET)
            assert await heard(sent) == [f"gitlab-{name}"] * (name in ("push", "merge_request"))
        for host, percent, found in (("db1", 95, ["disk"]), ("db1", 80, []), ("test-1", 95, [])):
            assert await heard(await send_alert(web, {"host": host, "disk": {"percent": percent}})) == found


async def test_the_same_delivery_is_one_event_and_a_try_of_the_sender_is_none() -> None:
    async with open_web(events=settings()) as web:
        first, again, other = [await send_alert(web, {"a": 1}, key=key) for key in ("one", "one", "two")]
        assert [each.status_code for each in (first, again, other)] == [202, 200, 202]
        assert first.json()["event"] == again.json()["event"] != other.json()["event"]
        ping = await send(web, "hub", "{}", x_hub_signature_256=sign("{}"), x_github_event="ping")
        assert (ping.status_code, ping.json()) == (200, {"status": "pong"})


async def test_the_same_delivery_with_another_body_is_told_in_the_log_and_the_first_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_web(ScriptedModel(), events=settings()) as web:
        for text in ("down", "down", "up"):
            assert not caplog.records
            answer = await send_alert(web, {"text": text}, key="delivery-1")
        assert answer.json()["status"] == "known"
        [told] = caplog.records
        assert "another body" in told.message and told.__dict__["route"] == "alerts"
        async with web.store.work(write=False) as work:
            [kept] = await work.events.search(EventSearch())
        assert kept.event.data == {"text": "down"}


async def test_slack_gets_its_challenge_back_when_its_signature_fits() -> None:
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aB"})
    async with open_web(events=settings()) as web:
        at = str(int(web.clock.now().timestamp()))
        signature = f"v0={hmac.digest(SECRET.encode(), f'v0:{at}:{body}'.encode(), 'sha256').hex()}"
        headers = {"x_slack_request_timestamp": at, "x_slack_signature": signature}
        assert (await send(web, "slack", body, **headers)).json() == {"status": "pong", "challenge": "3eZbrw1aB"}
        web.clock.advance(minutes=6)
        assert (await send(web, "slack", body, **headers)).status_code == 401


async def test_a_body_that_is_too_large_or_no_json_is_refused() -> None:
    async with open_web(events=settings()) as web:
        assert (await send(web, "alerts", "{", x_webhook_token=SECRET)).status_code == 400
        large = await send(web, "alerts", " " * (MAX_HOOK_BYTES + 1), x_webhook_token=SECRET)
        assert large.status_code == 413
