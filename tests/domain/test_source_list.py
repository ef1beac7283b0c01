"""Sources proposed from lists of other programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.errors import InvalidInput
from denizen.domain.source import SourceKind
from denizen.domain.source_list import MAX_PROPOSALS, read_lines, read_source_list

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["repo", "id", "kind", "label", "url", "github", "max_videos", "x"]), inner)
    ),
    max_leaves=20,
)


def test_the_fields_of_other_programs_are_taken_by_their_usual_names() -> None:
    found = read_source_list(
        {
            "sources": {
                "github": [
                    {"id": "guide", "repo": "lab/guide", "contentPath": "docs", "readmeOnly": False, "stars": 3}
                ],
                "youtube": [{"channelId": "UC" + "a" * 22, "handle": "@lab", "maxVideos": 9}],
            }
        }
    )
    guide, lab = found
    assert (guide.id, guide.kind, guide.location) == ("guide", SourceKind.GIT, "https://github.com/lab/guide.git")
    assert (guide.given.content_path, guide.given.readme_only, guide.ignored) == ("docs", False, ("stars",))
    assert (lab.kind, lab.location, lab.given.max_videos) == (SourceKind.YOUTUBE, "https://www.youtube.com/@lab", 9)


def test_ids_that_are_taken_are_not_given_again() -> None:
    found = read_source_list(["lab/guide", "other/guide", {"id": "Guide!", "repo": "third/x"}], taken=["guide"])
    assert [each.id for each in found] == ["guide-2", "guide-3", "guide-4"]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"repo": "https://ann:secret@git.example/a.git"}, "user name or password"),
        ({"repo": "lab/a", "branch": "--upload-pack=x"}, "not the name of a branch"),
        ({"repo": "lab/a", "content_path": "../../etc"}, "cannot be the content path"),
        ({"repo": "lab/a", "max_videos": "many"}, "'max_videos' cannot be that"),
        ({"url": "ext::sh -c id"}, "is no location"),
        ({"repo": "lab/a", "label": "a\nb"}, "no line of text"),
    ],
)
def test_what_could_not_be_added_by_hand_says_why_and_is_sanitised(item: dict[str, str], why: str) -> None:
    [found] = read_source_list([item])
    assert why in found.problem
    assert (found.id, found.given.kind) == ("", None)


def test_an_endless_list_and_an_empty_one_are_refused() -> None:
    with pytest.raises(InvalidInput) as long:
        read_source_list([f"lab/a{number}" for number in range(MAX_PROPOSALS + 1)])
    with pytest.raises(InvalidInput) as empty:
        read_source_list({"server": {"port": 8650}})
    assert (long.value.code, empty.value.code) == ("list_long", "list_empty")


def test_plain_lines_may_have_bullets_and_comments() -> None:
    assert read_lines("# ours\n- lab/a\n\n  2. @lab\n* discord:1\n") == ["lab/a", "@lab", "discord:1"]


@given(JSON)
def test_any_values_end_in_proposals_or_in_a_refusal(tree: object) -> None:
    try:
        found = read_source_list(tree)  # pyright: ignore[reportArgumentType] - hypothesis makes JSON of it
    except InvalidInput:
        return
    assert all(bool(each.id) != bool(each.problem) for each in found)
    ids = [each.id for each in found if each.id]
    assert len(ids) == len(set(ids))
