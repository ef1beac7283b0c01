"""Webhooks of the simulated GitHub: signed, sent once, and remembered, so that a test may send one again."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass

import httpx2

from tests.github_simulator import payloads
from tests.github_simulator.payloads import Json
from tests.github_simulator.state import App, Comment, Discussion, Hook, Issue, Review, ReviewComment, User
from tests.github_simulator.world import GitHubWorld, WebhookEvent
from tests.timing import HANG_LIMIT_S


@dataclass(slots=True, eq=False)
class WebhookDelivery:
    """One webhook. `status` is 0 before it was answered, or when nobody answered; `body` what was sent."""

    id: str
    event: str
    url: str
    headers: dict[str, str]
    body: bytes
    status: int = 0
    answer: str = ""


def plan_deliveries(world: GitHubWorld, happened: WebhookEvent, base: str) -> list[WebhookDelivery]:
    """One for each hook that hears of it."""
    planned = [
        plan_delivery(
            each.hook,
            happened.event,
            make_payload(happened, base) | {"installation": {"id": installation.id}},
            app=each,
        )
        for each in world.apps
        if each.hook.url and happened.event in each.events
        for installation in each.installations
        if happened.repository in installation.repositories
    ]
    own = [plan_delivery(hook, happened.event, make_payload(happened, base)) for hook in happened.repository.hooks]
    return planned + own


def plan_delivery(hook: Hook, event: str, payload: Json, *, app: App | None = None) -> WebhookDelivery:
    body = json.dumps(payload).encode()
    key = str(uuid.uuid4())
    headers = {
        "content-type": "application/json",
        "user-agent": "GitHub-Hookshot/simulated",
        "x-github-event": event,
        "x-github-delivery": key,
        "x-github-hook-installation-target-type": "integration" if app else "repository",
        "x-github-hook-installation-target-id": str(app.id if app else payload.get("repository", {}).get("id", 0)),
    }
    if hook.secret:
        digest = hmac.new(hook.secret.encode(), body, hashlib.sha256).hexdigest()
        headers["x-hub-signature-256"] = f"sha256={digest}"
    return WebhookDelivery(key, event, hook.url, headers, body)


async def send(delivery: WebhookDelivery) -> None:
    """Tries once. GitHub waits for ten seconds only, in which a busy machine may not answer."""
    async with httpx2.AsyncClient(timeout=HANG_LIMIT_S) as client:
        try:
            answer = await client.post(delivery.url, content=delivery.body, headers=delivery.headers)
        except httpx2.HTTPError:
            delivery.status = 0
        else:
            delivery.status, delivery.answer = answer.status_code, answer.text


def make_payload(happened: WebhookEvent, base: str) -> Json:
    at, talk, what = happened.repository, happened.talk, happened.what
    told: Json = {
        "action": happened.action,
        "repository": payloads.repository(at, base),
        "sender": payloads.user(happened.sender),
    }
    if isinstance(talk, Discussion):
        told["discussion"] = payloads.discussion(talk, at)
    elif isinstance(talk, Issue) and happened.event.startswith("pull_request"):
        told["pull_request"] = payloads.pull(talk, at, base)
    elif isinstance(talk, Issue):
        told["issue"] = payloads.issue(talk, at, base)
    match what:
        case Comment() if isinstance(talk, Discussion):
            told["comment"] = payloads.discussion_comment(what, at)
        case Comment() if isinstance(talk, Issue):
            told["comment"] = payloads.comment(what, talk, at, base)
        case ReviewComment() if isinstance(talk, Issue):
            told["comment"] = payloads.review_comment(what, talk, at, base)
        case Review():
            told["review"] = payloads.review(what, at)
        case _:
            pass
    return told


def make_ping(hook: Hook, by: User) -> WebhookDelivery:
    return plan_delivery(hook, "ping", {"zen": "Keep it logically awesome.", "sender": payloads.user(by)})
