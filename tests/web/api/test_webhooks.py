"""Webhooks over HTTP, signed as GitHub signs them, and the repositories that can become sources."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack

import anyio
import httpx2
import pytest

from denizen.adapters.github import access as access_module
from denizen.adapters.github import account as account_module
from denizen.adapters.github.events import sign
from denizen.testing.scripted_model import ScriptedModel
from tests.adapters.github.github_fixture import SECRET
from tests.github_simulator.hooks import make_ping
from tests.github_simulator.state import Hook
from tests.timing import HANG_LIMIT_S
from tests.web.github_web_fixture import ROUTE, make_headers, open_github_web
from tests.web_fixture import ADA, ANN, open_web

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S33", "S-http-webhooks-post")
async def test_a_signed_webhook_is_taken_without_a_key_also_through_a_proxy() -> None:
    async with open_github_web(keys=[ANN]) as server:
        answer = await server.send(server.body(), x_forwarded_for="140.82.115.1", host="agents.example.org")
        assert (answer.status_code, answer.json()) == (202, {"status": "taken"})
        assert server.heard.questions == ["why?"]
        assert (await server.send(b"{}", event="push")).json() == {"status": "ignored"}


@pytest.mark.proves("S33", "S-http-webhooks-post", "TW3")
@pytest.mark.parametrize(
    ("signature", "code"),
    [("", "signature_missing"), ("sha256=00", "signature_wrong"), (sign("another", b"{}"), "signature_wrong")],
)
async def test_a_webhook_that_is_not_signed_by_the_secret_is_refused(signature: str, code: str) -> None:
    async with open_github_web() as server:
        answer = await server.send(server.body(), x_hub_signature_256=signature)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
        assert server.heard.arrivals == []


@pytest.mark.proves("S33")
async def test_a_ping_is_answered() -> None:
    async with open_github_web() as server:
        ping = make_ping(Hook("", SECRET), server.ana)
        answer = await server.send(ping.body, event="ping")
        assert (answer.status_code, answer.json()) == (200, {"status": "pong"})
        forged = await server.send(ping.body, event="ping", x_hub_signature_256="sha256=00")
        assert forged.status_code == 401


@pytest.mark.proves("S-http-webhooks-post")
async def test_other_platforms_and_methods_are_told_apart() -> None:
    async with open_github_web() as server:
        for platform in ("discord", "gitlab"):
            answer = await server.send(b"{}", route=f"/api/webhooks/{platform}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "webhook_unknown")
            assert "github" in answer.json()["error"]["fix"]
        async with server.web.client() as client:
            assert (await client.get(ROUTE)).status_code == 405


@pytest.mark.proves("S-http-webhooks-post")
async def test_without_a_secret_webhooks_are_off_and_say_so() -> None:
    async with open_github_web(secret="") as server:
        answer = await server.send(server.body())
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "webhook_off")
        assert "webhook_secret" in answer.json()["error"]["fix"]


async def test_what_cannot_be_taken_now_is_said_so_and_forms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_module, "START_PATIENCE_S", 0.0)
    async with open_github_web(connected=False) as server:
        answer = await server.send(server.body())
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "github_not_connected")
    async with open_github_web() as server:
        for content_type in ("application/x-www-form-urlencoded", ""):
            answer = await server.send(b"payload=%7B%7D", content_type=content_type)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "json_invalid")
        assert (await server.send(b"[1]")).status_code == 400
        assert (await server.send(b" " * 2_000_001)).status_code == 413


async def test_an_app_hears_of_its_own_webhooks_only() -> None:
    async with open_github_web() as server:
        target = {"x_github_hook_installation_target_type": "integration"}
        answer = await server.send(server.body(), **target, x_github_hook_installation_target_id="1")
        assert (answer.status_code, server.heard.arrivals) == (200, [])


@pytest.mark.proves("S-http-github-repos-get")
async def test_repositories_that_can_become_sources_are_listed_private_ones_for_admins_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access_module, "PAGE", 1)
    async with open_github_web(keys=[ANN, ADA]) as server, server.web.client() as client:
        assert (await client.get("/api/github/repos")).status_code == 401
        rows = (await client.get("/api/github/repos", headers={"x-api-key": "key-of-ann"})).json()
        assert [row["name"] for row in rows] == ["harbour/boats"]
        assert rows[0] | {"updated_at": ""} == {
            "name": "harbour/boats",
            "location": f"{server.github.url}/harbour/boats.git",
            "branch": "main",
            "private": False,
            "description": "Things that float",
            "updated_at": "",
        }
        rows = (await client.get("/api/github/repos", headers={"x-api-key": "key-of-ada"})).json()
        assert [(row["name"], row["private"]) for row in rows] == [("harbour/boats", False), ("harbour/vault", True)]


async def test_without_accounts_there_are_neither_webhooks_nor_repositories() -> None:
    async with open_web(ScriptedModel()) as web, web.client() as client:
        assert (await client.get("/api/github/repos")).json() == []
        assert (await client.post(ROUTE, content=b"{}")).status_code == 404


def send_head(url: str, route: str, signature: str) -> socket.socket:
    """A connection over which the headers of a webhook came, and one byte of its body."""
    client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
    signed = f"X-Hub-Signature-256: {signature}\r\n" if signature else ""
    client.sendall(f"POST {route} HTTP/1.1\r\nHost: localhost\r\n{signed}Content-Length: 2000000\r\n\r\n{{".encode())
    return client


@pytest.mark.parametrize("slow", [16, 64])
async def test_slow_bodies_do_not_hold_up_a_webhook(slow: int) -> None:
    async with open_github_web() as server, server.web.serve() as url:
        with ExitStack() as held:
            senders = [held.enter_context(send_head(url, ROUTE, sign("another", b""))) for _ in range(slow)]
            body = server.body()
            async with httpx2.AsyncClient(base_url=url, timeout=HANG_LIMIT_S) as client:
                answer = await client.post(ROUTE, content=body, headers=make_headers(body))
            assert (answer.status_code, answer.json()) == (202, {"status": "taken"})
            for sender in senders:
                with pytest.raises(BlockingIOError):  # nothing was answered, since all of them are still being read
                    sender.recv(1, socket.MSG_DONTWAIT)


@pytest.mark.parametrize(
    ("route", "signature", "code"),
    [
        ("/api/webhooks/discord", sign("any", b""), "webhook_unknown"),
        (ROUTE, "", "signature_missing"),
        (ROUTE, "sha256=00", "signature_wrong"),
        (ROUTE, f"sha1={'0' * 40}", "signature_wrong"),
    ],
)
async def test_a_webhook_with_the_wrong_headers_is_refused_before_its_body_comes(
    route: str, signature: str, code: str
) -> None:
    async with open_github_web() as server, server.web.serve() as url:
        with send_head(url, route, signature) as client:
            client.setblocking(False)
            answer = b""
            with anyio.fail_after(HANG_LIMIT_S):
                while b"}}" not in answer:
                    await anyio.wait_readable(client)
                    answer += client.recv(10_000)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == code
