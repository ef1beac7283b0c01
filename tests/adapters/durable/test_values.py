"""Values and errors as JSON text."""

from __future__ import annotations

import base64
import pickle

import pytest

from denizen.adapters.durable.run import RecordedValue, decode, decode_error, encode, encode_error
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, Unavailable


class LaterErrorKind(LimitExceeded):
    """A kind that a later version no longer has."""


def test_an_error_is_restored_with_its_family() -> None:
    again = decode_error(encode_error(LaterErrorKind("No.", code="budget", why="w", fix="f", amount=3)))
    assert type(again) is LimitExceeded
    assert (again.message, again.code, again.why, again.fix) == ("No.", "budget", "w", "f")


def test_the_time_to_try_again_is_restored() -> None:
    again = decode_error(encode_error(Unavailable("No.", retry_after_s=1.5)))
    assert isinstance(again, Unavailable)
    assert again.retry_after_s == 1.5
    never = decode_error(encode_error(Unavailable("No.")))
    assert isinstance(never, Unavailable)
    assert never.retry_after_s is None


def test_an_error_of_no_family_is_restored_as_the_base_class() -> None:
    assert type(decode_error(encode_error(DenizenError("No.")))) is DenizenError


def test_recorded_text_is_not_written_a_second_time() -> None:
    assert decode(encode({"args": [RecordedValue('{"a":1}')]})) == {"args": [{"a": 1}]}


@pytest.mark.parametrize("value", [{1, 2}, float("inf"), object(), b"bytes"])
def test_what_is_not_json_is_refused_with_the_reason(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        encode({"value": value})
    assert caught.value.code == "not_json"
    assert caught.value.why


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidInput):
        encode(loop)


def test_a_pickle_in_the_database_is_not_read() -> None:
    from dbos import _serialization

    from denizen.adapters.durable.log import JsonSerializer, forbid_pickle

    planted = base64.b64encode(pickle.dumps({"a": 1})).decode()
    forbid_pickle()
    with pytest.raises(TypeError, match="not read"):
        _serialization.deserialize_value(planted, "py_pickle", JsonSerializer())
