"""The feeds as the call of a tool may see and change them: those of places where the asker may write."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotAllowed, Unavailable
from denizen.domain.feed import FeedFormat, FeedSubscription
from denizen.domain.ids import AgentName
from denizen.domain.principal import PrincipalKind
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.feeds.catalog import FeedCatalog, FeedRequest, unknown_feed
from denizen.ports.channel import Channel
from denizen.ports.toolset import CallScope
from denizen.skill import FollowedFeed


@record
class ScopedFeeds:
    """`denizen.skill.FeedAccess`, for the call of one scope."""

    catalog: FeedCatalog
    channels: ConnectedAccounts
    scope: CallScope

    async def subscribe(self, url: str, *, channel: str = "", format: str = "embed") -> FollowedFeed:  # noqa: A002
        if format not in list(FeedFormat):
            raise InvalidInput(
                f"There is no format '{format[:40]}'.", code="feed_format", fix=f"One of {', '.join(FeedFormat)}."
            )
        account, own = self._require_account()
        place, guild = self.scope.place, self.scope.guild
        if channel:
            if not guild:
                raise NotAllowed(
                    "From a direct talk, a feed is followed in this talk only.",
                    code="feed_place",
                    fix="Ask in the server, or leave the channel out.",
                )
            place = (await self.catalog.find_room(own.platform, channel, guild=guild)).place
        if not await own.may_write(place, self.scope.principal) or not await own.may_post(place):
            raise NotAllowed(
                "No feed is followed there.",
                code="feed_place",
                why="Items are posted only where both the asker and the account may write.",
                fix="Choose another channel.",
            )
        request = FeedRequest(
            url=url,
            place=place,
            guild=guild,
            account=account,
            format=FeedFormat(format),
            subscriber=self.scope.principal.key,
        )
        return show_feed(await self.catalog.subscribe(request))

    async def list(self) -> Sequence[FollowedFeed]:
        return [show_feed(each) for each in await self._list_visible()]

    async def unsubscribe(self, feed: str) -> None:
        if not any(each.id == feed for each in await self._list_visible()):
            raise unknown_feed(feed)
        await self.catalog.unsubscribe(feed)

    async def _list_visible(self) -> list[FeedSubscription]:
        """Those of this server, or of this direct talk, at places where the asker may write."""
        _, own = self._require_account()
        here: dict[Place, bool] = {}
        found: list[FeedSubscription] = []
        for each in await self.catalog.list_subscriptions():
            is_near = each.guild == self.scope.guild if self.scope.guild else each.place == self.scope.place
            if each.place.platform != own.platform or not is_near:
                continue
            if each.place not in here:
                here[each.place] = await own.may_write(each.place, self.scope.principal)
            if here[each.place]:
                found.append(each)
        return found

    def _require_account(self) -> tuple[AgentName, Channel]:
        """Returns the account that posts. Raises NotAllowed where there is none, Unavailable while it is away."""
        scope = self.scope
        if scope.account is None or scope.principal.kind is not PrincipalKind.PLATFORM_USER:
            raise NotAllowed(
                "No feed can be followed here.",
                code="feed_place",
                why="Items are messages on a platform such as Discord.",
                fix="Ask for it in a channel on Discord, or use `denizen feeds add`.",
            )
        own = self.channels.find(scope.place.platform, scope.account)
        if own is None:
            raise Unavailable(f"The account of {scope.account} is not connected.", code="account_away")
        return scope.account, own


def show_feed(feed: FeedSubscription) -> FollowedFeed:
    """Returns the subscription as tools and people see it."""
    return FollowedFeed(
        id=feed.id,
        title=feed.title,
        url=feed.url,
        channel=feed.place.thread or feed.place.channel,
        format=feed.format.value,
        problem=feed.poll.failure,
    )
