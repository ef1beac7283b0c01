"""What can be a source: every form that people write, and nothing that a program could take for something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.errors import InvalidInput
from denizen.domain.location import is_on_this_machine
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


@pytest.mark.proves("S26")
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


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "https://github.com/owner/repo/tree/main/docs/guide",
            "Write https://github.com/owner/repo.git with the branch main and the content path docs/guide.",
        ),
        (
            "https://github.com/owner/repo/blob/main/README.md",
            "Write https://github.com/owner/repo.git with the branch main.",
        ),
        (
            "https://gitlab.example/group/sub/repo/-/tree/v2/",
            "Write https://gitlab.example/group/sub/repo.git with the branch v2.",
        ),
        (
            "https://www.github.com/owner/repo/tree/main/docs",
            "Write https://www.github.com/owner/repo.git with the branch main and the content path docs.",
        ),
        ("https://github.com/owner/repo/pull/3", "Write https://github.com/owner/repo.git."),
        ("https://github.com/owner/repo/issues?q=tide", "Write https://github.com/owner/repo.git."),
        ("https://www.github.com/owner/repo.git/wiki/", "Write https://www.github.com/owner/repo.git."),
        ("https://gitlab.example/group/repo/-/merge_requests/3", "Write https://gitlab.example/group/repo.git."),
    ],
)
def test_a_page_about_a_repository_is_refused_with_what_to_write_instead(text: str, fix: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_location(text)
    assert refused.value.fix == fix


@pytest.mark.parametrize(
    "address",
    ["https://git.example/group/tree/main/docs", "https://github.com/owner/repo/", "https://www.github.com/owner/repo"],
)
def test_what_only_looks_like_such_a_page_is_a_repository(address: str) -> None:
    assert read_location(address) == (SourceKind.GIT, address)


def test_a_sitemap_may_lie_in_a_repository() -> None:
    address = "https://github.com/owner/repo/raw/main/sitemap.xml"
    assert read_location(address) == (SourceKind.SITEMAP, address)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        *((each, True) for each in ("localhost", "LOCALHOST.", "git.localhost:8443", "127.0.0.1", "127.8.9.1:80")),
        *((each, True) for each in ("[::1]:443", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "0x7f000001", "2130706433")),
        *((each, False) for each in ("example.org", "localhost.example.org", "1.1.1.1", "[2606:4700::1111]", "127.io")),
    ],
)
def test_the_machine_itself_is_known_by_whatever_name_is_written(host: str, is_here: bool) -> None:
    assert is_on_this_machine(f"https://{host}/docs.git") is is_here


@pytest.mark.parametrize("kind", [None, *SourceKind])
@pytest.mark.parametrize(
    "text",
    [
        "user:ghp_secret@github.com/owner/repo",
        "ghp_secret@github.com/owner/repo",
        "user:a::secret@git.example/a",
        "user:secret@youtube.com/@harbour",
        "git@git.example:secret@github.com/owner/repo",
        ":secret@git.example/a",
    ],
)
def test_a_password_is_refused_and_not_repeated_also_when_the_scheme_is_missing(
    text: str, kind: SourceKind | None
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_location(text, kind)
    assert "user name or password" in refused.value.message
    assert "secret" not in refused.value.explain()


def test_a_letter_that_stands_before_hosts_may_stand_in_a_path_and_before_a_name() -> None:
    assert read_location("/srv/a:b@c") == (SourceKind.FOLDER, "/srv/a:b@c")
    assert read_location("file:///srv/a:b@c") == (SourceKind.GIT, "file:///srv/a:b@c")
    assert read_location("@harbour")[0] is SourceKind.YOUTUBE


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
        "",
        "  ",
        "-oProxyCommand=touch /tmp/x",
        "--upload-pack=touch x",
        "ext::sh -c touch% x",
        "fd::17",
        "https://user:secret@git.example/a",
        "https://token@git.example/a",
        "http://git.example/a",
        "git://git.example/a",
        "ssh://-oProxyCommand=x/a",
        "ssh://-x@git.example/a",
        "https://",
        "https://git.example/a?b",
        "file://host/a",
        "ftp://git.example/a",
        "a\nb/c",
        "/srv/../etc",
        "relative",
        "a/b/c",
        "https://git.example:99999999/a",
        "x" * 2000,
        "https://git.example/\u2028a",
        "host:-x\ny",
    ],
)
def test_what_git_could_take_for_something_else_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_location(text)
    assert refused.value.fix
    assert "secret" not in refused.value.explain()


@pytest.mark.proves("SW7-quoting")
@pytest.mark.parametrize(
    "change",
    [
        {"id": "Docs"},
        {"id": "../x"},
        {"id": ""},
        {"id": "-x"},
        {"id": "a..b"},
        {"id": "a" * 64},
        {"branch": "-x"},
        {"branch": "a..b"},
        {"branch": "a b"},
        {"branch": "x:y"},
        {"branch": "--upload-pack=x"},
        {"content_path": "../x"},
        {"content_path": "/etc"},
        {"content_path": "-x"},
        {"content_path": "a//b"},
        {"output_path": ".."},
        {"output_path": "a/../../b"},
        {"output_path": "a\\b"},
        {"output_path": "a\x00b"},
        {"label": "two\nlines"},
        {"label": "x" * 201},
        {"location": "nuxt/docs"},
        {"kind": SourceKind.FOLDER, "location": "/srv/x", "branch": "main"},
        {"kind": SourceKind.FOLDER, "location": "https://git.example/a"},
    ],
)
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


ID = "UC0123456789abcdefghi-_j"


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("@harbour", "https://www.youtube.com/@harbour"),
        ("@Über.Häfen-1", "https://www.youtube.com/@Über.Häfen-1"),
        (ID, f"https://www.youtube.com/channel/{ID}"),
        ("https://www.youtube.com/@harbour/videos?view=0", "https://www.youtube.com/@harbour"),
        (f"http://m.youtube.com/channel/{ID}/about", f"https://www.youtube.com/channel/{ID}"),
        ("https://youtube.com/user/harb#x", "https://www.youtube.com/user/harb"),
        ("https://www.youtube.com/%40harbour", "https://www.youtube.com/@harbour"),
    ],
)
def test_a_channel_of_youtube_is_written_as_its_page_shows_it(text: str, location: str) -> None:
    assert read_location(text) == (SourceKind.YOUTUBE, location)
    assert read_location(location, SourceKind.YOUTUBE) == (SourceKind.YOUTUBE, location)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("discord:222233334444555566", "discord:222233334444555566"),
        ("https://discord.com/channels/1/22", "discord:22"),
        ("https://ptb.discord.com/channels/1/22/333", "discord:22"),
    ],
)
def test_a_channel_of_the_archive_is_written_by_its_id_or_its_link(text: str, location: str) -> None:
    assert read_location(text) == (SourceKind.ARCHIVE, location)
    assert read_location(location, SourceKind.ARCHIVE) == (SourceKind.ARCHIVE, location)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("https://www.youtube.com/c/harbour", None),
        ("https://www.youtube.com/", None),
        ("https://www.youtube.com/watch?v=abcdefghijk", None),
        ("https://evil.example/@harbour", SourceKind.YOUTUBE),
        ("@", None),
        ("@a\nb", None),
        (f"{ID}x", SourceKind.YOUTUBE),
        ("discord:../x", SourceKind.ARCHIVE),
        ("https://discord.com/channels/@me/22", SourceKind.ARCHIVE),
        ("nuxt/docs", SourceKind.ARCHIVE),
        ("discord:", SourceKind.ARCHIVE),
    ],
)
def test_what_is_no_channel_is_refused_with_a_remedy(text: str, kind: SourceKind | None) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_location(text, kind)
    assert refused.value.fix


@pytest.mark.proves("S-data-sources")
def test_a_source_is_plain_unless_it_is_said_otherwise_and_channels_lie_beside_the_documents() -> None:
    plain = (DOCS.label, DOCS.branch, DOCS.content_path, DOCS.output_path, DOCS.readme_only, DOCS.max_videos)
    assert plain == ("", "", "", "", False, 50)
    assert (DOCS.sync_every_minutes, DOCS.every, DOCS.folder) == (0, None, "docs/docs")
    talks = replace(DOCS, id="talks", kind=SourceKind.YOUTUBE, location="https://www.youtube.com/@talks")
    general = replace(DOCS, id="general", kind=SourceKind.ARCHIVE, location="discord:1", output_path="harbour/general")
    for source in (talks, general):
        check_source(source)
    assert (talks.folder, general.folder) == ("youtube/talks", "archive/harbour/general")
    assert plan_folders([DOCS, replace(talks, id="docs")]) == ""
    assert replace(talks, max_videos=7).fingerprint != talks.fingerprint
    assert replace(talks, sync_every_minutes=7).fingerprint == talks.fingerprint
    for wrong in (
        {"readme_only": True},
        {"content_path": "docs"},
        {"branch": "main"},
        {"max_videos": 0},
        {"max_videos": 1001},
        {"sync_every_minutes": -1},
        {"sync_every_minutes": 10_081},
    ):
        with pytest.raises(InvalidInput):
            check_source(replace(talks, **wrong))
