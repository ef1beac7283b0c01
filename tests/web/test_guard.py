"""Who may come in: keys, hosts, origins, and the headers on every answer."""

import re
from pathlib import Path

import httpx2
import pytest

from denizen.web.http.auth import LOGIN_LIFETIME, Exposure, make_csrf_token
from denizen.web.http.routing import Access, AccessRoute
from denizen.web.pages.sign_in import WRONG_KEYS
from tests.rate_rows import count_rate_keys
from tests.web.full_web_fixture import open_full_web
from tests.web_fixture import ANN, BEN, LOCAL, make_hello_model, open_web

pytestmark = pytest.mark.anyio

CHAT = {"message": "hi"}
PROTECTED = [
    ("GET", "/api/agents"),
    ("GET", "/api/models"),
    ("GET", "/api/tools"),
    ("GET", "/api/sessions/default/messages"),
    ("GET", "/api/turns/turn_1"),
    ("GET", "/api/openapi.json"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/denizen"),
    ("GET", "/no/such/path"),
    ("POST", "/api/chat"),
    ("POST", "/api/turns/turn_1/cancel"),
    ("GET", "/api/approvals"),
    ("POST", "/api/approvals/apr_1"),
    ("GET", "/api/questions"),
    ("POST", "/api/questions/qst_1"),
    ("POST", "/api/questions/qst_1/dismiss"),
    ("POST", "/api/sandbox/shell"),
    ("GET", "/api/docs/search"),
    ("GET", "/api/sources"),
    ("POST", "/api/sync/notes"),
    ("GET", "/api/gaps"),
    ("POST", "/mcp"),
    ("POST", "/mcp/scribe"),
    ("GET", "/api/stats"),
    ("GET", "/api/stats/me"),
    ("POST", "/api/stats/usage"),
    ("POST", "/api/stats/compute"),
    ("GET", "/api/agent-config"),
    ("PUT", "/api/agent-config"),
    ("POST", "/api/agent-config/reset"),
    ("GET", "/api/agent-config/public"),
    ("GET", "/api/agent-config/sets"),
    ("POST", "/api/agent-config/sets/default/activate"),
    ("DELETE", "/api/agent-config/sets/default"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/responses"),
    ("POST", "/logout"),
    ("GET", "/api/github/repos"),
    ("POST", "/settings/profile"),
    ("POST", "/settings/password"),
    ("POST", "/settings/sessions/revoke"),
    ("POST", "/settings/api-keys"),
    ("POST", "/settings/api-keys/revoke"),
    ("POST", "/settings/confirm"),
    ("POST", "/settings/identities/unlink"),
    ("POST", "/settings/delete"),
    ("GET", "/api/account"),
    ("PATCH", "/api/account"),
    ("DELETE", "/api/account"),
    ("PUT", "/api/account/password"),
    ("GET", "/api/account/export"),
    ("GET", "/api/account/sessions"),
    ("DELETE", "/api/account/sessions/sign_1"),
    ("GET", "/api/account/api-keys"),
    ("POST", "/api/account/api-keys"),
    ("DELETE", "/api/account/api-keys/key_1"),
    ("GET", "/api/account/identities"),
    ("DELETE", "/api/account/identities/github"),
    ("GET", "/api/admin/users"),
    ("GET", "/api/admin/users/user_1"),
    ("PATCH", "/api/admin/users/user_1"),
    ("DELETE", "/api/admin/users/user_1"),
    ("GET", "/api/admin/invitations"),
    ("POST", "/api/admin/invitations"),
    ("DELETE", "/api/admin/invitations/inv_1"),
    ("GET", "/api/admin/api-keys"),
    ("POST", "/api/admin/api-keys"),
    ("DELETE", "/api/admin/api-keys/key_1"),
]


@pytest.mark.proves("T-http-auth", "TW3")
@pytest.mark.parametrize(("method", "path"), PROTECTED)
async def test_with_keys_everything_needs_one(method: str, path: str) -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        missing = await client.request(method, path, json=CHAT)
        wrong = await client.request(method, path, json=CHAT, headers={"x-api-key": "nope"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (401, "credentials_missing")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "credentials_wrong")
    assert missing.headers["www-authenticate"] == "Bearer"


@pytest.mark.proves("T-http-auth")
@pytest.mark.parametrize("headers", [{"authorization": "Bearer key-of-ann"}, {"x-api-key": "key-of-ann"}])
async def test_a_known_key_lets_in(headers: dict[str, str]) -> None:
    async with open_web(make_hello_model(), keys=[ANN, BEN]) as web, web.client(**headers) as client:
        assert (await client.get("/api/agents")).status_code == 200
        assert "Hello." in (await client.post("/api/chat", json=CHAT)).text


async def test_a_key_that_was_taken_out_is_refused_at_once() -> None:
    async with open_web(keys=[ANN, BEN]) as web, web.client(**{"x-api-key": "key-of-ann"}) as client:
        assert (await client.get("/api/agents")).status_code == 200
        web.keys.remove(ANN)
        assert (await client.get("/api/agents")).status_code == 401


@pytest.mark.proves("TW3")
@pytest.mark.parametrize("path", ["/health", "/ready", "/login", "/static/chat.js", "/static/denizen.css"])
async def test_health_sign_in_and_the_pages_own_files_need_no_key(path: str) -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        assert (await client.get(path)).status_code == 200


@pytest.mark.proves("TW3")
async def test_a_server_that_lost_its_keys_beyond_loopback_lets_nobody_in() -> None:
    async with open_web(exposure=Exposure(listens_beyond_loopback=True)) as web, web.client() as client:
        assert (await client.get("/api/agents")).status_code == 401
        assert (await client.get("/health")).status_code == 200


@pytest.mark.proves("T-http-auth")
async def test_without_keys_on_loopback_this_machine_is_let_in() -> None:
    async with open_web(make_hello_model()) as web, web.client() as client:
        assert (await client.get("/api/agents")).status_code == 200
        assert (await client.get("/api/agents", headers={"x-api-key": "whatever"})).status_code == 200
        assert "Hello." in (await client.post("/api/chat", json=CHAT)).text


# --- hosts and origins -----------------------------------------------------------------------------------------------

GOOD_HOSTS = ["127.0.0.1:8650", "127.0.0.1", "localhost", "localhost:1", "[::1]:8650", "[::1]", "denizen.localhost:80"]
BAD_HOSTS = ["evil.example", "evil.example:8650", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""]


@pytest.mark.parametrize("host", GOOD_HOSTS)
async def test_an_open_server_answers_to_loopback_names(host: str) -> None:
    async with open_web() as web, web.client(host=host) as client:
        assert (await client.get("/api/agents")).status_code == 200


@pytest.mark.parametrize("host", BAD_HOSTS)
@pytest.mark.parametrize("path", ["/", "/api/agents", "/health"])
async def test_an_open_server_does_not_answer_to_other_names(host: str, path: str) -> None:
    async with open_web() as web, web.client(host=host) as client:
        response = await client.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "host_refused")


async def test_a_configured_name_is_answered_to() -> None:
    exposure = Exposure(allowed_hosts=frozenset({"denizen.lan"}))
    async with open_web(exposure=exposure) as web, web.client(host="denizen.lan:8650") as client:
        assert (await client.get("/api/agents")).status_code == 200


async def test_with_keys_the_name_does_not_matter() -> None:
    headers = {"host": "denizen.example", "x-api-key": "key-of-ann"}
    async with open_web(keys=[ANN]) as web, web.client(**headers) as client:
        assert (await client.get("/api/agents")).status_code == 200


OWN = [
    {},
    {"origin": "http://127.0.0.1:8650"},
    {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8650"},
    {"sec-fetch-site": "none"},
]
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:9999"},
    {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8650"},
]


@pytest.mark.parametrize("headers", OWN)
async def test_an_open_server_takes_changes_from_its_own_pages_and_from_programs(headers: dict[str, str]) -> None:
    async with open_web(make_hello_model()) as web, web.client(**headers) as client:
        assert (await client.post("/api/chat", json=CHAT)).status_code == 200


@pytest.mark.parametrize("headers", FOREIGN)
async def test_an_open_server_takes_no_changes_from_other_pages(headers: dict[str, str]) -> None:
    async with open_web(make_hello_model()) as web, web.client(**headers) as client:
        for path in ("/api/chat", "/v1/chat/completions", "/api/turns/turn_1/cancel"):
            response = await client.post(path, json=CHAT)
            assert (response.status_code, response.json()["error"]["code"]) == (403, "origin_refused")
        searched = await client.get("/api/docs/search?q=wifi")
        assert (searched.status_code, searched.json()["error"]["code"]) == (403, "origin_refused")
        assert await web.turns() == []


@pytest.mark.parametrize("headers", FOREIGN)
async def test_an_open_server_works_for_no_page_of_another_site_not_even_to_read(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    """An image or a frame of another page could have it search, count or examine again and again."""
    async with open_full_web(tmp_path) as web:
        web.keys.clear()
        async with web.client(**headers) as client:
            for route in web.app.routes:
                if not isinstance(route, AccessRoute) or route.access in (Access.PUBLIC, Access.SIGNED):
                    continue
                for method in (route.methods or set()) - {"HEAD"}:
                    answer = await client.request(method, re.sub(r"{\w+(:\w+)?}", "x", route.path) + "?q=wifi")
                    assert answer.status_code == 403, (method, route.path)
                    assert answer.json()["error"]["code"] == "origin_refused"
            assert (await client.get("/health")).status_code == 200


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


async def test_a_link_from_elsewhere_leads_to_a_page_of_an_open_server_but_asks_it_for_no_work(tmp_path: Path) -> None:
    async with open_full_web(tmp_path) as web:
        web.keys.clear()
        async with web.client(**LINK) as client:
            for path in ("/", "/admin/search", "/admin/turns"):
                assert (await client.get(path)).status_code == 200
                assert (await client.get(path, headers={"sec-fetch-dest": "iframe"})).status_code == 403
            for path in ("/admin/search?q=wifi", "/api/agents"):
                assert (await client.get(path)).json()["error"]["code"] == "origin_refused", path


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_form_of_another_page_cannot_be_taken_for_json(media_type: str) -> None:
    async with open_web() as web, web.client() as client:
        body = b'{"message": "hi"}'
        response = await client.post("/api/chat", content=body, headers={"content-type": media_type})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "media_type")


async def test_an_allowed_origin_may_use_the_api_from_its_pages() -> None:
    origin = "https://chat.example"
    exposure = Exposure(allowed_origins=frozenset({origin}))
    async with open_web(make_hello_model(), exposure=exposure) as web, web.client(origin=origin) as client:
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        before = await client.options("/api/chat", headers=asks)
        response = await client.post("/api/chat", json=CHAT, headers={"sec-fetch-site": "cross-site"})
    assert before.headers["access-control-allow-origin"] == origin
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, origin)


async def test_nobody_else_is_told_that_their_scripts_may_read() -> None:
    async with open_web() as web, web.client(origin="https://evil.example") as client:
        assert "access-control-allow-origin" not in (await client.get("/api/agents")).headers


@pytest.mark.parametrize("path", ["/", "/health", "/api/agents", "/api/nothing", "/static/chat.js", "/login"])
async def test_every_answer_has_the_security_headers(path: str) -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        headers = (await client.get(path)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert (headers["x-frame-options"], headers["cross-origin-resource-policy"]) == ("DENY", "same-origin")


# --- signing in ------------------------------------------------------------------------------------------------------


async def sign_in(client: httpx2.AsyncClient, key: str = "key-of-ann") -> httpx2.Response:
    return await client.post("/login", data={"key": key})


async def test_the_page_leads_to_the_sign_in_and_the_sign_in_to_the_page() -> None:
    async with open_web(make_hello_model(), keys=[ANN]) as web, web.client() as client:
        page = await client.get("/")
        assert (page.status_code, page.headers["location"]) == (303, "/login")
        answer = await sign_in(client)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await client.get("/")).status_code == 200
        headers = {"x-csrf-token": make_csrf_token(client.cookies["denizen_login"])}
        assert (await client.post("/api/chat", json=CHAT, headers=headers)).status_code == 200
        assert [turn.principal.key for turn in await web.turns()] == ["api_key:ann"]


async def test_the_cookie_cannot_be_read_by_scripts_or_sent_by_other_sites_and_is_not_the_key() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        cookie = (await sign_in(client)).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    assert "key-of-ann" not in cookie


async def test_over_tls_the_cookie_stays_there() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        cookie = (await client.post("https://127.0.0.1/login", data={"key": "key-of-ann"})).headers["set-cookie"]
    assert "Secure" in cookie


async def test_a_wrong_key_does_not_sign_in() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        answer = await sign_in(client, "nope")
        assert answer.status_code == 401
        assert "not known" in answer.text
        assert "set-cookie" not in answer.headers
        assert (await client.get("/api/agents")).status_code == 401


async def test_a_sign_in_ends_by_signing_out_by_time_and_with_its_key() -> None:
    async with open_web(keys=[ANN, BEN]) as web, web.client() as client:
        for end in (
            lambda: client.post("/logout", data={"csrf_token": make_csrf_token(client.cookies["denizen_login"])}),
            lambda: web.clock.advance(LOGIN_LIFETIME.total_seconds() + 1),
            lambda: web.keys.remove(ANN),
        ):
            await sign_in(client)
            assert (await client.get("/api/agents")).status_code == 200
            ended = end()
            if ended is not None:
                await ended
            assert (await client.get("/api/agents")).status_code == 401


@pytest.mark.parametrize("headers", FOREIGN)
async def test_a_signed_in_browser_cannot_be_used_by_other_pages(headers: dict[str, str]) -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        await sign_in(client)
        assert (await client.post("/api/chat", json=CHAT, headers=headers)).status_code == 403
        assert (await client.post("/login", data={"key": "key-of-ann"}, headers=headers)).status_code == 403


async def test_a_key_in_the_request_counts_more_than_a_cookie() -> None:
    async with open_web(make_hello_model(), keys=[ANN, BEN]) as web, web.client() as client:
        await sign_in(client)
        await client.post("/api/chat", json=CHAT, headers={"x-api-key": "key-of-ben"})
        assert [turn.principal.key for turn in await web.turns()] == ["api_key:ben"]


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "CF-Connecting-IP", "X-Forwarded-Proto", "X-Client-IP"],
)
async def test_without_keys_what_a_proxy_passes_on_is_refused(header: str) -> None:
    async with open_web() as web, web.client() as client:
        answer = await client.get("/api/agents", headers={header: "203.0.113.7"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "proxy_without_keys")


@pytest.mark.proves("X-rate-limit")
async def test_who_guesses_keys_has_to_wait_and_who_knows_one_does_not() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        for _ in range(20):
            assert (await client.post("/login", data={"key": "key-of-ann"})).status_code == 303
        tries = [await client.post("/login", data={"key": f"guess-{n}"}) for n in range(WRONG_KEYS.calls)]
        assert {answer.status_code for answer in tries} == {401}
        locked = await client.post("/login", data={"key": "key-of-ann"})
        assert count_rate_keys(web.store) == 1
    assert locked.status_code == 429
    assert "Try again in 15 min" in locked.text


async def test_who_guesses_keys_from_one_address_after_another_of_an_ipv6_network_has_to_wait_too() -> None:
    async with open_web(keys=[ANN]) as web:
        codes: list[int] = []
        for number in range(WRONG_KEYS.calls + 1):
            transport = httpx2.ASGITransport(web.app, client=(f"2001:db8::{number:x}", 40_000))
            async with httpx2.AsyncClient(transport=transport, base_url=LOCAL) as client:
                codes.append((await client.post("/login", data={"key": f"guess-{number}"})).status_code)
    assert codes == [401] * WRONG_KEYS.calls + [429]


async def test_a_browser_that_asks_for_an_unknown_page_gets_a_page() -> None:
    async with open_web() as web, web.client() as client:
        page = await client.get("/admin/nowhere", headers={"accept": "text/html"})
        answer = await client.get("/admin/nowhere")
        api = await client.get("/api/nowhere", headers={"accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Look for it in the menu" in page.text
    assert [each.json()["error"]["code"] for each in (answer, api)] == ["route_unknown"] * 2
