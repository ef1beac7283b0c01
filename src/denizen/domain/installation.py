"""The command that installs what an extra of Denizen needs into the Python that runs it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shlex
import sys
from pathlib import Path


def build_install_command(extra: str) -> str:
    """Returns a shell command that works for this installation: with pip where there is one, otherwise with uv, which a
    checkout brings along. It names the packages, since Denizen itself may have come from a checkout.
    """
    packages = shlex.join(list_extra_packages(extra))
    if importlib.util.find_spec("pip") is not None:
        return f"{shlex.quote(sys.executable)} -m pip install {packages}"
    bundled = Path(__file__).parents[3] / "scripts" / "uv"
    uv = shlex.quote(str(bundled)) if bundled.exists() else "uv"
    return f"{uv} pip install --python {shlex.quote(sys.executable)} {packages}"


def list_extra_packages(extra: str) -> list[str]:
    """Returns the requirements of an extra, such as `fastembed>=0.9`; empty for one that does not exist."""
    rows = importlib.metadata.requires("denizen") or []
    parted = [row.partition(";") for row in rows]
    return [needed.strip() for needed, _, marker in parted if f'extra == "{extra}"' in marker.replace("'", '"')]
