"""From bytes to text."""

import encodings.aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.fetch.http import decode_text, has_text, parse_media_type

CHARSETS = sorted({*encodings.aliases.aliases, *encodings.aliases.aliases.values(), "idna", "punycode", "undefined"})


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        ("Grüße".encode(), "text/plain; charset=utf-8", "Grüße"),
        ("Grüße".encode("latin-1"), 'text/plain; charset="ISO-8859-1"', "Grüße"),
        ("Grüße".encode(), "text/plain", "Grüße"),
        ("Grüße".encode("cp1252"), "text/plain", "Grüße"),
        ("Grüße".encode("utf-16"), "text/plain", "Grüße"),
        ("\ufeffGrüße".encode(), "", "Grüße"),
        (b'<html><meta charset="cp1251">' + "Привет".encode("cp1251"), "text/html", "Привет"),
        (b"<meta http-equiv=x content='text/html; charset=koi8-r'>" + "Мир".encode("koi8-r"), "text/html", "Мир"),
        ("Grüße".encode(), "text/plain; charset=unheard-of", "Grüße"),
        ("Grüße".encode()[:-2], "text/plain", "Grü"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "application/octet-stream", ""),
        (b"", "", ""),
    ],
)
def test_text_is_read_by_mark_header_page_or_guess(data: bytes, content_type: str, text: str) -> None:
    assert decode_text(data, content_type).endswith(text)
    assert bool(decode_text(data, content_type)) is bool(text)


@given(st.binary(max_size=200), st.sampled_from(CHARSETS))
def test_no_charset_that_a_server_names_makes_reading_fail(data: bytes, charset: str) -> None:
    assert isinstance(decode_text(data, f"text/html; charset={charset}"), str)
    assert isinstance(decode_text(b"<meta charset=" + charset.encode() + b">" + data, ""), str)


def test_media_types_are_plain() -> None:
    assert parse_media_type("Text/HTML ; charset=x") == "text/html"
    assert parse_media_type("") == ""
    assert not has_text("image/png")
    assert has_text("image/svg+xml")
    assert has_text("")
