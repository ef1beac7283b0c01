"""Checks commands in pages: `denizen` and `make` themselves parse them, and never run them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import click

from denizen.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_DESCRIPTOR = re.compile(r"(?<=\s)\d(?=[<>])")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SEPARATORS = frozenset({";", "|", "||", "&&", "&", "(", ")"})


def find_wrong_commands(script: str, *, complete: bool = True) -> Iterator[str]:
    """A reason for each command of a shell script that `denizen` or `make` would refuse. Others are passed over. With
    `complete` off, a command may lack arguments: running text names it only.
    """
    for words in split_commands(script):
        program = Path(words[0]).name
        if program == "denizen":
            reason = explain_refusal(words[1:], complete=complete)
            if reason:
                yield f"`{shlex.join(words)}`: {reason}"
        elif program == "make":
            targets = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
            yield from (f"there is no `make {target}`" for target in targets if target not in list_targets())


def split_commands(script: str) -> Iterator[list[str]]:
    """The simple commands of a script, as words, without assignments, redirections and here-documents.

    Raises ValueError for quotes that are not closed.
    """
    lines = iter(script.replace("\\\n", " ").splitlines())
    unfinished = ""
    for line in lines:
        unfinished = f"{unfinished}\n{line}" if unfinished else line
        words = _split_words(unfinished)
        if words is None:
            continue
        heredoc = _HEREDOC.search(unfinished)
        unfinished = ""
        if heredoc:
            for each in lines:
                if each.strip() == heredoc[2]:
                    break
        yield from _simple_commands(words)
    if unfinished:
        raise ValueError(f"a quote is not closed: {unfinished.splitlines()[0]}")


def _split_words(text: str) -> list[str] | None:
    """None while a quote is open."""
    lexer = shlex.shlex(_DESCRIPTOR.sub("", text), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError:
        return None


def _simple_commands(words: Sequence[str]) -> Iterator[list[str]]:
    command: list[str] = []
    tokens = iter(words)
    for word in tokens:
        if word in _SEPARATORS:
            if command:
                yield command
            command = []
        elif set(word) <= {"<", ">", "&"}:
            next(tokens, None)
        elif command or not _ASSIGNMENT.match(word):
            command.append(word)
    if command:
        yield command


def explain_refusal(arguments: Sequence[str], *, complete: bool = True) -> str:
    """Why `denizen` would not understand these arguments; empty when it would. Nothing is run."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), _nobody_to_ask():
            _parse(cli, "denizen", list(arguments), None)
    except (click.exceptions.Exit, click.Abort):  # help; a question, which comes when all else is understood
        return ""
    except click.MissingParameter as error:
        return error.format_message() if complete else ""
    except click.ClickException as error:
        return error.format_message()
    return ""


@contextlib.contextmanager
def _nobody_to_ask() -> Generator[None]:
    """A command that asks for confirmation gets no answer."""
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        yield
    finally:
        sys.stdin = stdin


def _parse(command: click.Command, name: str, arguments: list[str], parent: click.Context | None) -> None:
    with command.make_context(name, list(arguments), parent=parent) as context:
        if isinstance(command, click.Group):
            _, rest, _ = command.make_parser(context).parse_args(list(arguments))
            found, child, left = command.resolve_command(context, rest) if rest else (None, None, [])
            if child is not None:
                _parse(child, found or "", left, context)


def list_targets() -> frozenset[str]:
    """The targets that the Makefile declares."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^([a-z][\w-]*):", text, re.MULTILINE))
