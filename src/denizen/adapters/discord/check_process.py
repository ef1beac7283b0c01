"""Checks an account in a process of its own. A server needs that: its own accounts may be on a simulated Discord, of
which a process can use one alone, and discord.py would stay in its memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import anyio

from denizen.adapters.discord.client.settings import DiscordAccountSettings, DiscordEndpoints
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import Unavailable
from denizen.domain.ids import AgentName
from denizen.ports.setup import DiscordChecklist, TokenState

DEADLINE_S = 90.0
_COMMAND = (sys.executable, "-m", "denizen.adapters.discord.check")


async def check_apart(settings: DiscordAccountSettings) -> DiscordChecklist:
    """Returns what `check.check_account` returns. Raises Unavailable where the check does not end."""
    given = json.dumps(encode_settings(settings)).encode()  # by the input: arguments are seen by everybody
    with anyio.move_on_after(DEADLINE_S) as deadline:
        done = await anyio.run_process(_COMMAND, input=given, stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return decode_checklist(json.loads(done.stdout))
    why = f"no answer within {DEADLINE_S:.0f} s" if deadline.cancelled_caught else "the program for it failed"
    raise Unavailable("Discord could not be asked.", code="discord_check_failed", why=why, fix="Try again.")


def encode_settings(settings: DiscordAccountSettings) -> dict[str, str]:
    urls = settings.endpoints
    return {"agent": settings.agent, "token": settings.token, "api_url": urls.api_url, "gateway_url": urls.gateway_url}


def decode_settings(given: Mapping[str, str]) -> DiscordAccountSettings:
    urls = DiscordEndpoints(given["api_url"], given["gateway_url"])
    return DiscordAccountSettings(AgentName(given["agent"]), given["token"], urls)


def encode_checklist(checklist: DiscordChecklist) -> dict[str, Any]:
    findings = [[each.severity.value, each.what, each.fix, each.code] for each in checklist.findings]
    return {"token": checklist.token.value, "findings": findings, "invite_url": checklist.invite_url}


def decode_checklist(given: Mapping[str, Any]) -> DiscordChecklist:
    findings = [Diagnosis(Severity(severity), *rest) for severity, *rest in given["findings"]]
    return DiscordChecklist(token=TokenState(given["token"]), findings=findings, invite_url=given["invite_url"])
