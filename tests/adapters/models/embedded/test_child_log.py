import os
from pathlib import Path

from denizen.adapters.models.embedded.child_process import _opened_log


def test_the_log_of_the_model_server_is_for_its_owner_only(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "embedded.log"
    before = os.umask(0)
    try:
        _opened_log(log).close()
    finally:
        os.umask(before)
    assert log.stat().st_mode & 0o777 == 0o600
