"""Secret values: where they come from and how they are kept out of texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.app.home.secrets import FileSecrets, SecretRef, load_secrets, parse_secrets, put_secret
from denizen.domain.errors import InvalidInput, NeedsAttention

FILE = Path("secrets.env")
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=0x24F), min_size=1, max_size=30).filter(str.isprintable)


def secrets(**variables: str) -> FileSecrets:
    return FileSecrets(Path("/home"), variables, frozenset()).knowing(variables)


def test_the_environment_comes_before_the_file(tmp_path: Path):
    (tmp_path / "secrets.env").write_text("# keys\n\nONE=file\nTWO = 'quoted # value' \nTHREE=a=b\n", encoding="utf-8")
    found = load_secrets(tmp_path, {"ONE": "environment", "TWO": ""})
    assert [found.get(name) for name in ("ONE", "TWO", "THREE")] == ["environment", "quoted # value", "a=b"]


def test_a_missing_secret_is_asked_for_by_name_with_the_file_to_put_it_in(tmp_path: Path):
    found = load_secrets(tmp_path, {"EMPTY_KEY": ""})
    assert found.find("EMPTY_KEY") is None
    with pytest.raises(NeedsAttention) as caught:
        found.get("EMPTY_KEY")
    assert "EMPTY_KEY" in caught.value.message
    assert str(tmp_path / "secrets.env") in caught.value.fix


def test_an_optional_reference_without_a_value_means_no_secret():
    found = secrets(SET="value")
    assert found.resolve(None) == ""
    assert found.resolve(SecretRef("UNSET", optional=True)) == ""
    assert found.resolve(SecretRef("SET", optional=True)) == "value"
    with pytest.raises(NeedsAttention):
        found.resolve(SecretRef("UNSET"))


def test_a_line_that_is_no_pair_is_refused_with_its_number_and_without_its_text(tmp_path: Path):
    (tmp_path / "secrets.env").write_text("GOOD=1\nsk-pasted-without-a-name\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        load_secrets(tmp_path, {})
    assert "secrets.env:2" in caught.value.message
    assert "pasted" not in caught.value.explain()


def test_a_secrets_file_that_is_not_text_is_refused(tmp_path: Path):
    (tmp_path / "secrets.env").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_secrets(tmp_path, {})


@pytest.mark.parametrize(("mode", "exposed"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_file_that_others_can_read_is_noticed(tmp_path: Path, mode: int, exposed: bool):
    file = tmp_path / "secrets.env"
    file.write_text("A=1\n", encoding="utf-8")
    file.chmod(mode)
    assert load_secrets(tmp_path, {}).readable_by_others is exposed


def test_masking_takes_out_values_also_where_they_are_escaped():
    found = secrets(KEY='pass"word/ü', SHORT="abc")
    masked = found.mask('plain pass"word/ü, json pass\\"word/ü, pass\\"word/\\u00fc, url pass%22word%2F%C3%BC, abc')
    assert masked == "plain ***, json ***, ***, url ***, abc"


def test_overlapping_values_leave_nothing_between_them():
    assert secrets(ONE="abcdefgh", TWO="efghijkl").mask("<abcdefghijkl>") == "<***>"


def test_variables_of_the_environment_with_telling_names_are_masked_and_others_are_not(tmp_path: Path):
    found = load_secrets(tmp_path, {"OTHER_API_KEY": "key-of-another-program", "EDITOR": "emacs-nox"})
    assert found.mask("key-of-another-program in emacs-nox") == "*** in emacs-nox"


def test_a_hint_shows_four_characters_at_each_end_of_a_long_value_and_nothing_of_a_short_one():
    found = secrets(LONG="sk-ant-0123456789", SHORT="sk-ant-012345")
    assert [found.hint(name) for name in ("LONG", "SHORT", "UNSET")] == ["sk-a...6789", "***", ""]


@given(st.lists(VALUES, min_size=1, max_size=4), st.text(max_size=20))
def test_no_known_value_survives_masking(values: list[str], filler: str):
    known = {value for value in values if len(value) >= 6 and "*" not in value}
    masked = secrets(**{f"V{index}": value for index, value in enumerate(values)}).mask(filler.join([*values, ""]))
    assert not [value for value in known if value in masked]


@given(VALUES)
def test_repr_holds_no_value(value: str):
    found = secrets(KEY=f"planted-{value}")
    assert "planted-" not in repr(found)


@given(st.one_of(VALUES, VALUES.map(lambda text: f" {text} "), VALUES.map(lambda text: f'"{text}"')))
def test_a_stored_secret_is_read_back_as_it_was(value: str):
    text = put_secret("# mine\nOTHER=1\nKEY=old\n", "KEY", value)
    assert parse_secrets(text, FILE) == {"OTHER": "1", "KEY": value}
    assert text.startswith("# mine\nOTHER=1\n")


@pytest.mark.parametrize(("name", "value"), [("KEY", ""), ("KEY", "two\nlines"), ("A B", "x"), ("", "x")])
def test_what_does_not_fit_on_a_line_is_not_stored(name: str, value: str):
    with pytest.raises(InvalidInput):
        put_secret("", name, value)
