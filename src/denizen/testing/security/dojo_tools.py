"""AgentDojo's tools as an owner of Denizen would declare them: tier, what they read, what they bring about, and why.

Written by one rule, before any result was looked at, and the same for all suites: reading one's own is 0, reading what
others can write is 0 or 1 with the label of where it comes from; changing one's own things is 1 or 2; sending, paying,
booking, letting in, sharing and deleting are 3. What goes to others says by which of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from denizen.domain.json import Json
from denizen.domain.tool import Effect, Taint, Tier, ToolSpec
from denizen.testing.security.dojo import Function


@dataclass(frozen=True, slots=True)
class Declared:
    """`to` are the arguments that name who gets it."""

    tier: Tier
    why: str
    reads: frozenset[Taint] = frozenset()
    effects: frozenset[Effect] = frozenset()
    to: tuple[str, ...] = ()
    destructive: bool = False


def _own(why: str) -> Declared:
    return Declared(Tier.HARMLESS, why)


def _reads(label: Taint, why: str, *, tier: Tier = Tier.HARMLESS) -> Declared:
    return Declared(tier, why, reads=frozenset({label}))


def _sends(*to: str, why: str, tier: Tier = Tier.DANGEROUS, destructive: bool = False) -> Declared:
    return Declared(tier, why, effects=frozenset({Effect.SEND}), to=to, destructive=destructive)


def _commits(why: str, *effects: Effect) -> Declared:
    return Declared(Tier.DANGEROUS, why, effects=frozenset(effects))


def _deletes(why: str) -> Declared:
    return Declared(Tier.DANGEROUS, why, destructive=True)


_MAIL = _reads(Taint.MAIL, "anybody may have written the mail")
_INVITED = _reads(Taint.OTHERS, "others write the invitations")
_SHARED = _reads(Taint.DOCUMENT, "files are shared by others")
_PLACES = _reads(Taint.WEB, "a listing on the web, with reviews by anybody")
_TALK = _reads(Taint.OTHERS, "other people write there")
_BOOKING = _commits("books in the user's name")

DECLARED: Mapping[str, Declared] = {
    # mail
    "get_unread_emails": _MAIL,
    "get_sent_emails": _MAIL,  # answers quote what they answer
    "get_received_emails": _MAIL,
    "get_draft_emails": _MAIL,
    "search_emails": _MAIL,
    "search_contacts_by_name": _own("the user's address book"),
    "search_contacts_by_email": _own("the user's address book"),
    "send_email": _sends("recipients", "cc", "bcc", why="writes to anybody in the user's name"),
    "delete_email": _deletes("what is deleted is gone"),
    # calendar
    "get_current_day": _own("the date"),
    "search_calendar_events": _INVITED,
    "get_day_calendar_events": _INVITED,
    "create_calendar_event": _sends(
        "participants", tier=Tier.SENSITIVE, why="changes the user's calendar, and invites when it names others"
    ),
    "reschedule_calendar_event": _sends(tier=Tier.SENSITIVE, why="moves an event, and tells those who take part"),
    "add_calendar_event_participants": _sends("participants", why="invites others"),
    "cancel_calendar_event": _sends(destructive=True, why="deletes an event, and tells those who take part"),
    # files
    "search_files_by_filename": _SHARED,
    "search_files": _SHARED,
    "get_file_by_id": _SHARED,
    "list_files": _SHARED,
    "read_file": _reads(Taint.DOCUMENT, "bills and letters from others"),
    "create_file": Declared(Tier.LIMITED, "a new file of the user's own"),
    "append_to_file": Declared(Tier.SENSITIVE, "changes a file"),
    "delete_file": _deletes("what is deleted is gone"),
    "share_file": _sends("email", why="gives others access to a file"),
    # bank
    "get_iban": _own("the user's own"),
    "get_balance": _own("the user's own"),
    "get_most_recent_transactions": _reads(Taint.OTHERS, "whoever pays writes the subject"),
    "get_scheduled_transactions": _reads(Taint.OTHERS, "names and subjects that others gave"),
    "get_user_info": _own("the user's own address"),
    "send_money": _commits("pays"),
    "schedule_transaction": _commits("pays later", Effect.SCHEDULE),
    "update_scheduled_transaction": _commits("pays others, or more, later", Effect.SCHEDULE),
    "update_password": _commits("locks the user out"),
    "update_user_info": Declared(Tier.SENSITIVE, "changes the user's address"),
    # chat
    "get_channels": _reads(Taint.OTHERS, "others name the channels"),
    "get_users_in_channel": _reads(Taint.OTHERS, "others choose their names"),
    "read_channel_messages": _TALK,
    "read_inbox": _TALK,
    "send_direct_message": _sends("recipient", why="writes to others in the user's name"),
    "send_channel_message": _sends("channel", why="writes to others in the user's name"),
    "add_user_to_channel": _commits("lets somebody read a channel"),
    "invite_user_to_slack": _sends("user_email", why="lets somebody in, and writes to them"),
    "remove_user_from_slack": _deletes("throws somebody out"),
    "get_webpage": _reads(Taint.WEB, "as Denizen's own fetch_url", tier=Tier.LIMITED),
    "post_webpage": _sends("url", why="sends to anywhere"),
    # travel
    "get_user_information": Declared(
        Tier.LIMITED, "shows the numbers of passport and cards", effects=frozenset({Effect.REVEAL})
    ),
    "get_all_hotels_in_city": _PLACES,
    "get_hotels_prices": _PLACES,
    "get_rating_reviews_for_hotels": _PLACES,
    "get_hotels_address": _PLACES,
    "get_all_restaurants_in_city": _PLACES,
    "get_cuisine_type_for_restaurants": _PLACES,
    "get_restaurants_address": _PLACES,
    "get_rating_reviews_for_restaurants": _PLACES,
    "get_dietary_restrictions_for_all_restaurants": _PLACES,
    "get_contact_information_for_restaurants": _PLACES,
    "get_price_for_restaurants": _PLACES,
    "check_restaurant_opening_hours": _PLACES,
    "get_all_car_rental_companies_in_city": _PLACES,
    "get_car_types_available": _PLACES,
    "get_rating_reviews_for_car_rental": _PLACES,
    "get_car_fuel_options": _PLACES,
    "get_car_rental_address": _PLACES,
    "get_car_price_per_day": _PLACES,
    "get_flight_information": _PLACES,
    "reserve_hotel": _BOOKING,
    "reserve_restaurant": _BOOKING,
    "reserve_car_rental": _BOOKING,
}


def spec_of(function: Function) -> ToolSpec:
    """A tool that the table does not have is of unknown risk."""
    declared = DECLARED.get(function.name)
    parameters: dict[str, Json] = function.parameters.model_json_schema()
    if declared is None:
        return ToolSpec(function.name, function.description, parameters)
    return ToolSpec(
        function.name,
        function.description,
        parameters,
        tier=declared.tier,
        destructive=declared.destructive,
        reads=declared.reads,
        effects=declared.effects,
        destinations=declared.to,
    )
