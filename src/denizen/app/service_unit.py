"""The unit with which systemd runs Denizen: for the whole system, or for one user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from denizen.app.home.secrets import load_secrets
from denizen.app.settings.edit import parse_config
from denizen.app.settings.interpolation import expand_tree
from denizen.app.settings.load import read_config
from denizen.app.settings.yaml_document import find_value
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

UNIT = "denizen.service"
STOP_S = 15
"""How long systemd waits before it kills: longer than turns and connections get at the end."""

_HARDENING = """\
NoNewPrivileges=yes
UMask=0077
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={writable}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
CapabilityBoundingSet=
AmbientCapabilities=
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
"""
"""For the unit of the system. Namespaces stay allowed, since the read-only shell shuts its programs in with them."""


@record(kw_only=True)
class ServicePlan:
    """`program` is the absolute path of the `denizen` command. With `user`, the unit is one of the system, and runs as
    that user; else it is one of whoever calls systemd. `outside` are folders besides the home that it writes into.
    """

    program: Path
    home: Path
    user: str = ""
    outside: Sequence[Path] = ()


def render_unit(plan: ServicePlan) -> str:
    """Returns the text of the unit. Raises InvalidInput for a path that a unit cannot hold."""
    for each in (plan.program, plan.home, *plan.outside):
        if any(char.isspace() or char in "\"'\\%$" for char in str(each)):
            raise InvalidInput(
                f"A unit of systemd cannot hold the path {each} as it is.",
                code="unit_path",
                fix="Choose a path without spaces, quotes, backslashes, % and $.",
            )
    after = "network-online.target postgresql.service" if plan.user else "network.target"
    lines = [
        "[Unit]",
        "Description=Denizen, an AI that lives in a community",
        f"After={after}",
        *(["Wants=network-online.target"] if plan.user else []),
        "StartLimitIntervalSec=300",
        "StartLimitBurst=5",
        "",
        "[Service]",
        "Type=exec",
        *([f"User={plan.user}"] if plan.user else []),
        f"ExecStart={plan.program} --home {plan.home} run",
        "Restart=on-failure",
        "RestartSec=5",
        "KillMode=mixed",
        f"TimeoutStopSec={STOP_S}",
        "LimitNOFILE=65536",
        _HARDENING.format(writable=" ".join(map(str, (plan.home, *plan.outside)))).rstrip()
        if plan.user
        else "NoNewPrivileges=yes\nUMask=0077",
        "",
        "[Install]",
        f"WantedBy={'multi-user.target' if plan.user else 'default.target'}",
    ]
    return "\n".join(lines) + "\n"


def find_outside_folders(home: Path, environment: Mapping[str, str]) -> Sequence[Path]:
    """Returns the folders of the database and the log file, as far as they are not in the home folder. Raises
    InvalidInput for a configuration that cannot be read.
    """
    tree = expand_tree(parse_config(read_config(home), home).tree, load_secrets(home, environment).variables).tree
    store, log = find_value(tree, ("store", "url")), find_value(tree, ("logging", "file"))
    files = [home / log] if isinstance(log, str) and log else []
    if isinstance(store, str) and store.startswith("sqlite"):
        files.append(home / store.partition("///")[2].partition("?")[0])
    folders = dict.fromkeys(each.resolve().parent for each in files)
    return [each for each in folders if not each.is_relative_to(home.resolve())]


def find_unit_folder(user_home: Path, configured: str, *, is_system: bool) -> Path:
    """Returns where units stand. `configured` is XDG_CONFIG_HOME, or empty."""
    if is_system:
        return Path("/etc/systemd/system")
    return (Path(configured) if configured else user_home / ".config") / "systemd" / "user"
