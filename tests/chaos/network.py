"""Machines that are network namespaces of this one. Each has a link to the platforms and one to the database, and each
link can be cut: packets are lost in both directions then, and nobody is told.

Needs root, and `ip` (Debian: iproute2).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from shutil import which


class Link(StrEnum):
    """What a machine reaches by it."""

    PLATFORMS = "p"
    DATABASE = "d"


@dataclass(frozen=True, slots=True)
class Machine:
    """A namespace, named `namespace`, and the addresses by which others see it."""

    name: str
    namespace: str
    number: int
    addresses: dict[Link, str]

    @property
    def network(self) -> str:
        """The file by which a process enters it."""
        return f"/run/netns/{self.namespace}"


@dataclass(frozen=True, slots=True)
class Network:
    """The machines, and the addresses of the host on both links."""

    prefix: str
    machines: Sequence[Machine]
    hosts: dict[Link, str]

    def cut(self, machine: Machine, link: Link) -> None:
        _run("ip", "link", "set", self._name_port(machine.number, link), "down")

    def mend(self, machine: Machine, link: Link) -> None:
        _run("ip", "link", "set", self._name_port(machine.number, link), "up")

    def _name_port(self, number: int, link: Link) -> str:
        return f"{self.prefix}{link}{number}"


@contextmanager
def open_network(names: Sequence[str]) -> Generator[Network]:
    """The machines with these names; they are gone at the end of the block."""
    prefix, subnet = f"dz{os.getpid()}", 16 + os.getpid() % 16  # 172.16.0.0/12, one for each run
    hosts = {Link.PLATFORMS: f"172.{subnet}.1.1", Link.DATABASE: f"172.{subnet}.2.1"}
    with ExitStack() as stack:
        for link, host in hosts.items():
            bridge = f"{prefix}{link}"
            _run("ip", "link", "add", bridge, "type", "bridge")
            stack.callback(_run, "ip", "link", "delete", bridge)
            _run("ip", "address", "add", f"{host}/24", "dev", bridge)
            _run("ip", "link", "set", bridge, "up")
        machines: list[Machine] = []
        for number, name in enumerate(names, 1):
            namespace = f"{prefix}-{name}"
            addresses = {link: f"{host.removesuffix('.1')}.{number + 1}" for link, host in hosts.items()}
            machines.append(Machine(name, namespace, number, addresses))
            _run("ip", "netns", "add", namespace)
            stack.callback(_run, "ip", "netns", "delete", namespace)
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
            for link, address in addresses.items():
                port, end = f"{prefix}{link}{number}", f"eth-{link}"
                _run("ip", "link", "add", port, "type", "veth", "peer", "name", end, "netns", namespace)
                _run("ip", "link", "set", port, "master", f"{prefix}{link}", "up")
                _run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", end)
                _run("ip", "-n", namespace, "link", "set", end, "up")
        yield Network(prefix, machines, hosts)


def is_possible() -> bool:
    """Whether this user may make namespaces, and the program for that is there."""
    return os.geteuid() == 0 and which("ip") is not None


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
