from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.models.embedded.gguf import is_gguf, load_gguf_header
from denizen.domain.errors import InvalidInput
from tests.adapters.models.embedded.samples import gguf_header

_METADATA: dict[str, str | int | bool | list[str] | list[int]] = {
    "general.architecture": "qwen2",
    "tokens": ["a", "bc", ""],
    "types": [1, -2],
    "qwen2.context_length": 32768,
    "tokenizer.add_bos": False,
    "tokenizer.chat_template": "{{ 'äöü' }}",
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gguf") / "model.gguf"


def test_scalars_are_read_and_arrays_are_stepped_over(scratch: Path) -> None:
    scratch.write_bytes(gguf_header(_METADATA))

    header = load_gguf_header(scratch)

    assert dict(header.metadata) == {key: value for key, value in _METADATA.items() if not isinstance(value, list)}


def test_a_value_of_another_type_is_not_found(scratch: Path) -> None:
    scratch.write_bytes(gguf_header(_METADATA))

    header = load_gguf_header(scratch)

    assert header.find_text("qwen2.context_length") is None
    assert header.find_number("general.architecture") is None
    assert header.find_number("tokenizer.add_bos") is None
    assert header.find_text("nothing") is None


def test_the_weights_of_the_small_model_tell_their_template(small_weights: Path) -> None:
    header = load_gguf_header(small_weights)

    assert header.find_text("general.architecture") == "llama"
    assert header.find_number("llama.context_length") == 8192
    assert "<|im_start|>" in (header.find_text("tokenizer.chat_template") or "")


def test_a_header_cut_anywhere_is_invalid_input(scratch: Path) -> None:
    whole = gguf_header(_METADATA)
    for length in range(len(whole)):
        scratch.write_bytes(whole[:length])
        with pytest.raises(InvalidInput):
            load_gguf_header(scratch)


@given(st.binary(max_size=200))
def test_garbage_after_the_magic_never_breaks_the_reader(scratch: Path, garbage: bytes) -> None:
    scratch.write_bytes(b"GGUF\x03\x00\x00\x00" + garbage)
    with suppress(InvalidInput):
        load_gguf_header(scratch)


def test_only_the_first_bytes_make_a_file_gguf(scratch: Path) -> None:
    scratch.write_bytes(b"GGUF and more")
    assert is_gguf(scratch)
    scratch.write_bytes(b"PK GGUF")
    assert not is_gguf(scratch)
