"""`/api/inspect`: a look inside for those who look after an instance; on loopback, without keys, for whoever is there.

Rooms that not everybody of a community may read are for owners, and so are the requests that would go to a model, since
they hold the texts of the prompt and of conversations. Reading changes nothing and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.approval import AskerReach
from denizen.domain.ids import AgentName, ConversationId, fresh
from denizen.domain.message import Author, TextPart, parts_to_json
from denizen.domain.room import Post
from denizen.domain.transcript import TranscriptBlock, TranscriptLine
from denizen.domain.turn import Sender, TurnRequest
from denizen.engine.chats.reading import WEB
from denizen.engine.inspection.rooms import RoomListing
from denizen.engine.prompt.room_transcript import RoomTranscript, join_lines
from denizen.web.api.chat import check_message, own_place
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access, Handler
from denizen_sdk.inspection import (
    BlockBoundary,
    ChannelInfo,
    ChannelMessage,
    FindingInfo,
    InspectedAccount,
    InspectedHealth,
    InspectedStatistics,
    PayloadInfo,
    ResetBlocks,
    TranscriptPart,
)

if TYPE_CHECKING:
    from denizen.engine.inspection.replay import PlannedRequest

PLATFORMS = ("discord", "github")
"""The platforms whose rooms are mirrored."""

_PLATFORM = QueryParameter(name="platform", description="The platform of the channels.", default="discord")
_AGENT = QueryParameter(name="agent", description="Name of an agent; empty for the default one.")
_BEFORE = QueryParameter(name="before", description="Only messages older than this one, by its id.", max_chars=40)
_LIMIT = QueryParameter(name="limit", default="50", low=1, high=500)
_MESSAGE = QueryParameter(name="message", description="The question that would be asked.", max_chars=10_000)
_SESSION = QueryParameter(name="session", description="Ask in this own session or chat.", default="default")
_CONVERSATION = QueryParameter(
    name="conversation", description="Ask in this conversation instead, by its id.", max_chars=100
)


class InspectionRoutes:
    """The routes for a look inside."""

    def __init__(self, deps: WebDependencies) -> None:
        self._instance = deps.instance
        self._plan = deps.engine.plan_requests
        self._queries = deps.engine.queries
        self._rooms = deps.engine.queries.rooms

    @property
    def routes(self) -> list[ApiRoute]:
        path, one = "/api/inspect", "/api/inspect/channels/{platform}/{channel}"

        def look(where: str, handler: Handler, operation: Operation) -> ApiRoute:
            return ApiRoute("GET", where, handler, Access.ADMIN, operation)

        return [
            look(f"{path}/health", self.health, Operation("What works and what does not", answer=InspectedHealth)),
            look(f"{path}/stats", self.stats, Operation("How much there is and runs now", answer=InspectedStatistics)),
            look(
                f"{path}/agents",
                self.list_accounts,
                Operation("How the agents' accounts on platforms stand", answer=list[InspectedAccount]),
            ),
            look(
                f"{path}/channels",
                self.list_channels,
                Operation("The mirrored channels", answer=list[ChannelInfo], query=(_PLATFORM,)),
            ),
            look(one, self.get_channel, Operation("A mirrored channel", answer=ChannelInfo)),
            look(
                f"{one}/messages",
                self.list_messages,
                Operation("Messages of a channel, oldest first", answer=list[ChannelMessage], query=(_BEFORE, _LIMIT)),
            ),
            look(
                f"{one}/boundaries",
                self.list_boundaries,
                Operation("Where the closed blocks of a transcript begin and end", answer=list[BlockBoundary]),
            ),
            look(
                f"{one}/transcript",
                self.get_transcript,
                Operation(
                    "The transcript of a channel as an agent would read it",
                    answer=list[TranscriptPart],
                    query=(_AGENT,),
                ),
            ),
            ApiRoute(
                "POST",
                f"{one}/reset-blocks",
                self.reset_blocks,
                Access.ADMIN,
                Operation("Forget the closed blocks of a transcript, which are cut anew", answer=ResetBlocks),
            ),
            *self._payload_routes,
        ]

    @property
    def _payload_routes(self) -> list[ApiRoute]:
        if self._plan is None:
            return []
        return [
            ApiRoute(
                "GET",
                "/api/inspect/payload",
                self.get_payload,
                Access.OWNER,
                Operation(
                    "The requests that a question would make; none of them is sent",
                    answer=list[PayloadInfo],
                    query=(_MESSAGE, _AGENT, _SESSION, _CONVERSATION),
                ),
            )
        ]

    # --- the instance ------------------------------------------------------------------------------------------------

    async def health(self, _: Request) -> Response:
        problems = await self._instance.find_problems()
        findings = await self._instance.diagnose(is_thorough=False)
        shown = tuple(FindingInfo(each.severity, each.what, each.fix) for each in findings)
        return JSONResponse(asdict(InspectedHealth(dict(problems), shown)))

    async def stats(self, request: Request) -> Response:
        now = await self._queries.load_overview()
        reader = get_principal(request)
        report = InspectedStatistics(
            running_turns=len(now.running),
            waiting_approvals=len(now.waiting),
            requests_today=now.spent.day_requests,
            spent_today_usd=str(now.spent.day_usd),
            spent_month_usd=str(now.spent.month_usd),
            posts={platform: await self._rooms.count_posts(platform) for platform in PLATFORMS},
            rooms={platform: len(await self._rooms.list_rooms(reader, platform)) for platform in PLATFORMS},
        )
        return JSONResponse(asdict(report))

    async def list_accounts(self, _: Request) -> Response:
        states = self._instance.list_accounts()
        rows = [InspectedAccount(each.platform, each.agent, each.is_listening, each.told) for each in states]
        return JSONResponse([asdict(row) for row in rows])

    # --- channels ----------------------------------------------------------------------------------------------------

    async def list_channels(self, request: Request) -> Response:
        found = await self._rooms.list_rooms(get_principal(request), _PLATFORM.read_text(request))
        return JSONResponse([asdict(channel_to_wire(each)) for each in found])

    async def get_channel(self, request: Request) -> Response:
        found = await self._rooms.get_room(get_principal(request), *_channel(request))
        return JSONResponse(asdict(channel_to_wire(found)))

    async def list_messages(self, request: Request) -> Response:
        posts = await self._rooms.list_posts(
            get_principal(request),
            *_channel(request),
            before=_BEFORE.read_text(request),
            limit=_LIMIT.read_number(request),
        )
        return JSONResponse([asdict(post_to_wire(post)) for post in posts])

    async def list_boundaries(self, request: Request) -> Response:
        blocks = await self._rooms.list_blocks(get_principal(request), *_channel(request))
        return JSONResponse([asdict(block_to_wire(block)) for block in blocks])

    async def get_transcript(self, request: Request) -> Response:
        agent = _AGENT.read_text(request)
        found = await self._rooms.load_transcript(get_principal(request), *_channel(request), agent)
        return JSONResponse([asdict(part) for part in transcript_to_wire(found)])

    async def reset_blocks(self, request: Request) -> Response:
        blocks = await self._rooms.reset_blocks(get_principal(request), *_channel(request))
        return JSONResponse(asdict(ResetBlocks(blocks)))

    # --- requests ----------------------------------------------------------------------------------------------------

    async def get_payload(self, request: Request) -> Response:
        asker, conversation = get_principal(request), _CONVERSATION.read_text(request)
        turn_request = TurnRequest(
            agent=AgentName(self._queries.get_agent(_AGENT.read_text(request)).name),
            place=own_place(WEB, asker, _SESSION.read_text(request)),
            sender=Sender(Author(asker.id, asker.name), asker, AskerReach.NOBODY),
            parts=(TextPart(check_message(_MESSAGE.read_text(request))),),
            platform_id=fresh("req"),
        )
        place = ConversationId(conversation) if conversation else None
        assert self._plan is not None  # as there is a route
        unsent = await self._plan(turn_request, place)
        return JSONResponse([asdict(payload_to_wire(each)) for each in unsent])


def _channel(request: Request) -> tuple[str, str]:
    """Returns the platform and the id of the channel in the path."""
    return request.path_params["platform"], request.path_params["channel"]


def channel_to_wire(listing: RoomListing) -> ChannelInfo:
    room = listing.room
    return ChannelInfo(
        platform=room.platform,
        id=room.id,
        name=room.name,
        kind=room.kind,
        guild=room.guild,
        guild_name=room.guild_name,
        parent=room.parent,
        blocks=listing.blocks,
    )


def post_to_wire(post: Post) -> ChannelMessage:
    edited = post.changes.edited_at
    return ChannelMessage(
        id=post.id,
        author_id=post.author.id,
        author=post.author.name,
        text=post.text,
        created_at=post.created_at.isoformat(),
        edited_at=edited.isoformat() if edited is not None else None,
        reply_to=post.reply_to,
        attachments=tuple(each.name for each in post.attachments),
    )


def block_to_wire(block: TranscriptBlock) -> BlockBoundary:
    return BlockBoundary(
        number=block.number,
        room=block.room,
        first=block.first,
        last=block.last,
        posts=block.posts,
        tokens=block.tokens,
        sha256=block.digest,
    )


def transcript_to_wire(transcript: RoomTranscript) -> Iterator[TranscriptPart]:
    for closed in (*transcript.parent, *transcript.blocks):
        yield TranscriptPart(closed.block.number, closed.block.tokens, join_lines(closed.lines))
    tail: list[TranscriptLine] = list(transcript.tail)
    yield TranscriptPart(None, sum(line.tokens for line in tail), join_lines(tail))


def payload_to_wire(unsent: PlannedRequest) -> PayloadInfo:
    request = unsent.request
    return PayloadInfo(
        model=unsent.model,
        segments=tuple(
            {"name": each.name, "stability": each.stability.name.lower(), "text": each.text}
            for each in request.segments
        ),
        tools=tuple(
            {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
            for spec in request.tools
        ),
        messages=tuple(
            {"role": message.role, "kind": message.kind, "parts": parts_to_json(message.parts)}
            for message in request.messages
        ),
        max_output_tokens=request.max_output_tokens,
        output_schema=dict(request.output_schema) if request.output_schema is not None else None,
    )
