"""What an answer cites is linked to as it was read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.citation import DocumentRef, citation_link
from denizen.domain.snapshot import SnapshotPart

PART = SnapshotPart(
    source_id="guide",
    kind="git",
    label="",
    folder="docs/guide",
    location="https://github.com/ada/guide.git",
    branch="",
    content_path="",
    revision="c0ffee",
    manifest="m",
    files=1,
)
LINK = "https://github.com/ada/guide/blob/c0ffee/a.md?plain=1#L3-L9"


@pytest.mark.parametrize(
    ("location", "link"),
    [
        ("https://github.com/ada/guide.git", LINK),
        ("https://github.example.org/ada/guide", "https://github.example.org/ada/guide/blob/c0ffee/a.md?plain=1#L3-L9"),
        (
            "https://gitlab.com/group/ada/guide.git",
            "https://gitlab.com/group/ada/guide/-/blob/c0ffee/a.md?plain=1#L3-9",
        ),
        ("https://git.example.org/ada/guide.git", ""),
        ("ssh://git@github.com/ada/guide.git", ""),
        ("/srv/guide", ""),
        ("file:///srv/guide", ""),
    ],
)
def test_a_link_leads_to_the_lines_at_the_commit_that_was_read(location: str, link: str) -> None:
    assert citation_link(replace(PART, location=location), DocumentRef("docs/guide/a.md", 3, 9)) == link


def test_links_know_the_content_path_and_what_was_turned_into_text() -> None:
    part = replace(PART, content_path="site/en")
    base = "https://github.com/ada/guide/blob/c0ffee/site/en"
    assert citation_link(part, DocumentRef("docs/guide/a b.yml", 3, 3)) == f"{base}/a%20b.yml#L3-L3"
    assert citation_link(part, DocumentRef("docs/guide/a.html.md", 3, 9)) == f"{base}/a.html"
    assert citation_link(part, DocumentRef("docs/guide/a.pdf.txt", 3, 9)) == f"{base}/a.pdf"
    assert citation_link(part, DocumentRef("docs/guide/a.md")) == f"{base}/a.md"


def test_pages_and_videos_are_linked_to_as_wholes() -> None:
    site = replace(PART, kind="sitemap", location="https://example.org/sitemap.xml", content_path="help")
    assert citation_link(site, DocumentRef("docs/guide/start.html.md", 3, 9)) == "https://example.org/help/start"
    assert citation_link(site, DocumentRef("docs/guide/index.html.md")) == "https://example.org/help"
    video = replace(PART, kind="youtube", folder="youtube/ada")
    assert (
        citation_link(video, DocumentRef("youtube/ada/dQw4w9WgXcQ-a-song.md", 3, 9)) == "https://youtu.be/dQw4w9WgXcQ"
    )
    assert citation_link(video, DocumentRef("youtube/ada/index.md", 3, 9)) == ""
    assert citation_link(replace(PART, kind="folder", location="/srv"), DocumentRef("docs/guide/a.md", 3, 9)) == ""
