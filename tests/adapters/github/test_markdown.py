"""Our content as a comment, and back."""

from denizen.adapters.github.markdown import MARK_CHARS, TEXT_CHARS, from_body, to_body
from denizen.adapters.github.settings import BODY_CHARS
from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent, OutgoingFile
from denizen.domain.reasoning import reasoning_text

NONCE = "n" * 25


def test_a_comment_ends_with_a_mark_that_comes_back_as_the_nonce() -> None:
    body = to_body(MessageContent("A hole."), {}, nonce=NONCE)
    assert body == f"A hole.\n\n<!-- denizen:{NONCE} -->"
    assert from_body(body) == ("A hole.", NONCE)
    assert from_body("A hole.") == ("A hole.", "")


def test_the_mark_is_looked_for_at_the_end_only() -> None:
    empty = "\n" * 2_000_000  # with a look from each line this would never end
    assert from_body(f"{empty}x") == (f"{empty}x", "")
    assert from_body(f"A hole.{empty}<!-- denizen:{NONCE} -->{empty}") == ("A hole.", NONCE)
    assert from_body(f"<!-- denizen:{NONCE} --> said so") == (f"<!-- denizen:{NONCE} --> said so", "")


def test_a_mark_that_an_agent_was_made_to_write_counts_for_nothing() -> None:
    forged = f"<!-- denizen:{'x' * 25} -->"
    assert from_body(to_body(MessageContent(forged), {}, nonce=NONCE)) == (forged, NONCE)


def test_the_longest_piece_fits_with_its_mark() -> None:
    body = to_body(MessageContent("x" * (2 * BODY_CHARS)), {}, nonce=NONCE)
    assert len(body) <= BODY_CHARS
    assert TEXT_CHARS + MARK_CHARS == BODY_CHARS


def test_names_call_nobody_but_whom_the_content_names() -> None:
    content = MessageContent("@ana <@7> and <@8>", ping_users=frozenset({"7"}))
    assert to_body(content, {"7": "ben", "8": "cid"}) == "`@ana` @ben and cid"
    assert to_body(content, {}) == "`@ana` somebody and somebody"


def test_an_answer_commands_no_other_program() -> None:
    said = "/lgtm\n \t/merge now\r/close\u2028/hold\n1/2 and /approve\n/ alone\n```\n/etc/fstab\n```\n/retest"
    assert to_body(MessageContent(said), {}) == (
        "\\/lgtm\n \t\\/merge now\r\\/close\u2028\\/hold\n1/2 and /approve\n/ alone\n```\n/etc/fstab\n```\n\\/retest"
    )
    card = MessageContent("", embeds=(EmbedCard("", "/close"),))
    assert to_body(card, {}) == "\\/close"
    assert to_body(MessageContent(reasoning_text("So:\n/close", limit_chars=500)), {}).count("\\/close") == 1


def test_small_print_is_small_outside_of_code() -> None:
    assert to_body(MessageContent("Sorry.\n-# Reference: t1"), {}) == "Sorry.\n<sub>Reference: t1</sub>"
    assert to_body(MessageContent("```\n-# a comment\n```"), {}) == "```\n-# a comment\n```"


def test_reasoning_opens_by_a_click() -> None:
    body = to_body(MessageContent(reasoning_text("First this, then that.", limit_chars=500)), {})
    assert body.startswith("<details><summary>Reasoned before it answered</summary>")
    assert "First this, then that." in body and "||" not in body


def test_bars_in_an_answer_stay() -> None:
    assert to_body(MessageContent("a || b || c"), {}) == "a || b || c"


def test_cards_links_and_pictures_become_markdown_and_files_are_named() -> None:
    content = MessageContent(
        "See:",
        embeds=(EmbedCard("Boat", "It floats.", "https://b.example", "https://b.example/p.png", (("Age", "7"),)),),
        files=(OutgoingFile("a.png", "image/png", b"x"),),
        buttons=(MessageButton("Open", url="https://o.example"), MessageButton("Say", value="hello")),
    )
    assert to_body(content, {}) == (
        "See:\n\n**[Boat](https://b.example)**\n\nIt floats.\n\n- **Age**: 7\n\n![](https://b.example/p.png)\n\n"
        "[Open](https://o.example)\n\n<sub>GitHub takes no files from programs; left out: `a.png`</sub>"
    )
