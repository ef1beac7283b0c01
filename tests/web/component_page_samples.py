"""One filled page of each kind about models, skills and MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from denizen.domain.agent import Agent
from denizen.domain.ids import AgentName
from denizen.domain.usage import TokenPrice, Usage
from denizen.ports.model import Capabilities, ModelInfo
from denizen.ports.model_configuration import (
    ConfiguredAlias,
    ConfiguredProvider,
    ModelTrial,
    PricedModel,
    ProviderKindInfo,
)
from denizen.web.pages.models import ModelsPage, ProviderPage
from denizen.web.pages.page import Frame
from denizen_sdk.errors import ProblemDetails

PROBLEM = ProblemDetails("bad", "It is bad.", 400, "So it is.", "Mend it.")
PRICE = TokenPrice(input_usd=Decimal(3), output_usd=Decimal(15), cached_input_usd=Decimal("0.3"))
PROVIDER = ConfiguredProvider(
    name="lab", kind="openai-compatible", base_url="", model="", key="", key_name="LAB_KEY", key_origin=""
)
MODEL = PricedModel(ModelInfo("lab/one", "lab", ("balanced",), (), Capabilities()), PRICE, PRICE)


def list_component_pages(frame: Frame) -> Mapping[str, object]:
    return {
        "admin/models.html": ModelsPage(
            frame=frame,
            may_edit=True,
            providers=[PROVIDER],
            aliases=[ConfiguredAlias(name="balanced", model="lab/one", fallbacks=["lab/two"], is_implied=True)],
            models=[MODEL],
            names=["balanced"],
            default_model="balanced",
            agents=[Agent(AgentName("denizen"))],
            alias=dict.fromkeys(("name", "model", "fallbacks"), "x"),
            price=dict.fromkeys(("model", "input", "output", "cached"), "1"),
            trial=ModelTrial("lab/one", 0.5, Usage(input_tokens=9, output_tokens=2)),
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/provider.html": ProviderPage(
            frame=frame,
            may_edit=True,
            provider=PROVIDER,
            kinds=[ProviderKindInfo(name="openai", label="GPT", base_url="", key_variable="OPENAI_API_KEY")],
            values=dict.fromkeys(("name", "kind", "base_url", "model", "key_name"), "x"),
            served=["one"],
            list_problem=PROBLEM,
            problem=PROBLEM,
        ),
    }
