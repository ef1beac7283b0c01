"""The first thing that a newcomer reads is true."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_begins_with_a_title_one_sentence_and_the_two_commands() -> None:
    title, sentence, block = README.split("\n\n")[:3]
    assert re.fullmatch(r"# \w+", title)
    assert re.fullmatch(r"[^.\n]+\.", sentence)
    assert block.splitlines() == ["```sh", "make run", "make test", "```"]


def test_the_two_commands_of_the_readme_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("run", "test"):
        assert re.search(rf"^{target}:.*\n\t", makefile, re.MULTILINE)
