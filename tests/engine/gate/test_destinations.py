"""Where a call sends: an address that programs may read differently is an unknown destination."""

import re
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import httpx2
import pytest
import yarl
from hypothesis import given, settings
from hypothesis import strategies as st
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from denizen.domain.tool import DataFlow, Effect, Taint
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy
from tests.engine.gate.gate_fixture import ANA, GateFixture, scope, spec

pytestmark = pytest.mark.anyio

SENDER = spec("send", flow=DataFlow(effects=frozenset({Effect.SEND}), destinations=("to",)))
LISTED = GatePolicy(destinations=("*.example.org", "*@example.org", "discord:*", "2001:db8::1"))


@pytest.mark.parametrize(
    "to",
    [
        # no address at all
        "https://]@evil/.example.org",
        "https://[::1].example.org/",
        "https:evil/.example.org",
        "https:/evil/.example.org",
        "https:///evil/.example.org",
        # without a scheme
        "evil/.example.org",
        "evil.com/.example.org",
        "evil.com?.example.org",
        "evil.com#.example.org",
        "evil.com:80/.example.org",
        "evil.com:80.example.org",
        "//evil/.example.org",
        "//api.example.org/x",
        # other slashes
        "https:\N{FULLWIDTH SOLIDUS}\N{FULLWIDTH SOLIDUS}evil\N{FULLWIDTH SOLIDUS}.example.org",
        "https://evil\N{FULLWIDTH SOLIDUS}.example.org",
        "evil\N{FULLWIDTH SOLIDUS}.example.org",
        "https:\\\\evil\\.example.org",
        "https://evil\\.example.org",
        "https://api.example.org\\@evil/",
        # user names
        "https://ana@api.example.org/",
        "https://evil@x@api.example.org/",
        "https://api.example.org:80@evil/",
        "https://api.example.org?@evil/",
        "https://api.example.org#@evil/",
        # dots, ports, other characters
        "https://api.example.org./",
        "https://api.example.org:99999/",
        "https://api.example.org:http/",
        "https://evil%2f.example.org/",
        "https://evil\0.example.org/",
        "https://evil\t.example.org/",
        "https://\N{LATIN SMALL LETTER LONG S}.example.org/",
        "https://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example.org/",
        "https://api\N{IDEOGRAPHIC FULL STOP}example.org/",
        # several at once
        "https://api.example.org/x,https://evil/",
        "https://api.example.org/x,evil.com",
        "https://api.example.org/x https://evil/",
        # mail
        "mailto:ops@example.org",
        "evil.com/ops@example.org",
        "evil.com#ops@example.org",
        "a@evil@example.org",
        "ops@example.org.",
        "<a@evil> ops@example.org",
    ],
)
async def test_what_programs_may_read_differently_is_unknown(to: str) -> None:
    judged = await GateFixture().about(SENDER, LISTED, to=to)
    assert (judged.decision, judged.decided_by) == (Decision.DENY, "destination")
    tainted = await GateFixture().about(SENDER, GatePolicy(), at=scope(ANA, Taint.WEB), to=to)
    assert (tainted.decision, tainted.decided_by) == (Decision.ASK, "taint")


@pytest.mark.parametrize(
    "to",
    [
        "https://api.example.org",
        "HTTPS://API.example.org:8443/a?b=c@d#e",
        "https://api.example.org?b=c",
        "https://xn--bcher-kva.example.org/",
        "https://api.example.org/?list=1,2;3",
        "https://[2001:db8::1]:8080/x",
        "api.example.org",
        "ops+a.b@example.org, ops@example.org",
        "78",
        "#general",
        "discord:78",
        "#\N{CHEERING MEGAPHONE}-news",
    ],
)
async def test_what_all_programs_read_alike_is_matched(to: str) -> None:
    assert (await GateFixture().about(SENDER, LISTED, to=to)).decision is Decision.APPROVE


async def test_what_the_owner_wrote_word_for_word_is_known_whatever_it_is() -> None:
    for to in ("the big room", "owner/repo#12", "mailto:ops@example.org"):
        assert (await GateFixture().about(SENDER, GatePolicy(destinations=(to,)), to=to)).decision is Decision.APPROVE
        assert (await GateFixture().about(SENDER, LISTED, to=to)).decision is Decision.DENY or to == "the big room"


async def test_a_tool_that_does_not_say_where_it_sends_fits_no_pattern_but_the_one_for_everything() -> None:
    blind = spec("send", flow=DataFlow(effects=frozenset({Effect.SEND})))
    for listed in ((), ("discord:*",), ("*.example.org",)):
        assert (await GateFixture().about(blind, GatePolicy(destinations=listed))).decided_by == "destination"
    assert (await GateFixture().about(blind, GatePolicy(destinations=("*",)))).decision is Decision.APPROVE


# --- how programs read addresses -------------------------------------------------------------------------------------


def read_by_urlsplit(address: str) -> str:
    return urlsplit(address).hostname or ""


def read_by_httpx(address: str) -> str:
    return httpx2.URL(address).host


def read_by_yarl(address: str) -> str:
    return yarl.URL(address).host or ""


def read_by_urllib3(address: str) -> str:
    return parse_url(address).host or ""


PIECES = (
    *("evil.test", "api.example.org", ".example.org", "a", "443", "https", "%2f"),
    *(":", "//", "/", "@", "\\", "#", "?", "[", "]", "<", ".", ",", ";", " ", "\t", "\r", "\0"),
    *("\N{FULLWIDTH SOLIDUS}", "\N{IDEOGRAPHIC FULL STOP}"),
)


@pytest.mark.parametrize("read", [read_by_urlsplit, read_by_httpx, read_by_yarl, read_by_urllib3])
@settings(max_examples=400, derandomize=True)
@given(
    start=st.sampled_from(["", "https://", "https://api.example.org"]),
    pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=6),
)
async def test_no_program_is_led_to_another_host_than_the_one_that_was_matched(
    read: Callable[[str], str], start: str, pieces: list[str]
) -> None:
    to = start + "".join(pieces)
    policy = GatePolicy(destinations=("*.example.org", "*@*.example.org", "discord:*"))
    if (await GateFixture().about(SENDER, policy, to=to)).decision is not Decision.APPROVE:
        return
    for each in (to, *re.split(r"[\s,;]+", to)):
        # Some programs add the scheme themselves.
        for address in (each, f"https://{each}"):
            try:
                host = unquote(read(address)).strip()  # a blank around it is no part of a name
            except (ValueError, httpx2.InvalidURL, LocationParseError):
                continue
            # No name server knows a name with a separator in it; a program that splits there is looked at above.
            assert "evil" not in host or re.search(r"[\s,;]", host) or host.endswith(".example.org")
