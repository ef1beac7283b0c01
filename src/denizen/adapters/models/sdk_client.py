"""One request to one model through pydantic-ai's direct layer and the vendor's library (`ModelClient`).

Importing this module and what it needs takes most of a second, so `vendors` does it in a worker thread at first use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as VendorModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from denizen.adapters.models.client import ClientEvent, ModelTarget
from denizen.adapters.models.failures import AttemptFailed, ModelFailure, classify_failure, cut_off, vendor_errors
from denizen.adapters.models.reply import DeltaReader, ReplyAuthor, TagSplitter, parse_reply, split_delta
from denizen.adapters.models.request import (
    build_messages,
    build_parameters,
    build_settings,
    build_tools,
    get_dialect,
    plan_cache_marks,
)
from denizen.domain.record import record
from denizen.domain.tool import ToolSpec
from denizen.ports.model import ModelRequest

_KEPT = 32


@record
class _Form:
    tools: tuple[ToolSpec, ...]
    definitions: list[ToolDefinition]


class ToolDefinitionCache:
    """The tools of agents in the form that a vendor sends, worked out once for each set of tools.

    The vendor's layer checks, copies and rewrites the schema of every tool for every request, which takes 20 to 50 us a
    tool, though the same few sets come again and again. The cache replaces the hook in which `vendor` rewrites request
    parameters: tools that come from `get` pass it as they are, everything else is rewritten as before.
    """

    def __init__(self, vendor: VendorModel) -> None:
        self._rewrite = vendor.customize_request_parameters
        self._forms: dict[tuple[str, ...], _Form] = {}
        vendor.customize_request_parameters = self._customize

    def get(self, tools: tuple[ToolSpec, ...]) -> list[ToolDefinition]:
        """Returns the tools, rewritten; the same list for the same tools."""
        names = tuple(tool.name for tool in tools)
        form = self._forms.get(names)
        if form is None or form.tools != tools:
            parameters = ModelRequestParameters(function_tools=build_tools(tools))
            form = _Form(tools, self._rewrite(parameters).function_tools)
            self._forms.pop(names, None)
            if len(self._forms) >= _KEPT:
                self._forms.pop(next(iter(self._forms)))
            self._forms[names] = form
        return form.definitions

    def _customize(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        tools = model_request_parameters.function_tools
        if not any(form.definitions is tools for form in self._forms.values()):
            return self._rewrite(model_request_parameters)
        return replace(self._rewrite(replace(model_request_parameters, function_tools=[])), function_tools=tools)


class SdkClient:
    """A model behind a vendor's library."""

    def __init__(self, target: ModelTarget, vendor: VendorModel) -> None:
        self._target = target
        self._vendor = vendor
        self._tools = ToolDefinitionCache(vendor)

    async def stream(self, request: ModelRequest, left_s: float) -> AsyncGenerator[ClientEvent]:
        """Makes one request (see `ModelClient`)."""
        target, spec, capabilities = self._target, self._target.spec, self._target.capabilities
        dialect = get_dialect(spec, target.name, capabilities)
        marks = plan_cache_marks(request, spec, capabilities)
        messages = build_messages(request.messages, dialect, prefill=capabilities.prefill, marks=marks)
        settings = build_settings(request, spec, capabilities, self._vendor, left_s)
        author = ReplyAuthor(target.name, spec.name, free=spec.facts.is_local, tags=spec.facts.wire.thinking_tags)
        splitter, deltas = TagSplitter() if author.tags else None, DeltaReader()
        try:
            parameters = build_parameters(request, capabilities, self._tools.get(request.tools))
            async with model_request_stream(
                self._vendor, messages, model_settings=settings, model_request_parameters=parameters, instrument=False
            ) as stream:
                async for event in stream:
                    yield None
                    for delta in split_delta(deltas.take(event), splitter):
                        yield delta
                response = stream.get()
        except vendor_errors() as error:
            raise AttemptFailed(classify_failure(error, target.failure_context)) from None
        # Only big providers can be trusted to say that they have finished; for the others an orderly end has to do.
        said = response.provider_details or {}
        is_finished = "finish_reason" in said or "refusal" in said or not spec.facts.wire.says_when_done
        if response.state != "complete" or not is_finished:
            raise AttemptFailed(ModelFailure(cut_off(target.failure_context), retryable=True))
        for delta in splitter.finish() if splitter else ():
            yield delta
        yield parse_reply(response, author)
