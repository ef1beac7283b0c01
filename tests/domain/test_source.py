"""What can be a source: every form that people write, and nothing that a program could take for something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.errors import InvalidInput
from denizen.domain.source import (
    Source,
    SourceKind,
    check_source,
    find_readme,
    is_kept,
    is_plain_path,
    plan_folders,
    read_location,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DOCS = Source(
    id="docs", kind=SourceKind.GIT, location="https://github.com/nuxt/docs.git", created_at=NOW, updated_at=NOW
)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("nuxt/docs", "https://github.com/nuxt/docs.git"),
        ("nuxt/docs.git", "https://github.com/nuxt/docs.git"),
        (" https://git.example/a/b.git ", "https://git.example/a/b.git"),
        ("https://git.example:8443/a", "https://git.example:8443/a"),
        ("http://127.0.0.1:3000/a.git", "http://127.0.0.1:3000/a.git"),
        ("ssh://git@git.example:22/a/b", "ssh://git@git.example:22/a/b"),
        ("git@github.com:nuxt/docs.git", "git@github.com:nuxt/docs.git"),
        ("file:///srv/docs.git", "file:///srv/docs.git"),
    ],
)
def test_a_repository_is_written_as_people_know_it(text: str, location: str) -> None:
    assert read_location(text) == (SourceKind.GIT, location)


def test_an_address_that_ends_with_xml_is_a_sitemap() -> None:
    assert read_location("https://x.example/sitemap.xml") == (SourceKind.SITEMAP, "https://x.example/sitemap.xml")
    assert read_location("https://x.example/map", SourceKind.SITEMAP)[0] is SourceKind.SITEMAP
    assert read_location("https://x.example/odd.xml", SourceKind.GIT)[0] is SourceKind.GIT
    for refused in ("http://127.0.0.1/sitemap.xml", "/srv/sitemap.xml", "nuxt/docs", "git@x.example:y"):
        with pytest.raises(InvalidInput):
            read_location(refused, SourceKind.SITEMAP)


def test_a_path_is_a_folder_unless_it_is_said_to_be_a_repository() -> None:
    assert read_location("/srv/notes/") == (SourceKind.FOLDER, "/srv/notes")
    assert read_location("/srv/docs", SourceKind.GIT) == (SourceKind.GIT, "/srv/docs")


@pytest.mark.proves("SW7-quoting")
@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "-oProxyCommand=touch /tmp/x", "--upload-pack=touch x", "ext::sh -c touch% x", "fd::17",
        "https://user:secret@git.example/a", "https://token@git.example/a", "http://git.example/a", "git://git.example/a",
        "ssh://-oProxyCommand=x/a", "ssh://-x@git.example/a", "https://", "https://git.example/a?b", "file://host/a",
        "ftp://git.example/a", "a\nb/c", "/srv/../etc", "relative", "a/b/c", "https://git.example:99999999/a",
        "x" * 2000, "https://git.example/\u2028a", "host:-x\ny",
    ],
)  # fmt: skip
def test_what_git_could_take_for_something_else_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_location(text)
    assert refused.value.fix
    assert "secret" not in refused.value.explain()


@pytest.mark.proves("SW7-quoting")
@pytest.mark.parametrize(
    "change",
    [
        {"id": "Docs"}, {"id": "../x"}, {"id": ""}, {"id": "-x"}, {"id": "a..b"}, {"id": "a" * 64},
        {"branch": "-x"}, {"branch": "a..b"}, {"branch": "a b"}, {"branch": "x:y"}, {"branch": "--upload-pack=x"},
        {"content_path": "../x"}, {"content_path": "/etc"}, {"content_path": "-x"}, {"content_path": "a//b"},
        {"output_path": ".."}, {"output_path": "a/../../b"}, {"output_path": "a\\b"}, {"output_path": "a\x00b"},
        {"label": "two\nlines"}, {"label": "x" * 201}, {"location": "nuxt/docs"},
        {"kind": SourceKind.FOLDER, "location": "/srv/x", "branch": "main"},
        {"kind": SourceKind.FOLDER, "location": "https://git.example/a"},
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_refused(change: dict[str, str]) -> None:
    check_source(DOCS)
    with pytest.raises(InvalidInput):
        check_source(replace(DOCS, **change))


@given(st.text(max_size=40))
def test_a_plain_path_never_leads_out(path: str) -> None:
    if is_plain_path(path):
        assert not path.startswith("/")
        assert all(part not in ("", ".", "..") for part in path.split("/"))
        assert path.isprintable() or all(ord(letter) >= 32 for letter in path)


@pytest.mark.parametrize("path", ["a.md", "a/b.MDX", "a.rst", "a.txt", "a.yml", "a.yaml", "a.json", "a.html", "a.pdf"])
def test_documents_are_kept(path: str) -> None:
    assert is_kept(path)


@pytest.mark.parametrize("path", ["a.png", "a", "a.py", ".hidden.md", ".git/x.md", "a/.github/b.md", "md"])
def test_nothing_else_is_kept(path: str) -> None:
    assert not is_kept(path)


def test_the_readme_is_found_whatever_its_case() -> None:
    assert find_readme(["a.md", "readme.TXT", "ReadMe.md"]) == "ReadMe.md"
    assert find_readme(["a.md"]) is None


def test_no_two_sources_write_into_one_folder() -> None:
    assert plan_folders([DOCS, replace(DOCS, id="docs2")]) == ""
    for other in ("docs", "DOCS", "docs/inner"):
        assert "one folder" in plan_folders([DOCS, replace(DOCS, id="b", output_path=other)])


def test_the_fingerprint_changes_with_what_is_read_and_not_with_its_name() -> None:
    assert replace(DOCS, label="x", output_path="y").fingerprint == DOCS.fingerprint
    for change in ({"branch": "b"}, {"content_path": "c"}, {"readme_only": True}, {"location": "/srv/x"}):
        assert replace(DOCS, **change).fingerprint != DOCS.fingerprint
