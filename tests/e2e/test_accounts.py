"""Accounts of people with a real server: the link of the start, and what the command line does."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.e2e.home import Home

pytestmark = pytest.mark.e2e

FORM = {"email": "ann@example.org", "name": "Ann", "password": "correct horse battery"}


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


def test_without_pages_nobody_can_sign_in_and_it_does_not_start_for_others(home: Home) -> None:
    home.configure("http://127.0.0.1:9/v1", rest="channels: {web: {enabled: false}}")
    refused = home.do("run", "--host", "0.0.0.0", "--port", "0")
    assert refused.code != 0
    assert "will not listen on '0.0.0.0' without an API key" in refused.err


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
