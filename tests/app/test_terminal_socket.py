"""The socket of the terminals: for its owner only, there while its server is, and never taken from a living one."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

from denizen.app.terminal_messages import SOCKET
from denizen.app.terminal_socket import open_terminal_socket


def is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def test_it_is_for_its_owner_only_and_removed_at_the_end(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_terminal_socket(tmp_path / SOCKET) as listener:
            assert listener is not None
            assert (tmp_path / SOCKET).stat().st_mode & 0o777 == 0o600
            assert is_answered(tmp_path / SOCKET)
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_one_that_nobody_answers_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET))
        left.listen()
    assert not is_answered(tmp_path / SOCKET)
    with open_terminal_socket(tmp_path / SOCKET) as listener:
        assert listener is not None
        assert is_answered(tmp_path / SOCKET)


def test_one_that_is_answered_stays_with_who_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_terminal_socket(tmp_path / SOCKET) as first:
        assert first is not None
        with caplog.at_level(logging.WARNING), open_terminal_socket(tmp_path / SOCKET) as second:
            assert second is None
        assert is_answered(tmp_path / SOCKET)
    assert caplog.messages == ["terminals cannot use this server"]


def test_the_end_leaves_the_socket_of_another_server_alone(tmp_path: Path) -> None:
    with open_terminal_socket(tmp_path / SOCKET) as first:
        assert first is not None
        (tmp_path / SOCKET).unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(tmp_path / SOCKET))
            left = (tmp_path / SOCKET).stat().st_ino
    assert (tmp_path / SOCKET).stat().st_ino == left


def test_a_file_of_that_name_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / SOCKET).write_text("mine")
    with open_terminal_socket(tmp_path / SOCKET) as listener:
        assert listener is None
    assert (tmp_path / SOCKET).read_text() == "mine"


def test_a_home_with_a_long_path_goes_without_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / ("x" * 120)
    home.mkdir()
    with caplog.at_level(logging.WARNING), open_terminal_socket(home / SOCKET) as listener:
        assert listener is None
    [record] = caplog.records
    assert "too long" in getattr(record, "why", "")
