"""Looking things up in the knowledge folders, and never beside them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.builtin_skills.knowledge import MAX_LISTED, TextFolder, skill
from denizen.domain.json import JsonObject
from denizen.domain.tool import Taint, Tier
from denizen.skill import IndexedPassage, SkillToolset, ToolResult, split_passages
from tests.skill_fixture import ServicesFixture, run, scope
from tests.unprivileged import run_unprivileged

pytestmark = pytest.mark.anyio


class Library:
    def __init__(self, root: Path) -> None:
        self.shared, self.own = root / "shared", root / "ada/knowledge"
        services = ServicesFixture(root).services()
        self.services = replace(services, folders=replace(services.folders, shared=self.find_shared_folder))
        self.toolset = SkillToolset(skill, self.services)

    def find_shared_folder(self, skill: str) -> Path:
        assert skill == "knowledge"
        return self.shared

    def add(self, folder: Path, name: str, text: str) -> None:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    async def ask(self, tool: str, agent: str = "ada", **args: str | int) -> ToolResult:
        given: JsonObject = {**args}
        return await run(self.toolset, tool, given, scope(agent=agent))


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path)
    library.add(library.shared, "plants/rose.md", "# Roses\nRoses want sun.\nAnd water.")
    library.add(library.shared, "rules.txt", "No shoes in the house.")
    library.add(library.own, "diary.md", "I like the sun.")
    return library


@pytest.mark.proves("T-agent-knowledge", "T-tool-memory")
async def test_an_agent_sees_what_all_share_and_what_is_its_own(library: Library):
    listed = (await library.ask("list_knowledge")).text
    assert [line.split(" ")[0] for line in listed.splitlines()[1:-1]] == [
        "own/diary.md",
        "shared/plants/rose.md",
        "shared/rules.txt",
    ]
    others = (await library.ask("list_knowledge", agent="ben")).text
    assert "shared/rules.txt" in others and "diary" not in others
    assert (await library.ask("read_knowledge", agent="ben", name="own/diary.md")).is_error


@pytest.mark.proves("T-agent-knowledge", "T-tool-memory")
async def test_a_file_is_read_by_its_name_and_quoted_as_data(library: Library):
    read = await library.ask("read_knowledge", name="shared/plants/rose.md")
    assert "Roses want sun." in read.text and read.text.startswith('<untrusted source="shared/plants/rose.md"')
    assert "I like the sun." in (await library.ask("read_knowledge", name="diary.md")).text


async def test_a_result_tells_which_lines_of_which_files_were_read(library: Library):
    read = await library.ask("read_knowledge", name="shared/plants/rose.md")
    assert read.data == {"read": [["shared/plants/rose.md", 1, 3]]}
    assert (await library.ask("read_knowledge", name="diary.md")).data == {"read": [["own/diary.md", 1, 1]]}
    assert (await library.ask("read_knowledge", name="shared/plants/rose.md", start=9)).data == {
        "read": [["shared/plants/rose.md", 2, 3]]
    }
    found = await library.ask("search_docs", query="Where is SUN wanted?")
    assert found.data["read"] == [["own/diary.md", 1, 1], ["shared/plants/rose.md", 1, 3]]
    assert not (await library.ask("list_knowledge")).data


async def test_a_search_finds_passages_of_the_folders_headed_as_they_are_cited(library: Library):
    found = (await library.ask("search_docs", query="Where is SUN wanted?")).text
    assert found.splitlines()[1:-1] == [
        "[own/diary.md:1-1]",
        "1: I like the sun.",
        "",
        "[shared/plants/rose.md:1-3] (Roses)",
        "1: # Roses",
        "2: Roses want sun.",
        "3: And water.",
    ]
    assert (await library.ask("search_docs", query="zebra")).text.startswith("Nothing was found")
    assert (await library.ask("search_docs", query="zebra")).data == {"found": 0}
    assert (await library.ask("search_docs", query="zebra")).is_own
    assert not (await library.ask("search_docs", query="sun")).is_own


async def test_passages_of_the_sources_stand_beside_those_of_the_folders(library: Library):
    (passage,) = split_passages("docs/sun.md", "The sun is a star.")
    asked: list[tuple[str, tuple[str, ...], int]] = []

    async def search(
        question: str, *, guild: str = "", sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        asked.append((question, tuple(sources), limit))
        return [IndexedPassage("key", "docs/sun.md", "sky", passage)]

    library.toolset = SkillToolset(skill, replace(library.services, search_documents=search))
    found = (await library.ask("search_docs", query="sun")).text
    assert [line for line in found.splitlines() if line.startswith("[")] == [
        "[docs/sun.md:1-1]",
        "[own/diary.md:1-1]",
        "[shared/plants/rose.md:1-3] (Roses)",
    ]
    found = (await library.ask("search_docs", query="sun", source="sky")).text
    assert [line for line in found.splitlines() if line.startswith("[")] == ["[docs/sun.md:1-1]"]
    assert asked == [("sun", (), 6), ("sun", ("sky",), 6)]


async def test_folders_that_do_not_exist_are_empty(tmp_path: Path):
    library = Library(tmp_path)
    assert (await library.ask("list_knowledge")).text == "There are no files."
    assert (await library.ask("list_knowledge")).is_own
    assert (await library.ask("search_docs", query="x")).text.startswith("Nothing was found")


@pytest.mark.proves("TW7")
@pytest.mark.parametrize(
    "name",
    [
        "../secrets.md",
        "shared/../../secrets.md",
        "own/plants/../../../secrets.md",
        "/etc/hosts.txt",
        "shared//etc/x.md",
        "shared/.hidden.md",
        "shared/out/secret.md",
        "shared/link.md",
        "shared/pipe.md",
        "shared/plants",
        "",
        "a\0b.md",
    ],
)
async def test_no_name_and_no_link_leads_out_of_the_folders(library: Library, tmp_path: Path, name: str):
    import os

    (tmp_path / "secrets.md").write_text("the key", encoding="utf-8")
    (tmp_path / "away").mkdir()
    (tmp_path / "away/secret.md").write_text("the key", encoding="utf-8")
    (library.shared / "out").symlink_to(tmp_path / "away")
    (library.shared / "link.md").symlink_to(tmp_path / "secrets.md")
    (library.shared / ".hidden.md").write_text("the key", encoding="utf-8")
    os.mkfifo(library.shared / "pipe.md")
    assert (await library.ask("read_knowledge", name=name)).is_error
    assert "the key" not in (await library.ask("search_knowledge", words="key")).text
    listed = (await library.ask("list_knowledge")).text
    assert not any(word in listed for word in ("secret", "link", "pipe", "hidden"))


def test_a_folder_that_may_not_be_read_is_named_and_hides_no_other(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.add(library.shared, "rules.txt", "No shoes in the house.")
    library.add(library.shared, "shut/secret.md", "No shoes in the garden.")
    (library.shared / "shut").chmod(0)

    async def main() -> None:
        listed = (await library.ask("list_knowledge")).text
        assert "shared/rules.txt (22 bytes)\nshared/shut/ (may not be read)" in listed
        found = await library.ask("search_docs", query="shoes")
        assert "in the house" in found.text and "garden" not in found.text

    try:
        run_unprivileged(main)
    finally:
        (library.shared / "shut").chmod(0o755)


async def test_a_long_list_says_how_to_see_the_rest(library: Library):
    for number in range(MAX_LISTED):
        library.add(library.shared, f"many/{number:04}.md", "x")
    assert "(3 more; name a folder, or search)" in (await library.ask("list_knowledge")).text
    assert "rose.md" in (await library.ask("list_knowledge", folder="shared/plants/")).text


def test_all_tools_only_read_documents_and_are_harmless() -> None:
    for spec in skill.specs():
        assert (spec.tier, spec.read_only, spec.flow.reads) == (Tier.HARMLESS, True, {Taint.DOCUMENT})


def test_a_binary_file_is_no_sheet(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    assert TextFolder(tmp_path).list_files() == []
    assert TextFolder(tmp_path).find_text("photo.png") is None


async def test_what_was_read_of_the_sources_is_listed_and_read_beside_the_folders(tmp_path: Path):
    library = Library(tmp_path)
    library.add(library.own, "docs/guide.md", "My own words about roses.")
    library.add(tmp_path / "snapshot", "docs/site/guide.mdx", "# Guide\nRoses want sun.")

    def list_snapshot(guild: str) -> Sequence[tuple[str, Path]]:
        del guild
        return [("docs", tmp_path / "snapshot" / "docs")]

    folders = replace(library.services.folders, snapshot=list_snapshot)
    library.toolset = SkillToolset(skill, replace(library.services, folders=folders))
    listed = (await library.ask("list_knowledge")).text
    assert [line.split(" ")[0] for line in listed.splitlines()[1:-1]] == ["own/docs/guide.md", "docs/site/guide.mdx"]
    assert "Roses want sun." in (await library.ask("read_knowledge", name="docs/site/guide.mdx")).text
    assert "My own words" in (await library.ask("read_knowledge", name="docs/guide.md")).text
    assert (await library.ask("read_knowledge", name="docs/../../ada/knowledge/docs/guide.md")).is_error
    assert "Roses want sun." in (await library.ask("read_knowledge", name="docs/other/../site/./guide.mdx")).text
    library.add(library.shared, "README.md", "Ours.")
    assert "Ours." in (await library.ask("read_knowledge", name="shared/docs/../README.md")).text
