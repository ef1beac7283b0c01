"""The recipes of `docs/explanation/how-to-change.md` name the files that their examples are in, and no others."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/how-to-change.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="this is not a checkout")


def read_examples(text: str) -> dict[str, list[str]]:
    """Returns the files of each example: the list items that follow "The files of the example `NAME`:"."""
    found: dict[str, list[str]] = {}
    for name, items in re.findall(r"^The files of the example `([^`]+)`[^\n]*:\n\n((?:- .+\n?)+)", text, re.MULTILINE):
        found[name] = re.findall(r"^- `([^`]+)`", items, re.MULTILINE)
    return found


def find_mentions(name: str, root: Path) -> set[str]:
    """Returns the modules below `src` that mention the name, also as an option (`max-videos`)."""
    word = re.compile(rf"(?<!\w){re.escape(name).replace('_', '[_-]')}(?!\w)")
    modules = (path for path in (root / "src").rglob("*.py") if word.search(path.read_text(encoding="utf-8")))
    return {path.relative_to(root).as_posix() for path in modules}


def test_each_recipe_has_an_example() -> None:
    assert {"xai", "recent_messages", "max_videos", "ClosedGaps", "find_next_due"} <= read_examples(
        PAGE.read_text(encoding="utf-8")
    ).keys()


@pytest.mark.parametrize("name", read_examples(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else [])
def test_the_files_of_an_example_are_those_that_mention_it(name: str) -> None:
    listed = read_examples(PAGE.read_text(encoding="utf-8"))[name]
    assert [path for path in listed if not (ROOT / path).is_file()] == []
    assert set(listed) == find_mentions(name, ROOT)


def test_a_module_that_mentions_the_name_is_found_and_one_that_has_it_within_a_word_is_not(tmp_path: Path) -> None:
    for file, text in (
        ("a.py", "max_videos = 1"),
        ("b.py", '"--max-videos"'),
        ("c.py", "max_videos_of = 2"),
        ("d.md", "max_videos"),
    ):
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / file).write_text(text, encoding="utf-8")
    assert find_mentions("max_videos", tmp_path) == {"src/a.py", "src/b.py"}
    page = "The files of the example `max_videos`:\n\n- `src/a.py`: one\n- `src/b.py`: another\n\n## Next\n"
    assert read_examples(page) == {"max_videos": ["src/a.py", "src/b.py"]}
