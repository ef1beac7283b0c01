"""`denizen projects` and `denizen tasks`: everything that people do on the board, in a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

from denizen.domain.project import MAX_TEXT_CHARS
from tests.e2e.home import Home


def test_projects_tasks_and_documents_are_made_changed_shown_and_deleted(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.configure("http://127.0.0.1:9/v1")

    def do(*args: str) -> str:
        done = home.do(*args)
        assert done.code == 0, done.err
        return done.out

    assert "(read by owners and admins)" in do("projects", "add", "Trip", "--due", "2026-12-24")
    assert "(read by everybody)" in do("projects", "add", "All", "--everybody")
    assert "completed  Journey" in do("projects", "update", "trip", "--name", "Journey", "--status", "completed")
    (tmp_path / "plan.md").write_text("# One", encoding="utf-8")
    for _ in range(2):
        do("projects", "write", "Journey", str(tmp_path / "plan.md"))
    assert do("projects", "show", "Journey", "plan") == "# One\n"
    assert do("projects", "show", "Journey").count("plan") == 1

    task = re.match(r"tsk_\w+", do("tasks", "add", "Buy tea", "--project", "Journey", "--tag", "shop"))
    assert task is not None
    do("tasks", "update", task[0], "--status", "done")
    do("tasks", "comment", task[0], "Out of it.")
    shown = do("tasks", "show", task[0])
    assert "done  Buy tea #shop" in shown
    assert "Out of it." in shown
    said = re.search(r"cmt_\w+", shown)
    assert said is not None
    do("tasks", "change-comment", task[0], said[0], "Bought some.")
    assert "Bought some." in do("tasks", "show", task[0])
    assert said[0] in do("tasks", "delete-comment", task[0], said[0], "--yes")
    assert "Bought some." not in do("tasks", "show", task[0])
    [listed] = map(json.loads, do("tasks", "list", "--status", "done", "--tag", "shop", "--json").splitlines())
    assert (listed["id"], listed["tags"]) == (task[0], ["shop"])
    assert "No task fits." in do("tasks", "list", "--search", "milk")
    assert do("tasks", "list", "--status", "done").rstrip().endswith("(Journey)")
    other = do("projects", "add", "journey", "--everybody").split()[0]
    do("tasks", "add", "Sail", "--project", other)
    assert do("tasks", "list", "--search", "sail").rstrip().endswith(f"(journey {other}, for everybody)")
    assert "for owners and admins)" in do("tasks", "list", "--status", "done")
    do("projects", "delete", other, "--yes")
    assert "Deleted" in do("projects", "delete", "Journey", "--yes")
    assert home.do("tasks", "delete", task[0], "--yes").code != 0


def test_a_document_and_a_task_are_deleted_when_that_was_confirmed_and_errors_name_the_command_that_lists(
    tmp_path: Path,
) -> None:
    home, plan = Home(tmp_path / "home"), tmp_path / "plan.md"
    home.configure("http://127.0.0.1:9/v1")
    plan.write_text("# One", encoding="utf-8")
    assert home.do("projects", "add", "Trip").code == 0
    assert home.do("projects", "write", "Trip", str(plan)).code == 0
    task = home.do("tasks", "add", "Buy tea", "--project", "Trip").out.split()[0]

    assert "Say what is to change" in home.do("tasks", "update", task).err
    for unconfirmed in (("tasks", "delete", task), ("projects", "delete-document", "Trip", "plan")):
        assert home.do(*unconfirmed).code != 0
        assert home.do(*unconfirmed, "--yes").code == 0
    for missing, fix in (
        (("tasks", "show", task), "`denizen tasks list`"),
        (("projects", "show", "Trip", "plan"), "`denizen projects show PROJECT`"),
        (("projects", "show", "Journey"), "`denizen projects list`"),
    ):
        assert f"fix: {fix}" in home.do(*missing).err


def test_a_file_that_is_no_text_in_utf8_is_refused_with_its_name_and_leaves_the_document_as_it_was(
    tmp_path: Path,
) -> None:
    home, plan = Home(tmp_path / "home"), tmp_path / "plan.md"
    home.configure("http://127.0.0.1:9/v1")
    assert home.do("projects", "add", "Trip").code == 0
    plan.write_bytes("\ufeffCafé".encode())
    assert home.do("projects", "write", "Trip", str(plan)).code == 0

    plan.write_bytes("Café".encode("latin-1"))
    refused = home.do("projects", "write", "Trip", str(plan))

    assert (refused.code, refused.out) == (2, "")
    assert f"{plan} is no text in UTF-8." in refused.err
    assert "fix: Save it as UTF-8" in refused.err
    assert "Traceback" not in refused.err
    assert home.do("projects", "show", "Trip", "plan").out == "Café\n"


def test_a_project_goes_into_a_file_and_comes_back_whole_or_not_at_all(tmp_path: Path) -> None:
    home, file, plan = Home(tmp_path / "home"), tmp_path / "trip.json", tmp_path / "plan.md"
    home.configure("http://127.0.0.1:9/v1")
    plan.write_text("# One", encoding="utf-8")

    def do(*args: str) -> str:
        done = home.do(*args)
        assert done.code == 0, done.err
        return done.out

    do("projects", "add", "Trip", "--due", "2026-12-24")
    do("projects", "write", "Trip", str(plan))
    first = do("tasks", "add", "Buy tea", "--project", "Trip", "--tag", "shop", "--status", "archived").split()[0]
    do("tasks", "comment", first, "Out of it.")
    second = do("tasks", "add", "Sail", "--project", "Trip", "--assignee", "Ada").split()[0]
    do("tasks", "comment", second, "x" * MAX_TEXT_CHARS)
    do("projects", "export", "Trip", "--to", str(file))
    exported = json.loads(file.read_text(encoding="utf-8"))
    assert [(each["title"], each["status"]) for each in exported["tasks"]] == [
        ("Buy tea", "archived"),
        ("Sail", "backlog"),
    ]
    assert home.do("projects", "export", "Trip", "--to", str(file)).code == 2
    assert home.do("projects", "import", str(file)).code == 2, "the name is taken"

    assert "2 tasks, 1 documents" in do("projects", "import", str(file), "--name", "Second")
    again = json.loads(do("projects", "export", "Second"))
    [comment] = again["tasks"][0].pop("comments")
    assert comment["text"].endswith("\n\nOut of it.")
    exported["tasks"][0].pop("comments")
    assert [each.pop("comments")[0]["text"] for each in (again["tasks"][1], exported["tasks"][1])] == [
        "x" * MAX_TEXT_CHARS
    ] * 2
    assert again == {**exported, "name": "Second"}

    exported["tasks"][1]["due_on"] = "some day"
    file.write_text(json.dumps(exported), encoding="utf-8")
    assert home.do("projects", "import", str(file), "--name", "Third").code == 2
    assert "Third" not in do("projects", "list")
    file.write_text('{"name": 1}', encoding="utf-8")
    refused = home.do("projects", "import", str(file))
    assert (refused.code, "name: Input should be a valid string" in refused.err) == (2, True)
