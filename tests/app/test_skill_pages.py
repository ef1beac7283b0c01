"""The skills of a home folder on their pages: what there is, and the review of what was written."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from denizen.app.skill_loading.editor import SkillFolderEditor
from denizen.app.skill_loading.folder import load_folder
from denizen.domain.audit import AuditKind
from denizen.engine.configuration.generation import Generation
from denizen.ports.store import AuditSearch
from denizen.web.pages.skills import MAX_SHOWN_CHARS
from tests.app.component_web_fixture import ComponentWebFixture, open_components, read_words
from tests.app.home_folder import LAB, Home
from tests.app.skill_loading.skill_folder_fixture import CODE, enable_skills, write_skill

ALONE = (
    CODE.replace("from .words import WORD", 'WORD = "one"')
    .replace("from .late import TAIL", 'TAIL = "!"')
    .replace("{name}", "echo")
)
pytestmark = pytest.mark.anyio


async def list_tool_names(generation: Generation) -> list[str]:
    return [spec.name for toolset in generation.toolsets for spec in await toolset.list_tools()]


async def decide(server: ComponentWebFixture, name: str, decision: str, sha256: str = "") -> str:
    """Decides about the content as it is now, or the given one; returns where that leads, or what is wrong."""
    shown = sha256 or load_folder(server.home.path, name).sha256
    answer = await server.olga.send(f"/admin/skills/{name}/{decision}", sha256=shown)
    return answer.headers.get("location") or read_words(answer.text)


async def test_the_list_tells_built_in_and_own_skills_with_state_default_tier_and_origin(home: Home) -> None:
    write_skill(home, "echo")
    write_skill(home, "fresh")
    async with open_components(home, enable_skills(home, "echo")) as server:
        words = read_words(await server.ada.read("/admin/skills"))
        waiting, own = words.index("Waiting for you"), words.index("Your skills")
        assert waiting < words.index("fresh Says a word. the folder skills/fresh waiting") < own
        assert "echo Says a word. the folder skills/echo on 1, tier 0 echo_say tier 0" in words[own:]
        assert "calculator Exact arithmetic." in words
        assert "off: it can do harm, or costs tokens that not everybody wants to pay" in words
        assert "Switch on" not in words  # admins only look
        assert (await server.ada.send("/admin/skills/files/switch", on="yes")).status_code == 403


async def test_a_built_in_skill_is_switched_on_and_off_and_the_tools_follow_at_once(home: Home) -> None:
    async with open_components(home, f"# Ours.\n{LAB}") as server:
        assert "charts" not in {each.name for each in server.denizen.runtime.current.toolsets}
        on = await server.olga.send("/admin/skills/charts/switch", on="yes")
        assert on.headers["location"] == "/admin/skills?done=on"
        assert "charts" in {each.name for each in server.denizen.runtime.current.toolsets}
        await server.olga.send("/admin/skills/charts/switch", off="yes")
        assert "charts" not in {each.name for each in server.denizen.runtime.current.toolsets}
        assert "# Ours." in server.text
        assert (await server.olga.send("/admin/skills/nothing/switch", on="yes")).status_code == 404


async def test_what_an_agent_wrote_waits_with_its_author_and_is_enabled_after_a_look(home: Home) -> None:
    async with open_components(home, f"# Ours.\n{LAB}") as server:
        code = f"from pathlib import Path\nPath({str(home.path / 'ran')!r}).touch()\n{ALONE}"
        manifest = "name: echo\ndescription: Says a word.\ntier: 0\n"
        files = {"skill.yaml": manifest, "skill.py": code}
        await SkillFolderEditor(home.path, {}).create("echo", files, by="ada for olga")
        assert "echo Says a word. written by ada for olga waiting" in read_words(await server.ada.read("/admin/skills"))
        page = await server.ada.read("/admin/skills/echo")
        assert "<ins>+skill = Skill(&#34;echo&#34;, description=&#34;Says a word.&#34;)</ins>" in page
        assert not (home.path / "ran").exists()  # to look at it runs nothing
        assert "echo_say" not in await list_tool_names(server.denizen.runtime.current)
        assert "Enable this" not in page  # admins only look
        refused = await server.ada.send("/admin/skills/echo/enable", sha256=load_folder(home.path, "echo").sha256)
        assert refused.status_code == 403
        assert "Enable this" in await server.olga.read("/admin/skills/echo")
        assert await decide(server, "echo", "enable") == "/admin/skills?done=on"
        assert "echo_say" in await list_tool_names(server.denizen.runtime.current)
        done = read_words(await server.olga.read("/admin/skills/echo"))
        assert done.index("enabled by olga") < done.index("written by ada for olga", done.index("What was done"))
        assert "# Ours." in server.text


async def test_only_the_content_that_was_shown_is_enabled(home: Home) -> None:
    async with open_components(home, LAB) as server:
        write_skill(home, "echo")
        shown = load_folder(home.path, "echo").sha256
        write_skill(home, "echo", word="evil")
        assert "changed meanwhile" in await decide(server, "echo", "enable", shown)
        assert "echo_say" not in await list_tool_names(server.denizen.runtime.current)


async def test_of_a_content_that_nobody_was_shown_not_even_the_check_runs_anything(home: Home) -> None:
    async with open_components(home, LAB) as server:
        write_skill(home, "echo")
        shown = load_folder(home.path, "echo").sha256
        write_skill(home, "echo", code=f"open({str(home.path / 'ran')!r}, 'w').close()\n{CODE}")
        assert "changed meanwhile" in await decide(server, "echo", "enable", shown)
        assert not (home.path / "ran").exists()


@pytest.mark.parametrize("more", [0, 1])
async def test_a_skill_that_is_longer_than_what_is_shown_is_enabled_on_the_command_line_only(
    home: Home, more: int
) -> None:
    async with open_components(home, LAB) as server:
        folder = write_skill(home, "echo")
        length = MAX_SHOWN_CHARS - len("@@ -0,0 +1 @@\n+\n") + more
        (folder / "all.txt").write_text(f"{'x' * length}\n")  # it comes first, and fills the page
        page = await server.olga.read("/admin/skills/echo")
        assert ("late.py" in page, "Enable this" in page) == (False, False)
        hint = "Read its files in skills/echo on the server, then: denizen skill enable echo"
        assert hint in read_words(page)
        assert hint in await decide(server, "echo", "enable")
        assert "echo_say" not in await list_tool_names(server.denizen.runtime.current)


async def test_a_skill_that_just_fits_on_the_page_is_shown_whole_and_enabled_there(home: Home) -> None:
    async with open_components(home, LAB) as server:
        home.add_file("skills/notes/SKILL.md", "---\nname: notes\ndescription: Notes.\n---\n")
        head = len("@@ -0,0 +1,5 @@\n+---\n+name: notes\n+description: Notes.\n+---\n+\n")
        with (home.path / "skills" / "notes" / "SKILL.md").open("a") as file:
            file.write(f"{'x' * (MAX_SHOWN_CHARS - head)}\n")
        page = await server.olga.read("/admin/skills/notes")
        assert ("longer than what is shown" in page, "Enable this" in page) == (False, True)
        assert await decide(server, "notes", "enable") == "/admin/skills?done=on"


async def test_files_that_cannot_be_shown_are_told_by_size_and_digest_and_confirmed_before_enabling(home: Home) -> None:
    async with open_components(home, LAB) as server:
        folder = write_skill(home, "echo")
        for name, data in (("one.bin", b"\xff" * 2000), ("two.bin", b"\xfe\xff")):
            (folder / name).write_bytes(data)
        page = await server.olga.read("/admin/skills/echo")
        words = read_words(page)
        digest = hashlib.sha256(b"\xff" * 2000).hexdigest()
        assert f"This is no text and cannot be shown. Now: 2,000 bytes, sha256 {digest}." in words
        assert "As enabled last: not there." in words
        assert "2 of its files cannot be shown here: size and sha256 stand above" in words
        assert "I know what is in the 2 files that cannot be shown" in words
        assert 'name="hidden" type="checkbox" value="2" required' in page
        sha256 = load_folder(home.path, "echo").sha256
        for hidden in ({}, {"hidden": "1"}):
            refused = await server.olga.send("/admin/skills/echo/enable", sha256=sha256, **hidden)
            assert (refused.status_code, "has files that cannot be shown: 2" in refused.text) == (400, True)
        assert "echo_say" not in await list_tool_names(server.denizen.runtime.current)
        enabled = await server.olga.send("/admin/skills/echo/enable", sha256=sha256, hidden="2")
        assert enabled.headers["location"] == "/admin/skills?done=on"
        (folder / "two.bin").write_bytes(b"\xfd")
        changed = read_words(await server.olga.read("/admin/skills/echo"))
        assert "Now: 1 bytes" in changed and "As enabled last: 2 bytes" in changed and "one.bin" not in changed


async def test_a_change_is_compared_with_what_was_enabled_and_refusing_it_puts_that_back(home: Home) -> None:
    write_skill(home, "echo")
    async with open_components(home, enable_skills(home, "echo")) as server:
        write_skill(home, "echo", word="two")
        page = await server.olga.read("/admin/skills/echo")
        assert ("<del>-WORD = &#39;one&#39;</del>" in page, "<ins>+WORD = &#39;two&#39;</ins>" in page) == (True, True)
        assert "late.py" not in page  # what did not change is not shown
        changed = load_folder(home.path, "echo").sha256
        assert await decide(server, "echo", "refuse") == "/admin/skills?done=refused"
        assert (home.path / "skills" / "echo" / "words.py").read_text() == "WORD = 'one'\n"
        assert "echo_say" in await list_tool_names(server.denizen.runtime.current)
        assert (home.path / "skill-history" / "echo" / f"{changed}.json").is_file()  # nothing is lost
        async with server.denizen.services.store.work(write=False) as work:
            logged = await work.audit.search(AuditSearch(kind=AuditKind.SETTINGS))
        assert [(each.event.actor, each.event.subject) for each in logged] == [("api_key:olga", "skills/echo")]


async def test_a_last_line_without_its_end_does_not_hide_the_new_one_behind_it(home: Home) -> None:
    folder = write_skill(home, "echo")
    (folder / "words.py").write_text("WORD = 'one'")
    async with open_components(home, enable_skills(home, "echo")) as server:
        (folder / "words.py").write_text("WORD = 'two'")
        page = await server.olga.read("/admin/skills/echo")
        assert ("<del>-WORD = &#39;one&#39;</del>" in page, "<ins>+WORD = &#39;two&#39;</ins>" in page) == (True, True)
        (folder / "words.py").write_text("WORD = 'one'\n")
        assert "Only the end of its last line changed" in await server.olga.read("/admin/skills/echo")
        (folder / "words.py").unlink()
        assert "<del>-WORD = &#39;one&#39;</del>" in await server.olga.read("/admin/skills/echo")


async def test_refusing_what_never_was_enabled_deletes_it_and_keeps_its_text(home: Home) -> None:
    async with open_components(home, LAB) as server:
        write_skill(home, "echo")
        sha256 = load_folder(home.path, "echo").sha256
        assert await decide(server, "echo", "refuse") == "/admin/skills?done=refused"
        assert not (home.path / "skills" / "echo").exists()
        assert (home.path / "skill-history" / "echo" / f"{sha256}.json").is_file()


async def test_a_change_whose_former_content_is_not_kept_cannot_be_refused_and_says_so(home: Home) -> None:
    write_skill(home, "echo")
    async with open_components(home, enable_skills(home, "echo")) as server:
        shutil.rmtree(home.path / "skill-history")
        write_skill(home, "echo", word="two")
        assert "not kept" in await decide(server, "echo", "refuse")
        assert (home.path / "skills" / "echo" / "words.py").read_text() == "WORD = 'two'\n"


async def test_a_skill_that_did_not_load_says_where_it_broke_and_what_to_do(home: Home) -> None:
    write_skill(home, "echo", code=CODE + "\n\ndef _count() -> int:\n    return 1 // 0\n\n\n_count()\n")
    async with open_components(home, enable_skills(home, "echo")) as server:
        for path in ("/admin/skills", "/admin/skills/echo"):
            words = read_words(await server.ada.read(path))
            assert "ZeroDivisionError" in words
            assert "in _count: return 1 // 0" in words
            assert "denizen skill check echo" in words


async def test_a_skill_that_cannot_work_is_not_enabled_and_every_problem_is_told(home: Home) -> None:
    async with open_components(home, LAB) as server:
        write_skill(home, "echo", code=CODE.replace("_say", "_say").replace("{name}_say", "calculator"))
        told = await decide(server, "echo", "enable")
        assert "its tool `calculator` has the name of a tool of the skill calculator" in told
        write_skill(home, "echo", code="import nothing_of_the_kind\n" + CODE)
        assert "there is no module `nothing_of_the_kind`" in await server.ada.read("/admin/skills/echo")
        assert "there is no module `nothing_of_the_kind`" in await decide(server, "echo", "enable")
        assert "skills:" not in server.text


async def test_a_file_that_says_it_is_not_utf_8_is_told_and_not_enabled(home: Home) -> None:
    async with open_components(home, LAB) as server:
        write_skill(home, "echo", code=f"# coding: utf-7\n# +AAo-open({str(home.path / 'ran')!r}, 'w')\n{CODE}")
        told = "skill.py says that its encoding is utf-7: save it as UTF-8"
        assert told in read_words(await server.ada.read("/admin/skills/echo"))
        assert told in await decide(server, "echo", "enable")
        assert not (home.path / "ran").exists()


async def test_no_name_leads_out_of_the_folder_of_skills(home: Home) -> None:
    async with open_components(home, LAB) as server:
        for name in ("..%2f..%2fetc", "%2e%2e", "nothing"):
            for decision in ("enable", "refuse", "switch"):
                answer = await server.olga.send(f"/admin/skills/{name}/{decision}", sha256="x")
                assert answer.status_code == 404, (name, decision)


async def test_characters_that_hide_code_are_shown_and_markup_is_escaped(home: Home) -> None:
    async with open_components(home, LAB) as server:
        write_skill(home, "echo", code=CODE + "# \u202e }if<script>alert(1)</script>\u200b\n")
        page = await server.ada.read("/admin/skills/echo")
        assert "# \\u202e }if&lt;script&gt;alert(1)&lt;/script&gt;\\u200b" in page
        assert ("\u202e" in page, "\u200b" in page, "<script>alert" in page) == (False, False, False)
