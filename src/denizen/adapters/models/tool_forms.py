"""An agent's tools in the form that a vendor sends, worked out once for each set of tools.

The vendor's layer checks, copies and rewrites the schema of every tool for every request, which takes 20 to 50 us a
tool; the same few sets come again and again. Kept beside each vendor's model by `connection`, asked by `model`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from denizen.adapters.models.convert import tools_of
from denizen.domain.tool import ToolSpec

if TYPE_CHECKING:
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

_KEPT = 32


@dataclass(frozen=True, slots=True)
class _Form:
    tools: tuple[ToolSpec, ...]
    definitions: list[ToolDefinition]


class ToolForms:
    """Takes the place of the hook in which `vendor` rewrites request parameters: tools that come from `of` pass it as
    they are, and whatever else comes by is rewritten as before.
    """

    def __init__(self, vendor: VendorModel) -> None:
        self._rewrite = vendor.customize_request_parameters
        self._forms: dict[tuple[str, ...], _Form] = {}
        vendor.customize_request_parameters = self._customize

    def of(self, tools: tuple[ToolSpec, ...]) -> list[ToolDefinition]:
        """The tools, rewritten; the same list for the same tools."""
        names = tuple(tool.name for tool in tools)
        form = self._forms.get(names)
        if form is None or form.tools != tools:
            form = _Form(tools, self._make(tools))
            self._forms.pop(names, None)
            if len(self._forms) >= _KEPT:
                self._forms.pop(next(iter(self._forms)))
            self._forms[names] = form
        return form.definitions

    def _make(self, tools: tuple[ToolSpec, ...]) -> list[ToolDefinition]:
        from pydantic_ai.models import ModelRequestParameters

        return self._rewrite(ModelRequestParameters(function_tools=tools_of(tools))).function_tools

    def _customize(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        tools = model_request_parameters.function_tools
        if not any(form.definitions is tools for form in self._forms.values()):
            return self._rewrite(model_request_parameters)
        return replace(self._rewrite(replace(model_request_parameters, function_tools=[])), function_tools=tools)
