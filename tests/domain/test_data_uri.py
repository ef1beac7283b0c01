"""Data URIs and result markers leave a text; what they carried is kept, and the words around them stay."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from denizen.domain.data_uri import (
    DataUri,
    ExtractedUris,
    MarkerFilter,
    StrippedText,
    describe_data_uris,
    extract_data_uris,
    strip_markers,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
URI = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><g transform="rotate(45)"/></svg>'
FRAME = "🖼️"


@pytest.mark.proves("L9")
@pytest.mark.parametrize(
    ("text", "rest", "name"),
    [
        (f"Look:\n\n![a red cat]({URI})\n\nNice?", "Look:\n\na red cat\n\nNice?", "a-red-cat.png"),
        (f"Look:\n\n![]({URI})\n\nNice?", "Look:\n\nNice?", "image.png"),
        (f"Look: ![image]({URI}) nice", "Look: nice", "image.png"),
        (f'![Generated image 2](<{URI}> "A title")', "", "image.png"),
        (f"[Get it]({URI}) now", "Get it now", "get-it.png"),
        (f'<p>A <img class="x" src="{URI}" alt="Zoë &amp; me"/></p>', "<p>A Zoë & me</p>", "zoe-me.png"),
        (f"<IMG SRC='{URI}'>", "", "image.png"),
        (f"<img src={URI}>", "", "image.png"),
        (f"It is {URI}.", "It is .", "image.png"),
        (f'{{"url": "{URI}"}}', '{"url": ""}', "image.png"),
        (f"```css\nurl({URI})\n```", "```css\nurl()\n```", "image.png"),
        (f"one\n{URI}\ntwo", "one\ntwo", "image.png"),
        (f"({URI})", "()", "image.png"),
        (f"![cut off]({URI}", "cut off", "cut-off.png"),
        (f"![{URI}]({URI})", "", "image.png"),
        (f'<img src="{URI}', "", "image.png"),
    ],
)
def test_a_data_uri_leaves_the_text_in_whatever_it_stands_and_its_words_stay(text: str, rest: str, name: str) -> None:
    assert extract_data_uris(text) == ExtractedUris(rest, (DataUri("image/png", PNG, name),))


@pytest.mark.parametrize(
    ("uri", "media_type", "data"),
    [
        ("data:text/plain;charset=utf-8;base64,aGk=", "text/plain", b"hi"),
        ("data:text/plain;base64,aGk", "text/plain", b"hi"),
        ("data:text/plain;base64,aGk%3D", "text/plain", b"hi"),
        ("DATA:Text/Plain;BASE64,aGk=", "text/plain", b"hi"),
        ("data:;base64,aGk=", "text/plain", b"hi"),
        ("data:application/octet-stream;base64,-_-_", "application/octet-stream", b"\xfb\xff\xbf"),
        ("data:application/octet-stream;base64,+/+/", "application/octet-stream", b"\xfb\xff\xbf"),
        ("data:text/csv,a%2Cb%0A1,2", "text/csv", b"a,b\n1,2"),
        (f"data:image/svg+xml,{quote(SVG)}", "image/svg+xml", SVG.encode()),
        (f"data:image/svg+xml;utf8,{SVG}", "image/svg+xml", SVG.encode()),
        ("data:image/png;base64,AAAA\n  BBBB\n", "image/png", base64.b64decode("AAAABBBB")),
    ],
)
def test_each_way_to_write_a_payload_is_decoded(uri: str, media_type: str, data: bytes) -> None:
    found = extract_data_uris(f"Here ![the thing]({uri}) is")
    assert (found.text, [(each.media_type, each.data) for each in found.uris]) == (
        "Here the thing is",
        [(media_type, data)],
    )


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_payload_in_quotes_may_hold_spaces(quote: str) -> None:
    svg = SVG.replace('"', "`")
    found = extract_data_uris(f"url({quote}data:image/svg+xml;utf8,{svg}{quote}) it is")
    assert (found.text, [each.data for each in found.uris]) == (f"url({quote}{quote}) it is", [svg.encode()])


@pytest.mark.parametrize("payload", ["A", "AAAA=AAAA", "%%%", "...", "iVBOR*", "é", ""])
def test_a_malformed_payload_leaves_the_text_too_and_yields_nothing(payload: str) -> None:
    assert extract_data_uris(f"So ![a dog](data:image/png;base64,{payload}) it is") == ExtractedUris(
        "So a dog it is", malformed=1
    )


def test_a_payload_over_the_bound_is_dropped_and_counted() -> None:
    large = f"data:image/gif;base64,{base64.b64encode(b'x' * 101).decode()}"
    text = f"![one]({large}) {large} ![two](data:image/gif;base64,eHh4)"
    assert extract_data_uris(text, max_bytes=100) == ExtractedUris(
        "one two", (DataUri("image/gif", b"xxx", "two.gif"),), 2
    )
    assert len(extract_data_uris(text, max_bytes=101).uris) == 3


def test_file_names_are_unique_safe_and_end_as_their_type_says() -> None:
    svg = f"data:image/svg+xml,{quote('<svg/>')}"
    text = (
        f"![]({URI})![]({URI})![../../Etc/p w]({URI})![cat.jpg](data:image/jpeg;base64,AAAA)![]({svg})[a](data:x/y,z)"
    )
    names = [each.name for each in extract_data_uris(text).uris]
    assert names == ["image.png", "image-2.png", "etc-p-w.png", "cat.jpg", "image.svg"]
    assert extract_data_uris("[x](data:application/pdf;base64,AAAA)").uris[0].name == "x.pdf"
    assert extract_data_uris("[](data:application/x-very.odd+type;base64,AAAA)").uris[0].name == "file.xveryodd"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A data URI looks like data:image/png;base64,... and so on.",
        "the data: image/png, I mean",
        "metadata:image/png;base64,AAAA",
        "data:foo,bar and data:,x",
        "![cat](https://example.org/data:image.png)",
        '<img src="https://example.org/cat.png" alt="a cat">',
        "[text](/path) `code`  two  spaces \n\n\n end ",
        "noncharacter \ufdd0 stays",
    ],
)
def test_a_text_without_data_uris_stays_as_it_is(text: str) -> None:
    assert extract_data_uris(text) == ExtractedUris(text)
    assert strip_markers(text) == StrippedText(text)


@pytest.mark.proves("L7")
@pytest.mark.parametrize(
    ("text", "short"),
    [
        (f"What is {URI}?", f"What is [image/png, {len(PNG)} bytes]?"),
        (f"see ![a red cat]({URI}) there", f"see a red cat [image/png, {len(PNG)} bytes] there"),
        ("so data:;base64,aGk= says", "so [text/plain, 2 bytes] says"),
        ("cut off: data:image/png;base64,AAAAA", "cut off: [image/png, unreadable]"),
        ("nothing data: here", "nothing data: here"),
    ],
)
def test_a_data_uri_is_told_by_media_type_and_size(text: str, short: str) -> None:
    assert describe_data_uris(text) == short
    assert describe_data_uris(short) == short


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=40),
            st.sampled_from(["![{0}]({1})", "[{0}]({1})", "<img alt='{0}' src='{1}'>", "{1}", '"{1}"', "({1})"]),
            st.sampled_from(["", "a cat", "image"]),
            st.sampled_from([" ", "\n", "\n\n", " and ", ". "]),
        ),
        max_size=6,
    )
)
def test_every_payload_comes_back_and_no_data_uri_stays(parts: list[tuple[bytes, str, str, str]]) -> None:
    text = "Start "
    for data, form, alt, after in parts:
        text += form.format(alt, f"data:image/png;base64,{base64.b64encode(data).decode()}") + after
    found = extract_data_uris(text)
    assert [each.data for each in found.uris] == [data for data, *_ in parts]
    assert len({each.name for each in found.uris}) == len(found.uris)
    assert "base64" not in found.text
    assert found.text.count("a cat") == sum("{0}" in form and alt == "a cat" for _, form, alt, _ in parts)


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from(
            [
                "data:",
                "image/png",
                ";base64",
                ",",
                "AAAA",
                "![",
                "](",
                ")",
                "<img src=",
                '"',
                "'",
                ">",
                " ",
                "\n",
                "b",
                "<",
            ]
        ),
        max_size=40,
    )
)
def test_any_scraps_of_data_uris_are_survived_and_a_second_look_finds_nothing_in_place_of_the_first(
    pieces: list[str],
) -> None:
    found = extract_data_uris("".join(pieces))
    assert all(each.data and each.name for each in found.uris)
    assert "data:image/png;base64,AAAA" not in found.text


@pytest.mark.proves("L9")
@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (FRAME + 'SPRITE_RESULT🖼️{"a": {"b": "}"}}', ""),
        ("Here it is!\n\n" + FRAME + 'SPRITE_RESULT🖼️{"a": {"b": "}"}}\n\nEnjoy.', "Here it is!\n\nEnjoy."),
        ("Here 🖼️X🖼️ " + '{\n  "a": {"b": "}"}\n} it is', "Here it is"),
        ("Here\n🖼️XAI_IMAGE2🖼️\n" + '{"a": {"b": "}"}}', "Here\n"),
        ("🖼SPRITE_RESULT🖼" + '{"a": {"b": "}"}}', ""),
        ("🖼️A🖼️B🖼️" + '{"a": {"b": "}"}}', ""),
    ],
)
def test_a_marker_and_its_object_leave_the_text(text: str, rest: str) -> None:
    assert strip_markers(text) == StrippedText(rest, ({"a": {"b": "}"}},))


@pytest.mark.proves("L9")
def test_several_markers_give_their_objects_in_order() -> None:
    text = "".join(f"Line {n} 🖼️SPRITE_RESULT🖼️{json.dumps({'n': n, 'url': URI})}\n" for n in range(3))
    assert strip_markers(text) == StrippedText(
        "Line 0\nLine 1\nLine 2\n", tuple({"n": n, "url": URI} for n in range(3))
    )


@pytest.mark.proves("L9")
@pytest.mark.parametrize(
    "behind", ['{"a": "cut o', "{", '{"a": NaN}', '{"a":' * 100_000, "{'a': 1}", '{"n": ' + "1" * 5000 + "}"]
)
def test_behind_a_marker_what_is_not_json_goes_with_its_line(behind: str) -> None:
    assert strip_markers(f"Here:\n🖼️SPRITE_RESULT🖼️{behind}\nDone") == StrippedText("Here:\nDone")


def test_a_frame_that_is_no_marker_stays() -> None:
    text = "🖼️ A picture 🖼️ and {1: 2} 🖼️lower🖼️"
    assert strip_markers(text) == StrippedText(text)
    assert strip_markers("only 🖼️NAME🖼️ here") == StrippedText("only here")


@pytest.mark.proves("L9")
@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from([FRAME, "🖼", "A", "SPRITE_RESULT", "{}", '{"a": 1}', "{", " ", "\n", "b", "."]), max_size=25
    )
)
def test_no_marker_reaches_a_person(pieces: list[str]) -> None:
    stripped = strip_markers("".join(pieces))
    assert strip_markers(stripped.text) == StrippedText(stripped.text)


_PIECES = st.lists(
    st.sampled_from([FRAME, "🖼", "A", "SPRITE_RESULT", "🖼️A🖼️", "{}", '{"a": 1}', '{"a": [{', "{", " ", "\n", "b", "."]),
    max_size=25,
)


@pytest.mark.proves("L9")
@settings(max_examples=300)
@given(_PIECES, st.integers(1, 7))
@example(["Here\n\n🖼️A🖼️", '{"a": 1}', "\n\nEnjoy"], 3)
@example(["Line 0 🖼️A🖼️", "{}", "\nLine 1 🖼️A🖼️", '{"a', '": 1} b'], 1)
def test_a_text_that_comes_in_pieces_loses_the_same_markers(pieces: list[str], size: int) -> None:
    text, markers = "".join(pieces), MarkerFilter()
    shown = "".join(markers.feed(text[at : at + size]) for at in range(0, len(text), size)) + markers.finish()
    assert "".join(shown.split()) == "".join(strip_markers(text).text.split())


def test_words_around_a_marker_stay_apart_when_it_comes_in_pieces() -> None:
    for text in ("Line 0 🖼️A🖼️{}\nLine 1", "a🖼️A🖼️{}b", "a 🖼️A🖼️{} b", "Here it is!\n\n🖼️A🖼️{}\n\nEnjoy."):
        markers = MarkerFilter()
        shown = "".join(map(markers.feed, text)) + markers.finish()
        assert shown.split() == strip_markers(text).text.split()
        assert shown.count("\n") == strip_markers(text).text.count("\n")


def test_text_before_what_may_become_a_marker_is_shown_at_once() -> None:
    markers = MarkerFilter()
    shown = [markers.feed(piece) for piece in ("See ", "🖼️ this. 🖼️", "RES", "ULT🖼️", '{"a": ', "1} ", "Done")]
    assert shown == ["See ", "🖼️ this. ", "", "", "", "", "Done"]


@pytest.mark.parametrize(
    "unit",
    [
        "data:",
        "data:image/png,",
        "data:;a=",
        "data:;a=b;base64,",
        "![",
        "![a](",
        "![a](data:image/png;base64,",
        '<img "',
        "<img '\"",
        '"data:image/png,',
        "'data:image/png,\"data:image/png,x",
        "<img ",
        "a=",
        "A",
        " ",
        "data:image/png;base64,....",
        "![a](data:image/svg+xml,<svg ",
        "[a](data:image/png,((",
        f"![]({URI}) ",
        "🖼️A🖼️",
        "🖼️A🖼️{",
        '🖼️A🖼️{"a":"',
        "🖼️A",
    ],
)
def test_long_and_hostile_texts_are_read_too(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    assert len(extract_data_uris(text).text) <= len(text)
    assert len(strip_markers(text).text) <= len(text)
    assert extract_data_uris(f"<img {text}").text is not None


def test_a_payload_of_megabytes_is_read() -> None:
    data = bytes(range(256)) * 16_384
    uri = f"data:video/mp4;base64,{base64.b64encode(data).decode()}"
    assert extract_data_uris(f"See {uri} there").uris == (DataUri("video/mp4", data, "video.mp4"),)
