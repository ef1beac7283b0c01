"""Models and their providers at `/admin/models`: keys, live lists, names with fallbacks, prices, and trying one.

Admins look and try, owners change; keys are never shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.agent import Agent
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NotFound
from denizen.domain.principal import Principal, RoleName
from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.domain.usage import TokenPrice
from denizen.ports.model_configuration import (
    ConfiguredAlias,
    ConfiguredProvider,
    ModelConfiguration,
    ModelTrial,
    PricedModel,
    ProviderDraft,
    ProviderKindInfo,
)
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.config_sections import address
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setting_fields import join_path
from denizen_sdk.errors import ProblemDetails

MODELS = "/admin/models"
PROVIDER = f"{MODELS}/providers"
_EDITED = QueryParameter(name="edit", max_chars=200)
_PRICED = QueryParameter(name="price", max_chars=300)
TRIALS = RateLimit(calls=10, window_s=600)
"""How often one person may test a model: where no budget is set, nothing else bounds what tests cost."""
_EMPTY_PRICE: Mapping[str, str] = {"model": "", "input": "", "output": "", "cached": ""}
_NOTICES = {
    "default": "The model is chosen. Agents that name none use it from the next question on.",
    "alias": "The name is saved, and leads there from the next question on.",
    "unnamed": "The name is removed.",
    "price": "The price is saved, and counts from the next request on.",
    "unpriced": "Your price is removed. The one of the list counts again, where it has one.",
    "provider": "The provider is saved, and its models can be used.",
    "removed": "The provider is removed. Its key stays in secrets.env, where you can take it out.",
}


@record(kw_only=True)
class ModelsPage:
    """The context of `models.html`. `alias` and `price` hold what stands in their forms, `agents` the agents with the
    models that they name; `trial` is the outcome of a question that was just asked. `forms` are the addresses where
    what was detected about a model is corrected.
    """

    frame: Frame
    may_edit: bool
    providers: Sequence[ConfiguredProvider]
    aliases: Sequence[ConfiguredAlias]
    models: Sequence[PricedModel]
    names: Sequence[str]
    default_model: str
    agents: Sequence[Agent]
    alias: Mapping[str, str]
    price: Mapping[str, str]
    forms: Mapping[str, str]
    trial: ModelTrial | None = None
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ProviderPage:
    """The context of `provider.html`. Without a `provider` it is the form for a new one. Once it `is_listed`, `served`
    are the models that it lists now, and `list_problem` says why it lists none. `form` is the address of its other
    settings, or empty. With `is_key_lost` a key was typed that has to be typed again.
    """

    frame: Frame
    may_edit: bool
    provider: ConfiguredProvider | None
    kinds: Sequence[ProviderKindInfo]
    values: Mapping[str, str]
    form: str
    is_key_lost: bool
    is_listed: bool = False
    served: Sequence[str] = ()
    list_problem: ProblemDetails | None = None
    notice: str = ""
    problem: ProblemDetails | None = None


class ModelPages:
    """The routes of models and providers."""

    def __init__(self, deps: WebDependencies, models: ModelConfiguration) -> None:
        self._deps = deps
        self._models = models

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{PROVIDER}/{{name}}"
        return [
            SitePageRoute("GET", MODELS, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{MODELS}/test", self.test, Access.ADMIN),
            SitePageRoute("POST", f"{MODELS}/default", self.choose_default, Access.OWNER),
            SitePageRoute("POST", f"{MODELS}/aliases", self.save_alias, Access.OWNER),
            SitePageRoute("POST", f"{MODELS}/prices", self.save_price, Access.OWNER),
            SitePageRoute("GET", f"{MODELS}/add-provider", self.show_form, Access.OWNER),
            SitePageRoute("POST", f"{MODELS}/add-provider", self.add_provider, Access.OWNER),
            SitePageRoute("GET", one, self.show_provider, Access.ADMIN),
            SitePageRoute("POST", one, self.save_provider, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def test(self, request: Request) -> Response:
        """Asks the model a real question; what goes wrong is told with the reason and the remedy."""
        name, by = (await read_form(request)).get("model", ""), get_principal(request)
        try:
            await self._take_trial(by)
            if RoleName.OWNER not in by.roles:
                await self._check_offered(name)
            return await self._render(request, trial=await self._models.try_model(by, name))
        except DenizenError as error:
            return await self._render(request, error=error)

    async def _take_trial(self, by: Principal) -> None:
        """Counts a test. Raises LimitExceeded after `TRIALS`."""
        excess = await self._deps.engine.limiter.take(f"model-trial\x00{by.key}", [TRIALS])
        if excess is not None:
            raise LimitExceeded(
                f"You have tested models {TRIALS.calls} times within {TRIALS.window_s / 60:g} minutes.",
                code="rate_limited",
                fix=f"Try again in {math.ceil(excess.wait_s / 60)} min.",
            )

    async def _check_offered(self, name: str) -> None:
        """Raises NotFound for a model that neither the page nor the one of its provider has a test for."""
        aliases, models = self._models.list_aliases(), await self._models.list_models()
        if name in _list_names(aliases, models):
            return
        named, _, model = name.partition("/")
        provider = next((each for each in self._models.list_providers() if each.name == named), None)
        has_list = provider is not None and provider.kind != "embedded"
        if not has_list or model not in await self._models.list_provider_models(named):
            raise NotFound(
                f"There is no model '{name}' to test.",
                code="model_not_offered",
                why="Only owners test models that are on no list.",
                fix="Choose one of the page, or of its provider's page.",
            )

    async def choose_default(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            await self._models.put_default_model(get_principal(request), form.get("model", "").strip())
        except DenizenError as error:
            return await self._render(request, error=error)
        return lead_to(MODELS, done="default")

    async def save_alias(self, request: Request) -> Response:
        form, by = await read_form(request), get_principal(request)
        name = form.get("name", "").strip()
        try:
            if "remove" in form:
                await self._models.remove_alias(by, name)
                return lead_to(MODELS, done="unnamed")
            await self._models.put_alias(
                by, name, form.get("model", "").strip(), form.get("fallbacks", "").replace(",", " ").split()
            )
        except DenizenError as error:
            return await self._render(request, alias=form, error=error)
        return lead_to(MODELS, done="alias")

    async def save_price(self, request: Request) -> Response:
        form, by = await read_form(request), get_principal(request)
        model = form.get("model", "").strip()
        try:
            if "remove" in form:
                await self._models.put_price(by, model, None)
                return lead_to(MODELS, done="unpriced")
            cached = form.get("cached", "").strip()
            price = TokenPrice(
                input_usd=_read_usd(form.get("input", ""), "input"),
                output_usd=_read_usd(form.get("output", ""), "output"),
                cached_input_usd=_read_usd(cached, "cached input") if cached else None,
            )
            await self._models.put_price(by, model, price)
        except DenizenError as error:
            return await self._render(request, price=form, error=error)
        return lead_to(MODELS, done="price")

    async def show_form(self, request: Request) -> Response:
        return await self._render_provider(request, None, {"kind": request.query_params.get("kind", "")[:50]})

    async def add_provider(self, request: Request) -> Response:
        form = await read_form(request)
        draft = _read_draft(form, form.get("name", "").strip())
        try:
            if any(each.name == draft.name for each in self._models.list_providers()):
                raise InvalidInput(f"There is a provider '{draft.name}' already.", fix="Choose another name.")
            await self._models.put_provider(get_principal(request), draft)
        except DenizenError as error:
            return await self._render_provider(request, None, form, error)
        return lead_to(f"{PROVIDER}/{draft.name}", done="provider")

    async def show_provider(self, request: Request) -> Response:
        return await self._render_provider(request, self._find_provider(request), {})

    async def save_provider(self, request: Request) -> Response:
        form, provider = await read_form(request), self._find_provider(request)
        try:
            if "remove" in form:
                await self._models.remove_provider(get_principal(request), provider.name)
                return lead_to(MODELS, done="removed")
            await self._models.put_provider(get_principal(request), _read_draft(form, provider.name))
        except DenizenError as error:
            return await self._render_provider(request, provider, form, error)
        return lead_to(MODELS, done="provider")

    def _find_provider(self, request: Request) -> ConfiguredProvider:
        name = request.path_params["name"]
        found = next((each for each in self._models.list_providers() if each.name == name), None)
        if found is None:
            raise NotFound(f"There is no provider '{name}'.", code="provider_unknown", fix=f"{MODELS} lists them.")
        return found

    async def _render(
        self,
        request: Request,
        *,
        alias: Mapping[str, str] | None = None,
        price: Mapping[str, str] | None = None,
        trial: ModelTrial | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        problem, models, aliases = find_problem(error), await self._models.list_models(), self._models.list_aliases()
        edited, priced = _EDITED.read_text(request), _PRICED.read_text(request)
        page = ModelsPage(
            frame=build_frame(request, self._deps, path=MODELS),
            may_edit=RoleName.OWNER in get_principal(request).roles,
            providers=self._models.list_providers(),
            aliases=aliases,
            models=models,
            names=_list_names(aliases, models),
            default_model=self._models.default_model,
            agents=self._deps.engine.queries.list_agents(),
            alias={**_fill_alias(aliases, edited), **(alias or {})},
            price=_fill_price(models, priced) if price is None else {**_EMPTY_PRICE, **price},
            forms={
                each.info.name: address(join_path("models.overrides", each.info.name))
                for each in models
                if self._deps.configuration is not None
            },
            trial=trial,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/models.html", page, status=problem.status if problem else 200)

    async def _render_provider(
        self,
        request: Request,
        provider: ConfiguredProvider | None,
        typed: Mapping[str, str],
        error: DenizenError | None = None,
    ) -> Response:
        problem, list_problem, served = find_problem(error), None, ()
        values = {"name": "", "kind": "", "base_url": "", "model": "", "key_name": ""}
        if provider is not None:
            values |= {name: getattr(provider, name) for name in values}
        # Asked by the page itself once it is shown: a provider that does not answer takes its time.
        is_listed = provider is not None and "list" in request.query_params
        if provider is not None and is_listed:
            try:
                served = await self._models.list_provider_models(provider.name)
            except DenizenError as failure:
                list_problem = find_problem(failure)
        page = ProviderPage(
            frame=build_frame(request, self._deps, path=MODELS),
            may_edit=RoleName.OWNER in get_principal(request).roles,
            provider=provider,
            kinds=self._models.list_kinds(),
            values={**values, **{name: value for name, value in typed.items() if name in values}},
            form=address(join_path("models.providers", provider.name))
            if provider is not None and not provider.is_implied and self._deps.configuration is not None
            else "",
            is_key_lost=problem is not None and bool(typed.get("key")),
            is_listed=is_listed,
            served=served,
            list_problem=list_problem,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/provider.html", page, status=problem.status if problem else 200)


def _list_names(aliases: Sequence[ConfiguredAlias], models: Sequence[PricedModel]) -> list[str]:
    return [*(each.name for each in aliases), *(each.info.name for each in models)]


def _read_draft(form: Mapping[str, str], name: str) -> ProviderDraft:
    given = {key: form.get(key, "").strip() for key in ("kind", "base_url", "model", "key_name", "key")}
    return ProviderDraft(name=name, **given)


def _fill_alias(aliases: Sequence[ConfiguredAlias], name: str) -> Mapping[str, str]:
    found = next((each for each in aliases if each.name == name), None)
    if found is None:
        return {"name": "", "model": "", "fallbacks": ""}
    return {"name": found.name, "model": found.model, "fallbacks": "\n".join(found.fallbacks)}


def _fill_price(models: Sequence[PricedModel], name: str) -> Mapping[str, str]:
    """Returns what stands in the form for a model's price; empty for none."""
    found = next((each for each in models if each.info.name == name), None)
    if found is None:
        return {}
    price = found.own or found.listed
    if price is None:
        return {**_EMPTY_PRICE, "model": name}
    cached = "" if price.cached_input_usd is None else f"{price.cached_input_usd.normalize():f}"
    return {
        "model": name,
        "input": f"{price.input_usd.normalize():f}",
        "output": f"{price.output_usd.normalize():f}",
        "cached": cached,
    }


def _read_usd(text: str, what: str) -> Decimal:
    try:
        usd = Decimal(text.strip())
    except InvalidOperation:
        usd = Decimal("NaN")
    if not usd.is_finite() or usd < 0:
        raise InvalidInput(
            f"The price for {what} is no amount of money.",
            code="field_invalid",
            fix="Write USD for a million tokens, such as 2.50.",
        )
    return usd
