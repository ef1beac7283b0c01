"""The small pure pieces: arguments, thinking between tags, opaque state."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.adapters.models.failures import FailureContext
from denizen.adapters.models.reply import ProviderState, TagSplitter, pack_state, parse_args, split_tagged, unpack_state
from denizen.ports.model import RAW_ARGS, TextDelta, ThinkingDelta

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


@given(
    secret=st.text(alphabet="abcXYZ012-_.", min_size=6, max_size=40),
    before=st.text(max_size=400),
    after=st.text(max_size=400),
)
def test_no_words_of_a_provider_show_a_secret(secret: str, before: str, after: str) -> None:
    target = FailureContext("p/m", "p", "http://p", "KEY", (secret,))
    shown = target.clean(f"{before}{secret}{after} Bearer {secret} {secret}")
    assert secret not in shown
    assert len(shown) <= 300


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect API key provided: sk-proj-ab12cd34", "Incorrect API key provided: ***"),
        ("key AIzaSyA1234567890 is blocked", "key *** is blocked"),
        ("Unknown parameter 'api_version'; see token_limit", "Unknown parameter 'api_version'; see token_limit"),
        ("two\n  lines", "two lines"),
    ],
)
def test_what_looks_like_a_key_is_not_shown_though_nobody_told(said: str, shown: str) -> None:
    assert FailureContext("p/m", "p", "http://p", "KEY", ()).clean(said) == shown


@given(OBJECTS)
def test_arguments_written_as_json_come_back_as_they_were(args: dict[str, Any]) -> None:
    assert parse_args(json.dumps(args)) == args
    assert parse_args(args) == args


@given(OBJECTS)
@pytest.mark.proves("S12")
def test_an_object_within_a_string_is_taken_out(args: dict[str, Any]) -> None:
    assert parse_args(json.dumps(json.dumps(args))) == args


@given(st.text())
@example('{"a": NaN}')
@example('{"a": "\\ud800"}')
@example('{"a": 1')
@example("[" * 100_000)
@example('"\\"x\\""')
@example("\ud800")
@pytest.mark.proves("S12")
def test_whatever_a_model_writes_gives_an_object_that_can_be_stored(written: str) -> None:
    args = parse_args(written)
    assert isinstance(args, dict)
    json.dumps(args, ensure_ascii=False, allow_nan=False).encode()
    if RAW_ARGS in args and written.isascii():
        assert args[RAW_ARGS] == written


@pytest.mark.parametrize("nothing", [None, "", "  ", "{}"])
def test_no_arguments_are_an_empty_object(nothing: str | None) -> None:
    assert parse_args(nothing) == {}


def test_an_object_that_is_no_json_is_kept_as_text() -> None:
    assert parse_args({"a": float("nan")}) == {RAW_ARGS: '{"a": NaN}'}


@given(
    text=st.one_of(st.text(), st.text(alphabet="<>/think \n"), st.text().map(lambda t: f"<think>{t}</think>\n{t}")),
    cuts=st.lists(st.integers(min_value=1, max_value=12)),
)
@example(text="<think>a</think", cuts=[1])
@example(text=" \n<thinking>a</thinking>  b </thinking>", cuts=[])
@example(text="<thin air>", cuts=[2])
def test_however_the_text_is_cut_the_thinking_is_the_same(text: str, cuts: list[int]) -> None:
    splitter, place, found = TagSplitter(), 0, list[TextDelta | ThinkingDelta]()
    for cut in cuts:
        found += splitter.feed(text[place : place + cut])
        place += cut
    found += [*splitter.feed(text[place:]), *splitter.finish()]
    thought = "".join(piece.text for piece in found if isinstance(piece, ThinkingDelta))
    said = "".join(piece.text for piece in found if isinstance(piece, TextDelta))
    assert (thought, said) == split_tagged(text)
    assert all(piece.text for piece in found) or not text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello.", ("", "Hello.")),
        ("<think>hm</think>\n\nYes.", ("hm", "Yes.")),
        ("\n<thinking>hm</thinking>Yes.", ("hm", "Yes.")),
        ("<think>never closed", ("never closed", "")),
        ("I <think> so</think>.", ("", "I <think> so</think>.")),
        ("<think></think>Yes.", ("", "Yes.")),
        ("  indented", ("", "  indented")),
        ("", ("", "")),
    ],
)
def test_only_tags_at_the_beginning_count(text: str, expected: tuple[str, str]) -> None:
    assert split_tagged(text) == expected


@given(
    home=st.text(min_size=1),
    vendor=st.none() | st.text(min_size=1),
    id=st.none() | st.text(min_size=1),
    signature=st.text(min_size=1),
    details=st.none() | st.dictionaries(st.text(), JSON, min_size=1, max_size=3),
    call=st.text(),
)
def test_state_survives_the_way_through_our_messages(**fields: Any) -> None:
    state = ProviderState(**fields)
    assert unpack_state(pack_state(state)) == state


def test_state_with_nothing_to_give_back_is_no_state() -> None:
    assert pack_state(ProviderState("home", vendor="anthropic")) == ""
    assert (
        pack_state(ProviderState("home", signature="s", details={"at": object()})) == '{"home":"home","signature":"s"}'
    )


@given(st.text() | JSON.map(json.dumps))
@example('{"home": 1}')
@example('{"home": "x", "details": [], "call": 7}')
def test_signatures_of_elsewhere_are_no_state_or_harmless(text: str) -> None:
    state = unpack_state(text)
    assert state is None or isinstance(state.home, str)
