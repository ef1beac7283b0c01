"""What texts of any script are found by, and what questions look for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.russian import stem_russian
from denizen.domain.terms import has_german, index_terms, query_terms
from denizen.domain.words import WORD_CHARS, make_excerpt, split_words
from tests.contracts.store.languages import SCRIPTS


@pytest.mark.parametrize(
    "text", ["Members pay contributions, or die in documentation.", "L'été, les élèves étudient", "νέα βιβλία"]
)
def test_words_of_english_and_of_most_languages_are_their_own_terms(text: str) -> None:
    assert index_terms(text) == query_terms(text) == split_words(text)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_question_has_the_terms_of_its_text_and_not_those_of_another(script: str) -> None:
    text, asked, other = SCRIPTS[script]
    wanted = set(query_terms(asked))
    # Databases stem what is written in Latin letters.
    assert wanted and all(any(term.startswith(word) for term in index_terms(text)) for word in wanted)
    assert not wanted.issubset(index_terms(other))


def test_runs_without_spaces_are_cut_into_two_or_three_letters_and_single_ones_are_found() -> None:
    assert query_terms("Python教程怎么") == ["python", "教程", "程怎", "怎么"]
    assert index_terms("猫が") == ["猫が", "猫", "が"]
    assert query_terms("猫") == ["猫"]
    assert query_terms("ห้องสมุด") == ["หอง", "องส", "งสม", "สมด"]


def test_a_sentence_without_spaces_is_indexed_to_its_end() -> None:
    assert "图书" in index_terms("很" * 3 * WORD_CHARS + "图书馆")


def test_parts_of_compounds_are_terms_of_german_texts_only() -> None:
    german = "Der Mitgliedsbeitrag ist fällig."
    assert {"mitgliedsbeitrag", "mitglied", "beitrag"} <= set(index_terms(german))
    assert index_terms("The documentation of the configuration") == [
        "the",
        "documentation",
        "of",
        "the",
        "configuration",
    ]
    assert "beitrag" not in index_terms(german, is_german=False)
    assert {"jahres", "jahre", "beitrag"} <= set(index_terms("Jahresbeitrag", is_german=True))


def test_german_is_known_by_its_small_words_and_not_by_those_of_other_languages() -> None:
    assert has_german(split_words("Wo ist der Schlüssel?"))
    assert has_german(split_words("Der Mitgliedsbeitrag: fünfzig Euro, im Januar fällig, Familien die Hälfte"))
    for text in ("The die is cast in the MIT licence", "Wat kost een kaartje", "Où est la clé de la porte", ""):
        assert not has_german(split_words(text)), text


@pytest.mark.parametrize(
    "forms",
    [
        "книга книги книгу книгой книгами книге",
        "взнос взносы взносов взносами",
        "новый новая новое новые нового новым",
        "читать читает читал читали читающий",
        "открывается открываться",
    ],
)
def test_forms_of_a_russian_word_have_one_stem(forms: str) -> None:
    assert len({stem_russian(word) for word in split_words(forms)}) == 1


def test_different_russian_words_keep_different_stems() -> None:
    words = split_words("книга взнос библиотека членский суббота день час")
    assert len({stem_russian(word) for word in words}) == len(words)
    assert stem_russian("в") == "в"


def test_an_excerpt_shows_the_place_within_a_sentence_without_spaces() -> None:
    text = "很" * 400 + "图书馆星期一关门" + "好" * 400
    assert "图书馆" in make_excerpt(text, query_terms("图书馆"))


@given(st.text(max_size=60))
def test_terms_are_short_words_of_letters_and_digits_and_every_question_finds_its_own_text(text: str) -> None:
    indexed = index_terms(text)
    assert all(term and len(term) <= WORD_CHARS and split_words(term) == [term] for term in indexed)
    assert set(query_terms(text)) <= set(indexed)
