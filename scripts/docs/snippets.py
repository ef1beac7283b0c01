"""Fenced blocks and commands in running text hold what they say.

```sh            commands of `denizen` and `make` exist, with these options
```yaml config   is a whole `denizen.yaml` that loads; other yaml parses
```python run    all such blocks of a page are run, one after another, as one program; other Python compiles, and its
                 imports from this repository are there
```json          parses

A key of `denizen.yaml` in running text exists.

`tests/e2e/test_docs.py` follows the tutorial, the how-to pages and the README in a fresh home:

```sh, yaml config       commands are run and configurations taken, in the order in which they stand
```python client         a program that asks a running server is run
```LANGUAGE ... FILE.X   is written into this file of the home; two such blocks of a page make one file
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from scripts.docs.commands import find_wrong_commands
from scripts.docs.configuration import is_known_key
from scripts.docs.markdown import Block, Page

ROOT = Path(__file__).resolve().parents[2]

_RUN = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
_DEADLINE_S = 60
_VARIABLE = re.compile(r"\$\{(\w+)")
_KEY = re.compile(r"[a-z_]+(?:\.[A-Za-z_]+)+")
_FILES = (".md", ".py", ".yaml", ".db", ".env", ".sock", ".zip")
_COMMAND = re.compile(r"(?:denizen|make) [a-z-]")


def find_broken_snippets(page: Page) -> Iterator[str]:
    """One line for each block or command that does not hold."""
    for block in page.blocks:
        for problem in _check(block):
            yield f"{page.name}:{block.line}: {problem}"
    for span in page.spans:
        if _KEY.fullmatch(span.text) and not span.text.endswith(_FILES) and not is_known_key(span.text):
            yield f"{page.name}:{span.line}: the configuration has no key {span.text}"
        if _COMMAND.match(span.text):
            for problem in find_wrong_commands(span.text, complete=False):
                yield f"{page.name}:{span.line}: {problem}"
    program = "\n".join(block.text for block in page.blocks if block.info[:2] == ("python", "run"))
    if program:
        for problem in run_program(program):
            yield f"{page.name}: {problem}"


def _check(block: Block) -> Iterator[str]:
    match block.info:
        case ("sh", *_):
            try:
                yield from find_wrong_commands(block.text)
            except ValueError as error:
                yield f"this is no shell: {error}"
        case ("yaml", "config", *_):
            yield from check_config(block.text)
        case ("yaml", *_):
            try:
                cast("Any", YAML(typ="safe")).load(block.text)
            except YAMLError as error:
                yield f"this is no YAML: {error}"
        case ("python", *_):
            yield from check_python(block.text)
        case ("json", *_):
            try:
                json.loads(block.text)
            except ValueError as error:
                yield f"this is no JSON: {error}"
        case ("text" | "ini", *_):
            return
        case _:
            found = " ".join(block.info) or "nothing"
            yield f"a block says what it holds: sh, yaml, python, json, ini or text, not {found}"


def check_config(text: str) -> Iterator[str]:
    """The problems of a configuration, as the program itself finds them, with every variable set."""
    from denizen.app.home.secrets import load_secrets
    from denizen.app.settings.load import examine
    from denizen.builtin_skills import BUILTIN

    environment = {name: f"value-of-{name}" for name in _VARIABLE.findall(text)}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        found = examine(home, text, load_secrets(home, environment), BUILTIN).problems
        yield from (f"{problem.line}: {problem.message} {problem.fix}".replace(folder, "HOME") for problem in found)


def check_python(text: str) -> Iterator[str]:
    """Why it is no program, and what it imports from this repository that is not there."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError as error:
        yield f"this is no Python: {error}"
        return
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("denizen", "tests.")):
            for name in node.names:
                try:
                    getattr(importlib.import_module(str(node.module)), name.name)
                except (ImportError, AttributeError) as error:
                    yield f"this import fails: {error}"


def run_program(program: str) -> Iterator[str]:
    """Runs it in an empty folder, with the repository to import from; the last line of its errors is the problem."""
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder) / "page.py").write_text(program, encoding="utf-8")
        command = [sys.executable, "-W", "error", "-c", _RUN, str(ROOT), str(file)]
        try:
            done = subprocess.run(  # noqa: S603 - the pages of this repository
                command, cwd=folder, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
            )
        except subprocess.TimeoutExpired:
            yield f"the Python of this page did not end within {_DEADLINE_S} s"
            return
    if done.returncode:
        yield f"the Python of this page fails: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}"
