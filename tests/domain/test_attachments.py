from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.attachments import MAX_IMAGES, MAX_LINKS, collect_extras, extract_attachments
from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent

PIXEL = base64.b64encode(b"pixel").decode()
DATA_URI = f"data:image/png;base64,{PIXEL}"

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.just(DATA_URI)
    | st.just("https://a.example/x"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["url", "title", "links", "name", "label", "value", "fields"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
DATA = st.dictionaries(st.sampled_from(["images", "files", "embeds", "buttons", "imageUrl", "directions"]), JSON)


def test_nothing_shown_is_no_content():
    assert collect_extras([{}, {"exit_code": 0}]) == ()


def test_a_page_cannot_have_any_number_of_pictures_posted():
    page = " ".join(
        f"data:image/png;base64,{base64.b64encode(f'pixel {number}'.encode()).decode()}" for number in range(500)
    )
    _, data = extract_attachments(page, {})
    links = {str(number): f"https://a.example/{number}" for number in range(500)}
    linked = {"images": [{"url": f"https://a.example/{number}.png", "links": links} for number in range(500)]}
    assert len(collect_extras([data, linked])) == MAX_IMAGES
    assert {len(each.embeds[0].fields) for each in collect_extras([linked])} == {MAX_LINKS}


def test_one_image_and_buttons_are_one_content():
    (content,) = collect_extras(
        [{"images": [{"url": "https://a.example/1.png"}], "buttons": [{"label": "Go", "value": "go"}]}]
    )
    assert content.embeds == (EmbedCard(image="https://a.example/1.png"),)
    assert content.buttons == (MessageButton("Go", value="go"),)


def test_each_further_image_is_a_content_of_its_own():
    shown = collect_extras([{"images": [{"url": f"https://a.example/{n}.png"} for n in range(3)]}])
    assert [content.embeds[0].image for content in shown] == [f"https://a.example/{n}.png" for n in range(3)]


def test_a_data_uri_is_sent_along_and_shown_in_its_card():
    (content,) = collect_extras([{"images": [{"url": DATA_URI, "title": "A fox"}]}])
    (file,) = content.files
    assert (file.data, file.media_type) == (b"pixel", "image/png")
    assert content.embeds == (EmbedCard("A fox", image=f"attachment://{file.name}"),)


def test_a_sprite_result_shows_its_image_with_a_link_for_each_direction():
    (content,) = collect_extras(
        [{"imageUrl": "https://a.example/s.png", "directions": {"north": "https://a.example/n.png"}}]
    )
    assert content.embeds[0].fields == (("north", "[open](https://a.example/n.png)"),)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html", 7, None, ""])
def test_an_address_that_is_none_is_left_out(url: object):
    assert collect_extras([{"images": [{"url": url}], "embeds": [], "buttons": [{"label": "x", "url": url}]}]) == ()


def test_a_files_name_cannot_leave_its_folder():
    (content,) = collect_extras([{"files": [{"url": f"data:text/csv;base64,{PIXEL}", "name": "../../etc/passwd"}]}])
    assert "/" not in content.files[0].name


@given(st.lists(DATA, max_size=3))
def test_whatever_a_tool_says_makes_valid_contents(results: list[dict[str, Any]]):
    for content in collect_extras(results):
        assert content != MessageContent()
        assert len(content.embeds) <= 10 and len(content.files) <= 10 and len(content.buttons) <= 25


@pytest.mark.proves("L7")
def test_pictures_leave_the_text_and_go_to_people():
    text, data = extract_attachments(f"drawn: ![fox]({DATA_URI}) and done", {"exit_code": 0})
    assert PIXEL not in text and text.startswith("drawn:")
    assert data["exit_code"] == 0 and PIXEL in str(data["images"])
    (content,) = collect_extras([data])
    assert content.files[0].data == b"pixel"


def test_a_marker_leaves_the_text_and_its_picture_is_shown():
    text, data = extract_attachments('ok 🖼️SPRITE_RESULT🖼️{"imageUrl": "https://a.example/s.png"}', {})
    assert "SPRITE" not in text
    assert collect_extras([data])[0].embeds[0].image == "https://a.example/s.png"


def test_a_text_without_any_stays_as_it_is():
    assert extract_attachments("plain  text\n", {}) == ("plain  text\n", {})
