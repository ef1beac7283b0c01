"""The links of the sidebar: which pages there are, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.record import record


@record
class NavigationLink:
    label: str
    path: str


@record
class NavigationGroup:
    """Links under a title, which may be empty."""

    title: str
    links: Sequence[NavigationLink]


_FOR_ALL = NavigationGroup(
    "", (NavigationLink("Chat", "/"), NavigationLink("Settings", "/settings"), NavigationLink("Help", "/help"))
)
_FOR_ADMINS: Sequence[NavigationGroup] = (
    NavigationGroup(
        "Knowledge",
        (
            NavigationLink("Sources", "/admin/sources"),
            NavigationLink("Snapshots", "/admin/snapshots"),
            NavigationLink("Search", "/admin/search"),
            NavigationLink("Shell", "/admin/shell"),
            NavigationLink("Gaps", "/admin/gaps"),
        ),
    ),
    NavigationGroup(
        "Set-up",
        (
            NavigationLink("Assistant", "/admin/assistant"),
            NavigationLink("Agents", "/admin/agents"),
            NavigationLink("Configuration", "/admin/config"),
        ),
    ),
)


def list_navigation(*, may_administrate: bool) -> Sequence[NavigationGroup]:
    """Returns the groups of links for a member, or for an owner or admin."""
    return (_FOR_ALL, *_FOR_ADMINS) if may_administrate else (_FOR_ALL,)
