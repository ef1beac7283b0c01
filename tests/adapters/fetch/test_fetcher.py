"""Fetching from real servers on loopback, through a network that carries public addresses to them."""

from __future__ import annotations

import gzip
import socket
import ssl
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import anyio
import httpcore2
import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.adapters.fetch.http import resolve_with_system
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from tests.local_server import Answer, Exchange, LocalServer, serve
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

TLS = Path(__file__).parent / "tls"
PUBLIC = "93.184.216.34"
OTHER = "93.184.216.35"


class NameServer:
    """A name server: the answers for each name, one after the other, the last one for ever."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("Name or service not known")
        answers = self.answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class LocalNetwork(httpcore2.AnyIOBackend, httpcore2.AsyncNetworkBackend):
    """A network in which some addresses lead to servers on this machine, and the others nowhere."""

    def __init__(self, routes: Mapping[str, LocalServer]) -> None:
        self.routes = routes
        self.connected: list[tuple[str, int]] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.connected.append((host, port))
        if host not in self.routes:
            raise httpcore2.ConnectError("unreachable")
        return await super().connect_tcp("127.0.0.1", self.routes[host].port, timeout, local_address, socket_options)


def say(body: str | bytes, *, status: int = 200, kind: str = "text/plain; charset=utf-8", **headers: str) -> Answer:
    return lambda exchange: exchange.say(body, status=status, kind=kind, **headers)


def local_fetcher(server: LocalServer) -> WebFetcher:
    return WebFetcher(allow_private=[server.address], backoff_s=(0.0, 0.0))


async def fetch_refused(fetcher: WebFetcher, url: str) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        await fetcher.fetch(url)
    return caught.value


async def test_a_page_is_fetched_with_its_type_and_text() -> None:
    with serve({"/page": say("<p>Grüße</p>", kind="text/html; charset=utf-8")}) as server:
        page = await local_fetcher(server).fetch(server.url("/page?a=b c#part"))
        assert (page.status, page.media_type, page.text) == (200, "text/html", "<p>Grüße</p>")
        assert page.url == server.url("/page?a=b%20c")
        assert (page.size_bytes, page.truncated) == (14, False)
        seen = server.requests[0]
        assert seen.headers["host"] == server.address
        assert seen.headers["user-agent"].startswith("Denizen/")
        assert not {"cookie", "authorization", "referer"} & set(seen.headers)


async def test_a_status_of_error_is_a_result() -> None:
    with serve({}) as server:
        page = await local_fetcher(server).fetch(server.url("/none"))
        assert (page.status, page.text) == (404, "nothing here")
        assert len(server.requests) == 1


async def test_cookies_are_not_kept() -> None:
    with serve({"/": say("x", Set_Cookie="id=1")}) as server:
        fetcher = local_fetcher(server)
        await fetcher.fetch(server.url("/"))
        await fetcher.fetch(server.url("/"))
        assert "cookie" not in server.requests[1].headers


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serve({"/": say("direct")}) as server:
        assert (await local_fetcher(server).fetch(server.url("/"))).text == "direct"


# What may not be reached


@pytest.mark.proves("VW5", "TW16")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "0177.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "[::]",
    ],
)
async def test_loopback_is_refused_however_it_is_spelt(host: str) -> None:
    with serve({"/": say("secret")}) as server:
        error = await fetch_refused(WebFetcher(), f"http://{host}:{server.port}/")
        assert isinstance(error, NotAllowed)
        assert error.code == "address_refused"
        assert server.requests == []


@pytest.mark.proves("VW5", "TW16")
@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.5"])
@pytest.mark.parametrize("first", [True, False])
async def test_a_name_with_any_private_address_is_refused_without_connecting(private: str, first: bool) -> None:
    names = NameServer(mixed_example=[[private, PUBLIC] if first else [PUBLIC, private]])
    network = LocalNetwork({})
    error = await fetch_refused(WebFetcher(resolve=names, network=network), "http://mixed.example/")
    assert isinstance(error, NotAllowed)
    assert network.connected == []


@pytest.mark.proves("VW5", "TW16")
async def test_a_name_is_resolved_once_and_the_checked_address_is_the_one_connected_to() -> None:
    names = NameServer(rebound_example=[[PUBLIC], ["127.0.0.1"]])
    with serve({"/": say("public")}) as server:
        network = LocalNetwork({PUBLIC: server})
        page = await WebFetcher(resolve=names, network=network).fetch("http://rebound.example/")
        assert page.text == "public"
        assert names.asked == ["rebound.example"]
        assert network.connected == [(PUBLIC, 80)]
        assert server.requests[0].headers["host"] == "rebound.example"


@pytest.mark.proves("VW5")
async def test_a_name_that_turns_private_later_is_refused_later() -> None:
    names = NameServer(rebound_example=[[PUBLIC], ["127.0.0.1"]])
    with serve({"/": say("public")}) as server:
        fetcher = WebFetcher(resolve=names, network=LocalNetwork({PUBLIC: server}))
        await fetcher.fetch("http://rebound.example/")
        assert isinstance(await fetch_refused(fetcher, "http://rebound.example/"), NotAllowed)


@pytest.mark.proves("VW5", "TW16")
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:9/",
        "http://inner.example/",
        "//inner.example/x",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "https://inner.example:8443/",
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(target: str) -> None:
    names = NameServer(outer_example=[[PUBLIC]], inner_example=[["192.168.0.1"]])
    with serve({"/": lambda exchange: exchange.redirect(target)}) as server:
        network = LocalNetwork({PUBLIC: server})
        error = await fetch_refused(WebFetcher(resolve=names, network=network), "http://outer.example/")
        assert isinstance(error, NotAllowed)
        # What a server sent is not repeated: it may be a message.
        assert error.message == "it redirects to an address that may not be fetched"
        assert "inner" not in error.explain()
        assert network.connected == [(PUBLIC, 80)]


@pytest.mark.proves("VW5")
async def test_a_redirect_back_to_the_same_name_is_checked_again_when_it_connects_again() -> None:
    names = NameServer(site_example=[[PUBLIC], ["10.0.0.1"]])
    with serve({"/": lambda exchange: exchange.redirect("http://site.example:8080/")}) as server:
        error = await fetch_refused(
            WebFetcher(resolve=names, network=LocalNetwork({PUBLIC: server})), "http://site.example/"
        )
        assert isinstance(error, NotAllowed)


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://outer.example/", "http://u:p@outer.example/", "gopher:x"]
)
async def test_a_redirect_to_what_is_not_fetched_is_refused(target: str) -> None:
    with serve({"/": lambda exchange: exchange.redirect(target)}) as server:
        assert isinstance(await fetch_refused(local_fetcher(server), server.url("/")), InvalidInput)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org/page",
        "file:///etc/passwd",
        "ftp://example.org",
        "http://",
        "http:///x",
        "//example.org",
        "javascript:alert(1)",
        "http://user:pass@example.org/",
        "http://user@example.org/",
        "http://a b/",
        "http://[::1/",
        "http://x:99999/",
        "http://x:0/",
        "http://x:y/",
        "http://a\r\nHost: b/",
        "http://[fe80::1%25eth0]/",
        "http://%31/",
        "http://x/" + "a" * 5000,
        "http://1.2.3.4\\@x/",
    ],
)
async def test_what_is_no_plain_web_address_is_refused_with_a_remedy(url: str) -> None:
    error = await fetch_refused(WebFetcher(resolve=NameServer()), url)
    assert isinstance(error, InvalidInput)
    assert error.code == "bad_url"
    assert error.fix


async def test_ports_of_other_services_are_refused_unless_the_operator_opened_them() -> None:
    names = NameServer(site_example=[[PUBLIC]])
    error = await fetch_refused(WebFetcher(resolve=names, network=LocalNetwork({})), "http://site.example:22/")
    assert isinstance(error, NotAllowed)
    assert error.code == "port_refused"
    with serve({"/": say("open")}) as server:
        fetcher = WebFetcher(allow_private=["site.example:22"], resolve=names, network=LocalNetwork({PUBLIC: server}))
        assert (await fetcher.fetch("http://site.example:22/")).text == "open"


async def test_a_network_that_the_operator_opened_can_be_reached() -> None:
    names = NameServer(nas_lan=[["192.168.1.5"]])
    with serve({"/": say("files")}) as server:
        fetcher = WebFetcher(
            allow_private=["192.168.0.0/16"], resolve=names, network=LocalNetwork({"192.168.1.5": server})
        )
        assert (await fetcher.fetch("http://nas.lan/")).text == "files"


async def test_an_unknown_name_and_a_name_without_addresses_are_said_plainly() -> None:
    fetcher = WebFetcher(resolve=NameServer(empty_example=[[]]), network=LocalNetwork({}))
    for host in ("unknown.example", "empty.example"):
        error = await fetch_refused(fetcher, f"http://{host}/")
        assert isinstance(error, Unavailable)
        assert error.code == "unknown_host"
        assert host in error.message


async def test_a_name_that_nobody_has_is_another_fault_than_a_name_server_that_is_away() -> None:
    async def resolve(host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME if host == "nobodys.example" else socket.EAI_AGAIN, "No answer")

    fetcher = WebFetcher(resolve=resolve, network=LocalNetwork({}))
    assert isinstance(await fetch_refused(fetcher, "http://nobodys.example/"), NotFound), "it is not tried again"
    assert isinstance(await fetch_refused(fetcher, "http://site.example/"), Unavailable)


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example", "-.example"])
async def test_a_name_that_cannot_be_one_is_no_fault_of_the_program(host: str) -> None:
    assert isinstance(await fetch_refused(WebFetcher(), f"http://{host}/"), NotFound | Unavailable | InvalidInput)


async def test_the_systems_resolver_knows_this_machine() -> None:
    assert set(await resolve_with_system("localhost", 80)) <= {"127.0.0.1", "::1"}


# Names and certificates


async def test_the_certificate_is_checked_for_the_name_though_the_connection_goes_to_an_address() -> None:
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    names_sent: list[str | None] = []
    server_tls.sni_callback = lambda _socket, name, _context: names_sent.append(name)
    names = NameServer(site_example=[[PUBLIC]], impostor_example=[[PUBLIC]])
    with serve({"/": say("private talk")}, tls=server_tls) as server:
        trusting = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
        fetcher = WebFetcher(resolve=names, network=LocalNetwork({PUBLIC: server}), ssl_context=trusting)
        assert (await fetcher.fetch("https://site.example/")).text == "private talk"
        assert names_sent == ["site.example"]
        for url in ("https://impostor.example/", f"https://{PUBLIC}/"):
            error = await fetch_refused(fetcher, url)
            assert isinstance(error, Unavailable)
            assert error.code == "tls_failed"
        stranger = WebFetcher(resolve=names, network=LocalNetwork({PUBLIC: server}), backoff_s=())
        assert (await fetch_refused(stranger, "https://site.example/")).code == "tls_failed"
        assert len(server.requests) == 1


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    names = NameServer(site_example=[[OTHER, PUBLIC]])
    with serve({"/": say("second")}) as server:
        network = LocalNetwork({PUBLIC: server})
        assert (await WebFetcher(resolve=names, network=network).fetch("http://site.example/")).text == "second"
        assert network.connected == [(OTHER, 80), (PUBLIC, 80)]


# Redirects


async def test_redirects_are_followed_to_the_last_url() -> None:
    routes: dict[str, Answer] = {
        "/a/start": lambda exchange: exchange.redirect("../b?x=1#y", status=301),
        "/b": lambda exchange: exchange.redirect("/c", status=308),
        "/c": say("end"),
    }
    with serve(routes) as server:
        page = await local_fetcher(server).fetch(server.url("/a/start"))
        assert (page.text, page.url) == ("end", server.url("/c"))
        assert [seen.path for seen in server.requests] == ["/a/start", "/b", "/c"]


async def test_five_redirects_are_followed_and_six_are_not() -> None:
    def count_down(exchange: Exchange) -> None:
        left = int(exchange.path.rpartition("/")[2])
        if left:
            exchange.redirect(f"/{left - 1}")
        else:
            exchange.say("there")

    with serve({f"/{number}": count_down for number in range(7)}) as server:
        assert (await local_fetcher(server).fetch(server.url("/5"))).text == "there"
        server.requests.clear()
        error = await fetch_refused(local_fetcher(server), server.url("/6"))
        assert error.code == "too_many_redirects"
        assert len(server.requests) == 6


# Bounds


def deflate(data: bytes, window: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(b"word " * 100, mtime=0)),
        ("deflate", deflate(b"word " * 100, zlib.MAX_WBITS)),
        ("deflate", deflate(b"word " * 100, -zlib.MAX_WBITS)),
        ("identity", b"word " * 100),
    ],
)
async def test_packed_answers_are_unpacked(coding: str, packed: bytes) -> None:
    with serve({"/": say(packed, Content_Encoding=coding)}) as server:
        assert (await local_fetcher(server).fetch(server.url("/"))).text == "word " * 100


async def test_a_small_answer_cannot_become_a_large_one() -> None:
    packed = gzip.compress(bytes(50_000_000), 9)
    with serve({"/": say(packed, kind="text/plain; charset=latin-1", Content_Encoding="gzip")}) as server:
        page = await local_fetcher(server).fetch(server.url("/"), max_bytes=10_000)
        assert (len(page.text), page.size_bytes, page.truncated) == (10_000, 10_000, True)


async def test_an_answer_that_unpacks_to_nothing_for_ever_ends() -> None:
    def endless(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Encoding", "deflate")
        exchange.end_headers()
        exchange.wfile.write(b"\x78\x9c")
        while True:
            exchange.wfile.write(b"\x00\x00\x00\xff\xff" * 1000)

    with serve({"/": endless}) as server:
        page = await local_fetcher(server).fetch(server.url("/"), max_bytes=50_000)
        assert (page.text, page.truncated) == ("", True)


async def test_a_long_answer_is_cut_and_says_so() -> None:
    with serve({"/": say("x" * 3000), "/fits": say("x" * 1000)}) as server:
        page = await local_fetcher(server).fetch(server.url("/"), max_bytes=1000)
        assert (page.text, page.truncated) == ("x" * 1000, True)
        assert not (await local_fetcher(server).fetch(server.url("/fits"), max_bytes=1000)).truncated


async def test_pictures_are_not_read() -> None:
    with serve({"/": say(b"\x89PNG" * 1000, kind="image/png")}) as server:
        page = await local_fetcher(server).fetch(server.url("/"))
        assert (page.media_type, page.text, page.size_bytes) == ("image/png", "", 0)


@pytest.mark.parametrize("coding", ["gzip, gzip", "deflate,gzip", "identity, gzip"])
async def test_a_packing_within_a_packing_is_refused_before_anything_is_unpacked(coding: str) -> None:
    # Empty blocks, packed twice more: a kilobyte that keeps the processor busy and gives no output at all.
    packed = gzip.compress(
        gzip.compress(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\x00\x00\x00\xff\xff" * 100_000)
    )
    with serve({"/": say(packed, Content_Encoding=coding)}) as server:
        assert (await fetch_refused(local_fetcher(server), server.url("/"))).code == "bad_answer"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, br", "made-up"])
async def test_a_packing_that_was_not_asked_for_is_refused(coding: str) -> None:
    with serve({"/": say(b"\x1b\x03", Content_Encoding=coding)}) as server:
        assert (await fetch_refused(local_fetcher(server), server.url("/"))).code == "bad_answer"


async def test_a_broken_packing_is_said_plainly() -> None:
    with serve({"/": say(b"no gzip at all", Content_Encoding="gzip")}) as server:
        assert (await fetch_refused(local_fetcher(server), server.url("/"))).code == "bad_answer"


def never_answer(exchange: Exchange) -> None:
    exchange.local.closing.wait()


def answer_slowly(exchange: Exchange) -> None:
    exchange.send_response(200)
    exchange.end_headers()
    while not exchange.local.closing.wait(0.02):
        exchange.wfile.write(b".")


@pytest.mark.proves("T-tool-web-fetch")
@pytest.mark.parametrize("answer", [never_answer, answer_slowly])
async def test_a_server_that_takes_its_time_is_left_at_the_deadline(answer: Answer) -> None:
    with serve({"/": answer}) as server:
        with pytest.raises(Unavailable) as caught:
            await local_fetcher(server).fetch(server.url("/"), timeout_s=0.2)
        assert caught.value.code == "timed_out"
        assert len(server.requests) == 1, "the deadline is that of all tries"


async def test_the_deadline_holds_for_resolving_too() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await anyio.sleep_forever()
        return []

    with pytest.raises(Unavailable) as caught:
        await WebFetcher(resolve=never).fetch("http://slow.example/", timeout_s=0.05)
    assert caught.value.code == "timed_out"


async def test_the_deadline_of_the_caller_is_not_taken_for_ones_own() -> None:
    with serve({"/": never_answer}) as server:
        with anyio.move_on_after(0.1) as scope:
            await local_fetcher(server).fetch(server.url("/"), timeout_s=60)
        assert scope.cancelled_caught


# Trying again


@pytest.mark.proves("TW16")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 501])
async def test_errors_that_would_be_the_same_again_are_not_tried_again(status: int) -> None:
    with serve({"/": say("no", status=status)}) as server:
        assert (await local_fetcher(server).fetch(server.url("/"))).status == status
        assert len(server.requests) == 1


@pytest.mark.proves("T-tool-web-fetch")
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_busy_server_is_tried_twice_more_and_its_last_answer_counts(status: int) -> None:
    with serve({"/": say("busy", status=status)}) as server:
        assert (await local_fetcher(server).fetch(server.url("/"))).status == status
        assert len(server.requests) == 3


async def test_a_server_that_recovers_is_heard() -> None:
    def recover(exchange: Exchange) -> None:
        exchange.say("well", status=200 if len(exchange.local.requests) == 3 else 503)

    with serve({"/": recover}) as server:
        assert (await local_fetcher(server).fetch(server.url("/"))).status == 200


@pytest.mark.proves("T-tool-web-fetch")
async def test_a_dropped_connection_is_tried_twice_more_and_then_reported() -> None:
    def drop(exchange: Exchange) -> None:
        exchange.connection.shutdown(2)

    with serve({"/": drop}) as server:
        error = await fetch_refused(local_fetcher(server), server.url("/"))
        assert error.code == "network_fault"
        assert len(server.requests) == 3


async def test_a_server_that_speaks_no_http_is_reported() -> None:
    def greet(exchange: Exchange) -> None:
        exchange.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    with serve({"/": greet}) as server:
        assert (await fetch_refused(local_fetcher(server), server.url("/"))).code == "network_fault"


@pytest.mark.proves("TW16", "T-tool-web-fetch")
async def test_a_wait_that_the_server_asks_for_is_kept_or_not_begun() -> None:
    with serve({"/": say("later", status=429, Retry_After="3600")}) as server:
        page = await local_fetcher(server).fetch(server.url("/"), timeout_s=HANG_LIMIT_S)
        assert page.status == 429
        assert len(server.requests) == 1


@pytest.mark.proves("TW16", "T-tool-web-fetch")
async def test_between_the_two_tries_more_that_are_usual_there_are_longer_and_longer_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(pause_s: float) -> None:
        slept.append(pause_s)

    with serve({"/": say("busy", status=503)}) as server:
        monkeypatch.setattr("denizen.adapters.fetch.fetcher.anyio.sleep", sleep)
        fetcher = WebFetcher(allow_private=[server.address])
        assert (await fetcher.fetch(server.url("/"), timeout_s=HANG_LIMIT_S)).status == 503
        assert len(server.requests) == 3
    assert slept == [0.5, 1.5]


async def test_a_pause_for_which_there_is_no_time_is_not_begun() -> None:
    with serve({"/": say("busy", status=503)}) as server:
        fetcher = WebFetcher(allow_private=[server.address], backoff_s=(0.0, 3600.0))
        assert (await fetcher.fetch(server.url("/"), timeout_s=HANG_LIMIT_S)).status == 503
        assert len(server.requests) == 2
