"""A page of the documentation as a reader follows it: its blocks in their order, in a home folder that is `~/.denizen`.

Commands are run by bash, except that plain ones of `denizen` start at once (`fork_server.py`). `denizen run` and
`denizen simulate` go on until the end of the page, and the addresses that the page names lead to them. The model
provider and the platforms are those of the tests.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from scripts.docs.markdown import Block
from tests.e2e.home import DENIZEN, Home
from tests.e2e.process import ProcessResult, start_soon
from tests.timing import HANG_LIMIT_S

_PLAIN = re.compile(r"denizen [^$~<>&;|`\\\n]*")
_SERVERS = {"denizen run": r"Denizen is ready: http://(\S+)$", "denizen simulate": r"http://(127\.0\.0\.1:\d+)/"}
_PORTS = {"denizen run": "127.0.0.1:8650", "denizen simulate": "127.0.0.1:8643"}
_PROGRAMS = {
    "denizen": DENIZEN,
    "python": (sys.executable,),
    "curl": (sys.executable, "-IS", str(Path(__file__).with_name("curl.py"))),
    "npx": ("false",),  # it would fetch a program
}
_TURN = re.compile(r"\bturn_[0-9a-f]{24}\b")


def split_commands(script: str) -> Iterator[str]:
    """The commands of a script as they are written, each with its here-document and its further lines."""
    read: list[str] = []
    for line in script.splitlines():
        read.append(line)
        text = "\n".join(read)
        parsed = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        if not parsed.stderr and not line.endswith("\\"):
            yield text
            read.clear()
    assert not read, f"this command does not end: {read}"


@dataclass(slots=True)
class PageRun:
    """`replaced` maps texts of commands to what stands for them here; `overruled` holds values for keys of
    `denizen.yaml` that count instead of the page's. `servers` ends what was started.
    """

    folder: Path
    model_url: str
    servers: ExitStack
    variables: dict[str, str] = field(default_factory=dict[str, str])
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    overruled: Mapping[str, Any] = field(default_factory=dict[str, Any])
    written: set[Path] = field(default_factory=set[Path])

    def __post_init__(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        for name, command in _PROGRAMS.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            (programs / name).chmod(0o755)
        own = Home(self.folder / ".denizen").environment
        # The environment is not on the path as long as nobody activates it. Nothing outside of this machine is reached.
        tests = str(Path(sys.executable).parent)
        path = os.pathsep.join([str(programs), *(each for each in own["PATH"].split(os.pathsep) if each != tests)])
        self.variables = {**own, "HTTPS_PROXY": "http://127.0.0.1:9", **self.variables, "PATH": path}

    @property
    def home(self) -> Path:
        return self.folder / ".denizen"

    def run(self, command: str, said: str = "") -> ProcessResult:
        """Runs one to its end; a server until it is ready and has said that."""
        if _PORTS["denizen run"] in command and _PORTS["denizen run"] not in self.replaced:
            self._start_server("denizen run", "denizen run", "")
        for text, here in self.replaced.items():
            command = command.replace(text, here)
        server = next((name for name in _SERVERS if command.startswith(name)), "")
        if server:
            return self._start_server(server, command, said)
        done = self._run_to_end(command)
        if turn := _TURN.search(done.out):
            self.replaced |= dict.fromkeys(("TURN", "turn_1f0c"), turn[0])
        return done

    def _run_to_end(self, command: str) -> ProcessResult:
        if not _PLAIN.fullmatch(command):
            return self._run_in_bash(command)
        with start_soon(shlex.split(command)[1:], self.variables) as running:
            if " ask " not in command:  # which reads what is piped in
                with suppress(BrokenPipeError):
                    running.type("y\n")
            return running.finish()

    def _start_server(self, name: str, command: str, said: str) -> ProcessResult:
        running = start_soon([*shlex.split(command)[1:], "--port", "0"], self.variables)
        self.servers.callback(running.kill)
        stream = running.out if name == "denizen simulate" else running.err
        self.replaced[_PORTS[name]] = stream.await_text(_SERVERS[name])[1]
        if "run --simulate" in command:
            self.replaced[_PORTS["denizen simulate"]] = stream.await_text(_SERVERS["denizen simulate"])[1]
        stream.await_text(said)
        return ProcessResult(0, running.out.text, running.err.text)

    def _run_in_bash(self, command: str) -> ProcessResult:
        """What it exports holds for the next ones."""
        kept = self.folder / "variables"
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", f"{command}\nenv -0 > {kept}"],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_LIMIT_S,
            check=False,
        )
        if not done.returncode:
            pairs = (pair.partition("=") for pair in kept.read_text().split("\0") if pair)
            self.variables = {name: value for name, _, value in pairs}
        return ProcessResult(done.returncode, done.stdout, done.stderr)

    def configure(self, text: str) -> ProcessResult:
        """Puts the keys of a block into `denizen.yaml`, where the test has the last word, and checks it."""
        for name in re.findall(r"\$\{(\w+)", text):
            self.variables.setdefault(name, f"value-of-{name}")
        yaml: Any = YAML()
        config = cast("dict[str, Any]", yaml.load(self.home / "denizen.yaml"))
        _merge(config, yaml.load(text))
        _overrule(config, self.overruled)
        self._point_at_model(config["models"]["providers"])
        yaml.dump(config, self.home / "denizen.yaml")
        return self.run("denizen config check")

    def _point_at_model(self, providers: dict[str, Any]) -> None:
        urls = {"anthropic": self.model_url, "openrouter": f"{self.model_url}/api/v1"}
        for name, provider in providers.items():
            kind = provider["kind"]
            if kind == "embedded":
                providers[name] = {"kind": "openai-compatible", "base_url": f"{self.model_url}/v1"}
            else:
                provider["base_url"] = urls.get(kind, f"{self.model_url}/v1")

    def write(self, block: Block) -> None:
        """A block whose mark names a file of the home: the first replaces it, the next are added."""
        [*_, name] = block.info
        file = self.home / name
        before = file.read_text() + "\n\n" if file in self.written else ""
        file.write_text(before + block.text)
        self.written.add(file)


def _merge(config: dict[str, Any], given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if isinstance(value, dict) and isinstance(config.get(name), dict):
            _merge(config[name], cast("dict[str, Any]", value))
        else:
            config[name] = value


def _overrule(config: dict[str, Any], sections: Mapping[str, Any]) -> None:
    """Sets single values in those sections that the configuration has."""
    for name, value in sections.items():
        if not isinstance(value, dict):
            config[name] = value
        elif name in config:
            _overrule(config[name], cast("dict[str, Any]", value))
