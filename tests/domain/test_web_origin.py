"""Origins that a browser may reach."""

from __future__ import annotations

import pytest

from denizen.domain.errors import InvalidInput
from denizen.domain.web_origin import WebOrigin, parse_origin


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("https://docs.example", "docs.example", 443),
        ("http://DOCS.example./", "docs.example", 80),
        ("http://10.0.0.5:8080", "10.0.0.5", 8080),
        ("https://*.example", "*.example", 443),
        ("http://[::1]:80", "::1", 80),
    ],
)
def test_an_origin_is_a_host_at_a_port(text: str, host: str, port: int) -> None:
    assert parse_origin(text) == WebOrigin(host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", "docs.example", "ftp://a.example", "https://", "https://*", "https://*.", "https://a.*.example"),
        *(
            "https://a.example/path",
            "https://a.example?x",
            "https://u@a.example",
            "https://a.example:0x",
            "http://[::1",
        ),
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no origin"):
        parse_origin(text)


def test_a_star_stands_for_all_names_below_and_nothing_else() -> None:
    all_below = parse_origin("https://*.docs.example")
    assert all_below.admits("a.docs.example", 443)
    assert all_below.admits("A.B.docs.example.", 443)
    others = [("docs.example", 443), ("evildocs.example", 443), ("a.docs.example", 80), ("a.docs.example.evil", 443)]
    assert not [each for each in others if all_below.admits(*each)]
