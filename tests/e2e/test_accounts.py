"""Accounts of people with a real server: the link of the start, and what the command line does."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from denizen.testing.model_server import ModelAnswer
from denizen.web.http.auth import LOGIN_COOKIE, make_csrf_token
from tests.adapters.documents.pdf_files import make_pdf
from tests.e2e.home import Home, Server
from tests.e2e.provider import Provider
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_uploads import picture

pytestmark = pytest.mark.e2e

FORM = {"email": "ann@example.org", "name": "Ann", "password": "correct horse battery"}


@contextmanager
def sign_up(home: Home, server: Server, name: str, role: str) -> Generator[httpx2.Client]:
    """A browser of somebody who was invited, and is signed in."""
    email = f"{name}@example.org"
    link = home.do("users", "invite", "--role", role, "--email", email).out.strip()
    with httpx2.Client(base_url=server.url, timeout=HANG_LIMIT_S) as browser:
        form = FORM | {"email": email, "name": name.title(), "invite": link.partition("invite=")[2]}
        assert browser.post("/sign-up", data=form).status_code == 303
        browser.headers["x-csrf-token"] = make_csrf_token(browser.cookies[LOGIN_COOKIE])
        yield browser


@pytest.mark.proves("S-auth-first-user")
def test_a_server_for_others_starts_closed_and_prints_the_link_for_its_owner(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    with home.start("run", "--host", "0.0.0.0", "--port", "0") as running:
        url = running.err.await_text(r"Denizen is ready: http://localhost:(\d+)$")[1]
        link = running.err.await_text(r"Make the first account.*/sign-up\?invite=(\S+)$")[1]
        with httpx2.Client(base_url=f"http://127.0.0.1:{url}") as browser:
            assert browser.get("/api/agents").status_code == 401
            assert browser.get("/").headers["location"] == "/login"
            assert browser.post("/sign-up", data=FORM).status_code == 403
            assert browser.post("/sign-up", data=FORM | {"invite": link}).status_code == 303
            assert browser.get("/api/account").json()["role"] == "owner"
            assert browser.get("/api/agents").status_code == 200
            assert httpx2.get(f"http://127.0.0.1:{url}/api/agents").status_code == 401
        assert "ann@example.org  Ann" in home.do("users").out


@pytest.mark.proves("S-auth-sign-in")
def test_a_server_with_an_application_at_github_sends_people_there(home: Home) -> None:
    site = 'sign_in: {github: {client_id: abc, client_secret: "${GITHUB_SECRET}"}}'
    home.configure("http://127.0.0.1:9/v1", rest=f'server: {{api_keys: [{{name: ada, key: "${{KEY}}"}}], {site}}}\n')
    home.variables |= {"GITHUB_SECRET": "s3cret", "KEY": "a-long-key-of-ada"}
    with home.serve() as server, httpx2.Client(base_url=server.url) as browser:
        assert "/login/github" in browser.get("/login").text
        there = urlsplit(browser.get("/login/github").headers["location"])
    assert (there.netloc, there.path) == ("github.com", "/login/oauth/authorize")
    asked = parse_qs(there.query)
    assert asked["client_id"] == ["abc"]
    assert asked["redirect_uri"] == [f"{server.url}/login/github/callback"]
    assert "s3cret" not in there.query


LISTED = """\
server:
  admins: [Ben@example.org]
