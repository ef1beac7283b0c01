"""Answers of schedules leave as signed webhooks and as mail, to real servers."""

from __future__ import annotations

import json
from email import message_from_bytes

import pytest

from denizen.adapters.mail import ImapMailbox
from denizen.adapters.webhooks import SchemeName, find_scheme
from denizen.app.schedule_delivery import HomeRunSender
from denizen.domain.errors import InvalidInput, NeedsAttention, NotAllowed, Unavailable
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.schedule import ScheduleDelivery
from denizen.ports.schedules import RunReport
from tests.app.home_folder import Home
from tests.clock import NOON, ManualClock
from tests.local_server import serve
from tests.mail_server import PASSWORD, USER, open_mail_servers

pytestmark = pytest.mark.anyio

SECRET = "a-long-secret-of-hooks"
REPORT = RunReport(
    run="run_1", schedule="news", agent=AgentName("ada"), planned_at=NOON, turn_id=TurnId("turn_1"), text="Tea \u2615"
)


def load(home: Home, delivery: str, rest: str = "", **environ: str) -> tuple[HomeRunSender, ScheduleDelivery]:
    """Returns the sender of a configuration with a schedule, and where its answers go."""
    text = f"schedules: {{news: {{cron: '@daily', prompt: x, delivery: {delivery}}}}}\n{rest}"
    settings = home.load(text, known_tools=None, **environ)
    sender = HomeRunSender(settings, ImapMailbox(ManualClock()), ManualClock())
    return sender, settings.schedules["news"].conduct.delivery


def write_hook(port: int, hosts: str = "") -> str:
    allowed = hosts or f"127.0.0.1:{port}"
    return f"{{to: webhook, target: '${{HOOK_URL}}', secret: '${{HOOK_SECRET}}', private_hosts: ['{allowed}']}}"


async def test_a_webhook_is_signed_and_has_a_key_by_which_it_is_known(home: Home) -> None:
    with serve({"/hook": lambda exchange: exchange.say("", status=204)}) as server:
        sender, delivery = load(home, write_hook(server.port), HOOK_URL=server.url("/hook"), HOOK_SECRET=SECRET)
        assert SECRET not in repr(delivery)
        assert await sender.send(delivery, REPORT) == "The webhook answered 204."
        [request] = server.requests
    assert request.method == "POST"
    assert find_scheme(SchemeName.STANDARD).is_genuine(SECRET, request.headers, request.data, now=NOON)
    assert not find_scheme(SchemeName.STANDARD).is_genuine(
        "another-long-secret", request.headers, request.data, now=NOON
    )
    assert (request.headers["webhook-id"], request.headers["idempotency-key"]) == ("run_1", "run_1")
    body = json.loads(request.data)
    assert (body["type"], body["data"]["text"], body["data"]["schedule"]) == ("schedule.answered", "Tea \u2615", "news")


@pytest.mark.parametrize(("status", "error"), [(503, Unavailable), (429, Unavailable), (401, InvalidInput)])
async def test_a_refusal_is_told_apart_from_what_may_pass(home: Home, status: int, error: type[Exception]) -> None:
    with serve({"/hook": lambda exchange: exchange.say("no", status=status)}) as server:
        sender, delivery = load(home, write_hook(server.port), HOOK_URL=server.url("/hook"), HOOK_SECRET=SECRET)
        with pytest.raises(error, match=f"answered {status}"):
            await sender.send(delivery, REPORT)
        assert len(server.requests) == 1


async def test_a_webhook_reaches_no_private_server_that_was_not_named(home: Home) -> None:
    with serve({"/hook": lambda exchange: exchange.say("")}) as server:
        hook = write_hook(server.port, hosts="10.0.0.1:80")
        sender, delivery = load(home, hook, HOOK_URL=server.url("/hook"), HOOK_SECRET=SECRET)
        with pytest.raises(NotAllowed):
            await sender.send(delivery, REPORT)
        assert server.requests == []


@pytest.mark.parametrize(
    ("delivery", "told"),
    [
        ("{to: webhook, target: 'https://example.org'}", "signed with a secret"),
        ("{to: webhook, target: example.org, secret: '${HOOK_SECRET}'}", "needs an address"),
        ("{to: mail}", "needs an address"),
        ("{to: mail, target: a@example.org, secret: '${HOOK_SECRET}'}", "only a delivery to: webhook"),
        ("{to: log, subject: x}", "only a delivery to: mail"),
    ],
)
def test_what_cannot_be_sent_is_refused(home: Home, delivery: str, told: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        load(home, delivery, HOOK_SECRET=SECRET)
    assert told in str(raised.value.context["problems"])


def test_a_secret_that_could_be_guessed_is_refused(home: Home) -> None:
    with pytest.raises(NeedsAttention, match="too short"):
        load(home, "{to: webhook, target: 'https://example.org', secret: '${HOOK_SECRET}'}", HOOK_SECRET="short")


async def test_mail_is_sent_once_from_the_account_of_the_skill(home: Home) -> None:
    with open_mail_servers() as servers:
        rest = (
            "tools: {mail: {imap: 127.0.0.1, smtp: 127.0.0.1, address: 'Ada <ada@example.org>', "
            f"user: {USER}, password: '${{MAIL_PASSWORD}}', imap_port: {servers.imap_port}, "
            f"smtp_port: {servers.smtp_port}, imap_security: none, smtp_security: none}}}}\n"
        )
        mail = "{to: mail, target: 'ben@example.net', subject: The news}"
        sender, delivery = load(home, mail, rest, MAIL_PASSWORD=PASSWORD)
        for _ in range(2):
            assert await sender.send(delivery, REPORT) == "Sent by mail."
        [sent] = servers.sent
    told = message_from_bytes(sent)
    assert (told["Subject"], told["To"], told["From"]) == ("The news", "ben@example.net", "Ada <ada@example.org>")


async def test_mail_without_an_account_says_what_is_missing(home: Home) -> None:
    sender, delivery = load(home, "{to: mail, target: 'ben@example.net'}")
    with pytest.raises(NeedsAttention) as raised:
        await sender.send(delivery, REPORT)
    assert "tools.mail.imap" in raised.value.why
