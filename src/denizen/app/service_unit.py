"""The unit with which systemd runs Denizen: for the whole system, or for one user. Pure but for `find_unit_folder`."""

from __future__ import annotations

from pathlib import Path

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
ReadWritePaths={home}
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
    that user; else it is one of whoever calls systemd.
    """

    program: Path
    home: Path
    user: str = ""


def render_unit(plan: ServicePlan) -> str:
    """Returns the text of the unit. Raises InvalidInput for a path that a unit cannot hold."""
    for each in (plan.program, plan.home):
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
        _HARDENING.format(home=plan.home).rstrip() if plan.user else "NoNewPrivileges=yes\nUMask=0077",
        "",
        "[Install]",
        f"WantedBy={'multi-user.target' if plan.user else 'default.target'}",
    ]
    return "\n".join(lines) + "\n"


def find_unit_folder(user_home: Path, configured: str, *, is_system: bool) -> Path:
    """Returns where units stand. `configured` is XDG_CONFIG_HOME, or empty."""
    if is_system:
        return Path("/etc/systemd/system")
    return (Path(configured) if configured else user_home / ".config") / "systemd" / "user"
