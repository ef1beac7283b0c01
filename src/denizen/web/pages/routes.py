"""All pages, and the files that they load."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import PublicMount
from denizen.web.pages.approvals import ApprovalPages
from denizen.web.pages.audit import AuditPages
from denizen.web.pages.chat import ChatPages
from denizen.web.pages.logs import LogPages
from denizen.web.pages.oauth import OAuthPages
from denizen.web.pages.overview import OverviewPages
from denizen.web.pages.page import StaticPageFiles
from denizen.web.pages.settings import SettingsPages
from denizen.web.pages.sign_in import SignInPages
from denizen.web.pages.sign_up import SignUpPages
from denizen.web.pages.tools import ToolPages
from denizen.web.pages.turns import TurnPages
from denizen.web.pages.usage import UsagePages


def list_pages(deps: WebDependencies) -> Sequence[BaseRoute]:
    return [
        *ChatPages(deps).routes,
        *SignInPages(deps).routes,
        *OverviewPages(deps).routes,
        *ApprovalPages(deps).routes,
        *TurnPages(deps).routes,
        *AuditPages(deps).routes,
        *ToolPages(deps).routes,
        *UsagePages(deps).routes,
        *(LogPages(deps, deps.instance.logs).routes if deps.instance.logs is not None else ()),
        *SignUpPages(deps).routes,
        *OAuthPages(deps).routes,
        *SettingsPages(deps).routes,
        PublicMount("/static", StaticPageFiles()),
    ]