"""


@pytest.mark.proves("S-auth-admin-list")
def test_who_is_on_the_list_of_the_configuration_is_an_admin(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1", rest=LISTED)
    with home.serve() as server:
        for name, status in (("olga", 200), ("ben", 200), ("ann", 403)):
            with sign_up(home, server, name, "owner" if name == "olga" else "member") as browser:
                assert browser.get("/api/admin/users").status_code == status, name


@pytest.mark.proves("S-http-rate-limit", "S-http-chats-id-post", "S-prompt-title")
def test_a_member_has_fifteen_messages_a_day_the_first_of_which_gets_a_title(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    provider.script(*[ModelAnswer(text="Rome, in May!")] * 2)  # the answer and the title, whichever is asked for first
    with home.serve() as server, sign_up(home, server, "olga", "owner") as owner:
        message = {"message": "What should I see when I travel?"}
        with sign_up(home, server, "ann", "member") as member:
            asked = member.post("/api/chats/trip", json=message)
            [chat] = member.get("/api/chats").json()
            assert owner.get("/api/chats/trip").status_code == 404
    headers = {name: asked.headers.get(f"x-ratelimit-{name}") for name in ("limit", "remaining")}
    assert headers == {"limit": "15", "remaining": "14"}
    told = [json.loads(line.removeprefix("data: ")) for line in asked.text.splitlines() if line.startswith("data: ")]
    assert [event["reply"] for event in told if event["type"] == "finished"] == ["Rome, in May!"]
    assert [event["title"] for event in told if event["type"] == "title"][-1] == chat["title"] == "Rome in May"


@pytest.mark.proves("S-blob")
def test_uploads_are_kept_in_the_home_of_the_server_over_a_restart(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    files = {"a.csv": b"city,people\nRome,2800000\n", "b.pdf": make_pdf(["Invoice 4711"]), "c.png": picture()}
    with home.serve() as server, httpx2.Client(base_url=server.url) as browser:
        assert browser.post("/api/chats", json={"id": "c"}).status_code == 201
        sent = [browser.put("/api/upload/c", params={"name": name}, content=data) for name, data in files.items()]
        assert [each.status_code for each in sent] == [201, 201, 201]
    with home.serve() as server, httpx2.Client(base_url=server.url) as browser:
        kept = [browser.get(each.json()["url"]).content for each in sent]
    assert kept[:2] == [files["a.csv"], files["b.pdf"]] and kept[2][8:12] == b"WEBP"
    assert [(home.folder / "uploads" / each.json()["path"]).read_bytes() for each in sent] == kept


def test_without_pages_nobody_can_sign_in_and_it_does_not_start_for_others(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1", rest="channels: {web: {enabled: false}}")
    refused = home.do("run", "--host", "0.0.0.0", "--port", "0")
    assert refused.code != 0
    assert "will not listen on '0.0.0.0' without an API key" in refused.err


def test_an_operator_lets_the_owner_of_a_locked_account_in_by_a_link(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    with home.serve() as server, sign_up(home, server, "ann", "owner"):
        link = home.do("users", "let-in", "ann@example.org").out.strip()
        assert urlsplit(link).path == "/login"
        [token] = parse_qs(urlsplit(link).query)["browser"]
        wrong, right = FORM | {"password": "nope"}, {"email": FORM["email"], "password": FORM["password"]}
        with httpx2.Client(base_url=server.url, timeout=HANG_LIMIT_S) as stranger:
            statuses = [stranger.post("/login", data=wrong).status_code for _ in range(11)]
        assert statuses == [401] * 10 + [429]
        with httpx2.Client(base_url=server.url, timeout=HANG_LIMIT_S) as browser:
            assert browser.post("/login", data=right).status_code == 429
            assert f'name="browser" value="{token}"' in browser.get(f"/login?{urlsplit(link).query}").text
            assert browser.post("/login", data=right | {"browser": token}).status_code == 303
    assert "There is no" in home.do("users", "let-in", "ben@example.org").err


def test_an_operator_invites_promotes_and_removes_people_while_the_server_runs(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1")
    assert "Nobody has an account" in home.do("users").out
    with home.serve() as server, httpx2.Client(base_url=server.url) as browser:
        assert server.get("/api/agents").status == 200
        for name, role in (("ann", "owner"), ("ben", "member")):
            email = f"{name}@example.org"
            link = home.do("users", "invite", "--role", role, "--email", email).out.strip()
            browser.cookies.clear()
            form = FORM | {"email": email, "invite": link.partition("invite=")[2]}
            assert browser.post("/sign-up", data=form).status_code == 303
        assert server.get("/api/agents").status == 401
        assert home.do("users", "role", "ben@example.org", "admin").out == "ben@example.org is admin now.\n"
        shown = [json.loads(line) for line in home.do("users", "--json").out.splitlines()]
        assert [(each["name"], each["role"]) for each in shown] == [("Ann", "owner"), ("Ann", "admin")]
        last = home.do("users", "role", "ann@example.org", "member")
        assert (last.code != 0, "last owner stays" in last.err) == (True, True)
        assert home.do("users", "password", "ben@example.org", "--password", "short").code != 0
        assert home.do("users", "password", "ben@example.org", "--password", "a new long password").code == 0
        assert browser.get("/api/account").status_code == 401, "all sign-ins have ended"
        form = {"email": "ben@example.org", "password": "a new long password"}
        assert browser.post("/login", data=form).status_code == 303
        assert home.do("users", "remove", "--yes", "ben@example.org").code == 0
        unknown = home.do("users", "remove", "--yes", "ben@example.org")
        assert (unknown.code != 0, "no such user" in unknown.err) == (True, True)
