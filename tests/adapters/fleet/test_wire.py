"""Records that go between processes of a fleet come back as they were."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_type_hints

import pytest

from denizen.adapters.fleet.remote_channel import CALLED
from denizen.adapters.fleet.wire import from_json, read_error, to_json, write_error
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent, OutgoingFile
from denizen.domain.errors import DenizenError, NotAllowed, Unavailable
from denizen.domain.events import TextAdded, ToolStarted, TurnEvent, TurnFinished
from denizen.domain.fleet import HeldAccount
from denizen.domain.ids import AgentName, CallId, TurnId
from denizen.domain.message import ToolCallPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.turn import TurnFailure, TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.channel import Channel, Membership, MembershipList, MentionNames

PLACE = Place("discord", "123", "t")
ANA = Principal(PrincipalKind.PLATFORM_USER, "1", "Ana", frozenset({"owner", "member"}))
MEMBERSHIP = Membership(community="g", name="G", roles=frozenset({"r"}), rooms=frozenset())
CONTENT = MessageContent(
    "hi",
    embeds=(EmbedCard("t", fields=(("a", "b"),), colour=3),),
    files=(OutgoingFile("a.bin", "x/y", b"\x00\xff\n"),),
    buttons=(MessageButton("Yes", action="a"),),
    ping_users=frozenset({"2", "1"}),
)
FINISHED = TurnFinished(
    turn_id=TurnId("t"),
    status=TurnStatus.FAILED,
    reply="é\u2028",
    usage=Usage(cost_usd=Decimal("0.0012")),
    failure=TurnFailure("No.", "bug"),
    calls=(ToolCallPart(id=CallId("c"), tool="x", args={"deep": [{"a": None}, 1.5, True]}),),
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (MessageContent, CONTENT),
        (PlatformAction, PlatformAction("pin", {"n": 1, "list": ["a", None], "at": "2026-01-01"})),
        (OnBehalfOf, OnBehalfOf(ANA, PLACE, "k")),
        (TurnEvent, FINISHED),
        (TurnEvent, TextAdded("a", retract=True)),
        (TurnEvent, ToolStarted(CallId("c"), "t", {"a": {"b": [1]}})),
        (MembershipList, MembershipList(found=[MEMBERSHIP], is_complete=False)),
        (MentionNames, MentionNames({"ana": "1"}, {"mods": "2"})),
        (tuple[HeldAccount, ...], (HeldAccount("discord", AgentName("ada"), "9"),)),
        (datetime | None, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        (datetime | None, None),
    ],
)
def test_what_is_written_is_read_as_it_was(kind: Any, value: object) -> None:
    assert from_json(kind, to_json(value)) == value


def test_an_error_keeps_its_words_and_leaves_its_context_behind() -> None:
    busy = Unavailable("Busy.", code="busy", why="w", fix="f", retry_after_s=2.5, secret="hidden")
    row = write_error(busy)
    assert "hidden" not in str(row)
    back = read_error(row)
    assert isinstance(back, Unavailable)
    assert (back.explain(), back.code, back.retry_after_s) == (busy.explain(), "busy", 2.5)
    assert type(read_error(write_error(NotAllowed("No.")))) is NotAllowed
    assert type(read_error({"family": "Elsewhere", "message": "x"})) is DenizenError


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError):
        to_json(object())


def test_every_method_of_accounts_can_be_called_from_afar_or_says_that_it_cannot() -> None:
    methods = {name for name, each in vars(Channel).items() if callable(each) and not name.startswith("_")}
    assert methods - CALLED == {"typing", "list_arrivals"}
    for name in CALLED:
        assert get_type_hints(getattr(Channel, name), localns={"Json": object})["return"] is not None
