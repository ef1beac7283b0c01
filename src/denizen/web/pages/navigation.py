"""The links of the sidebar: which pages there are, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.record import record


@record
class NavigationLink:
    """A page. Those `for_owners` are not for admins."""

    label: str
    path: str
    for_owners: bool = False


@record
class NavigationGroup:
    """Links under a title, which may be empty."""

    title: str
    links: Sequence[NavigationLink]


_FOR_ALL = NavigationGroup("", (NavigationLink("Chat", "/"), NavigationLink("Settings", "/settings")))
_FOR_ADMINS: Sequence[NavigationGroup] = (
    NavigationGroup(
        "Running",
        (
            NavigationLink("Overview", "/admin"),
            NavigationLink("Ask about this server", "/admin/ask"),
            NavigationLink("Approvals", "/admin/approvals"),
            NavigationLink("Turns", "/admin/turns"),
            NavigationLink("Logs", "/admin/logs"),
            NavigationLink("Audit", "/admin/audit", for_owners=True),
        ),
    ),
    NavigationGroup("Set-up", (NavigationLink("Tools", "/admin/tools"), NavigationLink("Usage", "/admin/usage"))),
)


def list_navigation(*, may_administrate: bool, is_owner: bool = False) -> Sequence[NavigationGroup]:
    """Returns the groups of links for a member, or for an owner or admin."""
    if not may_administrate:
        return (_FOR_ALL,)
    return (
        _FOR_ALL,
        *(
            NavigationGroup(group.title, [link for link in group.links if is_owner or not link.for_owners])
            for group in _FOR_ADMINS
        ),
    )
