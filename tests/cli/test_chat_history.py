"""What somebody typed stays theirs."""

import os
from pathlib import Path

from denizen.cli.chat import private_file


def test_the_history_of_the_chat_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = private_file(tmp_path / "new")
        (tmp_path / "old").write_text("typed earlier")
        kept = private_file(tmp_path / "old")
    finally:
        os.umask(before)
    assert [file.stat().st_mode & 0o777 for file in (made, kept)] == [0o600, 0o600]
    assert kept.read_text() == "typed earlier"
