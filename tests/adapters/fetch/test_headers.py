"""Headers, which may hold a secret: whom they are sent to, and that nothing repeats them."""

from __future__ import annotations

import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed
from tests.local_server import Answer, LocalServer, serve

pytestmark = pytest.mark.anyio

SECRET = "k3y-" + "0123456789"
HEADERS = {"X-Subscription-Token": SECRET}


def fetcher(*servers: LocalServer, trusted: LocalServer | None = None) -> WebFetcher:
    known = [trusted.address] if trusted else []
    return WebFetcher(allow_private=[each.address for each in servers], trusted=known, backoff_s=(0.0,))


def hello(body: str = "hello", *, status: int = 200) -> Answer:
    return lambda exchange: exchange.say(body, status=status)


async def test_a_named_server_gets_them() -> None:
    with serve({"/": hello()}) as server:
        page = await fetcher(server, trusted=server).fetch(server.url("/"), headers=HEADERS)
        assert page.text == "hello"
        assert server.requests[0].headers["x-subscription-token"] == SECRET
        assert server.requests[0].headers["user-agent"].startswith("Denizen/")


async def test_a_server_that_nobody_named_is_not_even_asked() -> None:
    with serve({"/": hello()}) as server, serve({}) as other:
        for trusted in (None, other):
            with pytest.raises(NotAllowed) as caught:
                await fetcher(server, trusted=trusted).fetch(server.url("/"), headers=HEADERS)
            assert caught.value.code == "headers_refused"
            assert SECRET not in caught.value.explain()
        assert server.requests == []


@pytest.mark.proves("VW5")
async def test_a_redirect_to_another_server_goes_on_without_them_and_one_at_home_with_them() -> None:
    with serve({"/": hello("elsewhere")}) as other:
        routes: dict[str, Answer] = {
            "/away": lambda exchange: exchange.redirect(other.url("/")),
            "/home": lambda exchange: exchange.redirect("/end"),
            "/end": hello("end"),
        }
        with serve(routes) as server:
            web = fetcher(server, other, trusted=server)
            assert (await web.fetch(server.url("/away"), headers=HEADERS)).text == "elsewhere"
            assert "x-subscription-token" not in other.requests[0].headers
            assert (await web.fetch(server.url("/home"), headers=HEADERS)).text == "end"
            assert all(seen.headers["x-subscription-token"] == SECRET for seen in server.requests)


async def test_headers_are_not_sent_again_after_a_redirect_over_another_server() -> None:
    routes: dict[str, Answer] = {}
    with serve(routes) as server, serve({"/": lambda exchange: exchange.redirect(server.url("/end"))}) as other:
        routes["/away"] = lambda exchange: exchange.redirect(other.url("/"))
        routes["/end"] = hello("end")
        await fetcher(server, other, trusted=server).fetch(server.url("/away"), headers=HEADERS)
        assert "x-subscription-token" not in server.requests[1].headers


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Other: 1", f"{SECRET}\n", f" {SECRET}", f"{SECRET}é", ""])
async def test_a_value_that_is_no_header_is_refused_without_being_repeated(value: str) -> None:
    with serve({"/": hello()}) as server:
        with pytest.raises(InvalidInput) as caught:
            await fetcher(server, trusted=server).fetch(server.url("/"), headers={"X-Token": value})
        assert SECRET not in caught.value.explain()
        assert server.requests == []


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "connection", "a b", "", "x:y"])
async def test_headers_of_the_connection_itself_are_not_set(name: str) -> None:
    with serve({"/": hello()}) as server, pytest.raises(InvalidInput):
        await fetcher(server, trusted=server).fetch(server.url("/"), headers={name: "x"})


async def test_faults_of_the_network_do_not_repeat_them() -> None:
    with serve({}) as server:
        web = fetcher(server, trusted=server)
    with pytest.raises(DenizenError) as caught:
        await web.fetch(server.url("/"), headers=HEADERS)
    assert SECRET not in f"{caught.value.explain()} {caught.value!r} {caught.value.__cause__!r}"
