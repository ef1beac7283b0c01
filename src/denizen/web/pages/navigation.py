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


_CHAT, _OVERVIEW = "/", "/admin"
_ASK = NavigationLink("Ask about this server", "/admin/ask")
_FOR_ALL = NavigationGroup(
    "",
    (
        NavigationLink("Chat", _CHAT),
        NavigationLink("Projects", "/projects"),
        NavigationLink("Your servers", "/guilds"),
        NavigationLink("Settings", "/settings"),
        NavigationLink("Help", "/help"),
    ),
)
_FOR_ADMINS: Sequence[NavigationGroup] = (
    NavigationGroup(
        "Running",
        (
            NavigationLink("Overview", _OVERVIEW),
            _ASK,
            NavigationLink("Approvals", "/admin/approvals"),
            NavigationLink("Questions", "/admin/questions", for_owners=True),
            NavigationLink("Work", "/admin/work"),
            NavigationLink("Turns", "/admin/turns"),
            NavigationLink("Schedules", "/admin/schedules"),
            NavigationLink("Workflows", "/admin/workflows", for_owners=True),
            NavigationLink("Events", "/admin/events", for_owners=True),
            NavigationLink("Logs", "/admin/logs"),
            NavigationLink("Audit", "/admin/audit", for_owners=True),
        ),
    ),
    NavigationGroup(
        "Knowledge",
        (
            NavigationLink("Sources", "/admin/sources"),
            NavigationLink("Snapshots", "/admin/snapshots"),
            NavigationLink("Search", "/admin/search"),
            NavigationLink("Shell", "/admin/shell"),
            NavigationLink("Gaps", "/admin/gaps"),
            NavigationLink("Archive", "/admin/archive", for_owners=True),
            NavigationLink("Memory", "/admin/memory", for_owners=True),
        ),
    ),
    NavigationGroup(
        "Set-up",
        (
            NavigationLink("First steps", "/admin/setup", for_owners=True),
            NavigationLink("Assistant", "/admin/assistant"),
            NavigationLink("Agents", "/admin/agents"),
            NavigationLink("Models", "/admin/models"),
            NavigationLink("Tools", "/admin/tools"),
            NavigationLink("Skills", "/admin/skills"),
            NavigationLink("MCP servers", "/admin/mcp"),
            NavigationLink("Gate", "/admin/gate"),
            NavigationLink("Usage", "/admin/usage"),
            NavigationLink("Users", "/admin/users"),
            NavigationLink("Keys", "/admin/keys"),
            NavigationLink("Configuration", "/admin/config"),
        ),
    ),
)


def find_link(navigation: Sequence[NavigationGroup], address: str) -> str:
    """Returns the path of the link that a page belongs to: that of the page itself, or else the nearest one above it.
    Pages below none have their own address.
    """
    paths = {link.path for group in navigation for link in group.links} - {_CHAT, _OVERVIEW}
    above = [path for path in paths if address.startswith(f"{path}/")]
    return address if address in paths else max(above, key=len, default=address)


def list_navigation(path: str, *, may_administrate: bool, is_owner: bool = False) -> Sequence[NavigationGroup]:
    """Returns the groups of links on the page at `path`, for a member, or for an owner or admin. The chat, whose list
    needs the room, has a link to the administration, and one to a chat about it.
    """
    if not may_administrate:
        return (_FOR_ALL,)
    if path == _CHAT:
        return (NavigationGroup("", (*_FOR_ALL.links, NavigationLink("Administration", _OVERVIEW), _ASK)),)
    return (
        _FOR_ALL,
        *(
            NavigationGroup(group.title, [link for link in group.links if is_owner or not link.for_owners])
            for group in _FOR_ADMINS
        ),
    )
