"""Whom a text on GitHub calls, and the text without that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.github.markdown import defuse, list_mentions, strip_mentions


@pytest.mark.parametrize(
    "text",
    [
        "@denizen why?",
        "Why, @Denizen?",
        "@DENIZEN[bot] why?",
        "(@denizen) why?",
        "Well,\n@denizen: why?",
        "**@denizen** why?",
        "> quoted\n\n@denizen why?",
        "`code` and @denizen.",
    ],
)
def test_a_name_behind_an_at_calls(text: str) -> None:
    assert list_mentions(text) == ("denizen",)


@pytest.mark.parametrize(
    "text",
    [
        "`@denizen`",
        "```\n@denizen\n```",
        "~~~py\n@denizen\n~~~",
        "> @denizen said so",
        "<!-- @denizen -->",
        "mail me@denizen",
        "https://example.org/@denizen",
        "@denizen-bot",
        "@denizens",
        "@denizen_2",
        "@denizen/team",
        "\\ @ denizen",
        "@@denizen",
        "",
    ],
)
def test_code_quotations_comments_addresses_and_longer_names_do_not_call(text: str) -> None:
    assert "denizen" not in list_mentions(text)


def test_several_are_listed_in_their_order_each_once() -> None:
    assert list_mentions("@ben and @Ana and @ben") == ("ben", "ana")


@pytest.mark.proves("S33-context")
def test_the_question_has_no_mentions_and_keeps_the_names_of_others() -> None:
    text = "@denizen, does @ana's `@patch` work?\n<!-- a template says @x -->"
    assert strip_mentions(text, "denizen") == ", does ana's `@patch` work?"
    assert strip_mentions("@Denizen why?", "denizen") == "why?"
    assert strip_mentions("@denizen", "denizen") == ""


def test_what_an_agent_writes_calls_nobody() -> None:
    said = defuse("@ana and @harbour/crew: see `@x` and\n```\n@y\n```\nme@z.org")
    assert said == "`@ana` and `@harbour/crew`: see `@x` and\n```\n@y\n```\nme@z.org"


def test_a_comment_that_begins_in_a_quotation_hides_what_stands_below() -> None:
    assert list_mentions("> <!-- see\n@denizen\n--> @ana") == ("ana",)


def test_many_mentions_among_many_quotations_take_no_more_than_their_length() -> None:
    text = "@a\n>\n`@b`\n" * 100_000  # with a look at each quotation for each mention this would never end
    assert list_mentions(text) == ("a",)
    assert defuse(text) == text.replace("@a", "`@a`")


@given(st.text(alphabet="@ab/`\n >-[]", max_size=60))
def test_defused_texts_never_call_anybody(text: str) -> None:
    said = defuse(text)
    assert list_mentions(said) == ()
    assert defuse(said) == said
