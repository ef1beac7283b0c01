"""One filled context of each page of set-up, for the tests of what templates are made of."""

from __future__ import annotations

from collections.abc import Mapping

from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.ids import AgentName
from denizen.domain.source import SourceKind
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.ports.setup import DISCORD_STEPS, DiscordChecklist, ProviderOption, SetupStep, StepState, TokenState
from denizen.web.pages.agents import AgentForm
from denizen.web.pages.page import Frame
from denizen.web.pages.setup import SetupAgentPage, SetupDiscordPage, SetupModelPage, SetupPage, SetupSourcePage
from denizen.web.pages.sources import fill_source_form
from denizen_sdk.errors import ProblemDetails

PROBLEM = ProblemDetails("x", "No.", 400, why="Because.", fix="Do this.")
STEPS = [
    StepState(step=SetupStep.MODEL, is_done=True, told="lab/one"),
    StepState(step=SetupStep.DISCORD, is_done=False, told="no account"),
    StepState(step=SetupStep.SOURCE, is_done=False, told="none", left_out=True),
    StepState(step=SetupStep.AGENT, is_done=False, told="denizen, as it came"),
]
OPENAI = ProviderOption(kind="openai", label="GPT", address="https://api.openai.com/v1", variable="OPENAI_API_KEY")
AGENT_VALUES = {"name": "", "description": "", "model": "balanced", "tools": "*", "persona": ""}


def list_setup_pages(frame: Frame) -> Mapping[str, object]:
    return {
        "admin/setup.html": SetupPage(frame=frame, steps=STEPS, restart="Later.", notice="Done.", problem=PROBLEM),
        "admin/setup_model.html": SetupModelPage(
            frame=frame,
            steps=STEPS,
            options=[ProviderOption(kind="embedded", label="small", is_in_use=True), OPENAI],
            chosen=OPENAI,
            is_choosing=True,
            base_url="",
            model="gpt",
            has_typed_key=True,
            models=["gpt-5"],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/setup_discord.html": SetupDiscordPage(
            frame=frame,
            steps=STEPS,
            guide=DISCORD_STEPS,
            is_connected=True,
            has_typed_token=True,
            accounts=[AccountState("discord", AgentName("denizen"), is_listening=False, told="It is away.")],
            restart="Later.",
            checklist=DiscordChecklist(
                token=TokenState.GOOD,
                findings=[Diagnosis(Severity.ERROR, "It is off.", "Switch it on.")],
                invite_url="https://discord.com/oauth2",
            ),
            may_connect=True,
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/setup_source.html": SetupSourcePage(
            frame=frame, steps=STEPS, form=fill_source_form(SourceKind.GIT, {}), notice="Done.", problem=PROBLEM
        ),
        "admin/setup_agent.html": SetupAgentPage(
            frame=frame,
            steps=STEPS,
            form=AgentForm(values=AGENT_VALUES, models=["auto"]),
            known=["denizen"],
            notice="Done.",
            problem=PROBLEM,
        ),
    }
