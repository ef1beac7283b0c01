"""When an agent speaks: which messages are for it, and which of those are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.attention import (
    AccountPolicy,
    AccountScope,
    AccountStaff,
    AllowedPeople,
    Attention,
    AuthorFacts,
    ConversationLimits,
    MessageFacts,
    RefusalReason,
    ThreadMode,
    Trigger,
    TriggerPolicy,
    assign_roles,
    decide_attention,
    may_talk,
)
from denizen.domain.principal import RoleName
from denizen.domain.room import Room, RoomKind

HALL = Room("discord", "10", "hall", guild="1")
THREAD = Room("discord", "11", "a thread", RoomKind.THREAD, guild="1", parent="10")
CLOSET = Room("discord", "12", "a private thread", RoomKind.PRIVATE_THREAD, guild="1", parent="10")
POST = Room("discord", "21", "a post", RoomKind.THREAD, guild="1", parent="20", parent_name="forum")
ELSEWHERE = Room("discord", "30", "hall", guild="2")
DIRECT = Room("discord", "40", "ana", RoomKind.DIRECT)

PLAIN = MessageFacts(room=HALL, author=AuthorFacts(id="100"), text="good morning")
MENTION = replace(PLAIN, mentions_me=True)
OF_A_BOT = replace(MENTION, author=AuthorFacts(id="100", is_bot=True))


def by(facts: MessageFacts, author_id: str = "101", *roles: str) -> MessageFacts:
    """The same message by somebody else."""
    return replace(facts, author=replace(facts.author, id=author_id, roles=frozenset(roles)))


def as_bot(facts: MessageFacts) -> MessageFacts:
    return replace(facts, author=replace(facts.author, is_bot=True))


def as_person(facts: MessageFacts) -> MessageFacts:
    return replace(facts, author=replace(facts.author, is_bot=False))


def ids(*texts: str) -> frozenset[str]:
    return frozenset(texts)


IGNORED = Attention()


def find_trigger(facts: MessageFacts, account_policy: AccountPolicy | None = None) -> Trigger | None:
    """Why it is answered; None when it is not for the agent. Not to be refused."""
    attention = decide_attention(facts, account_policy or AccountPolicy())
    assert attention.refusal is None
    assert attention.answers == (attention.trigger is not None)
    return attention.trigger


def test_talk_that_does_not_concern_the_agent_is_passed_over_in_silence():
    for room in (HALL, THREAD, CLOSET, POST, ELSEWHERE):
        assert decide_attention(replace(PLAIN, room=room), AccountPolicy()) == IGNORED


KEYWORD = AccountPolicy(triggers=TriggerPolicy(keywords=(re.compile("denizen", re.IGNORECASE),)))
# (what it is, facts, policy, why it is answered)
TRIGGERS = [
    ("mention", MENTION, AccountPolicy(), Trigger.MENTION),
    ("mention in a thread", replace(MENTION, room=THREAD), AccountPolicy(), Trigger.MENTION),
    ("mention in a post of a forum", replace(MENTION, room=POST), AccountPolicy(), Trigger.MENTION),
    ("direct message", replace(PLAIN, room=DIRECT), AccountPolicy(), Trigger.DIRECT),
    ("reply", replace(PLAIN, replies_to_me=True), AccountPolicy(), Trigger.REPLY),
    ("followed thread", replace(PLAIN, room=THREAD, is_followed=True), AccountPolicy(), Trigger.FOLLOWED),
    (
        "thread that was opened",
        replace(PLAIN, is_followed=True),
        AccountPolicy(triggers=TriggerPolicy(threads=ThreadMode.OPEN)),
        Trigger.FOLLOWED,
    ),
    (
        "role",
        replace(PLAIN, mentioned_roles=ids("7", "8")),
        AccountPolicy(triggers=TriggerPolicy(mention_roles=ids("8"))),
        Trigger.ROLE_MENTION,
    ),
    ("always", PLAIN, AccountPolicy(triggers=TriggerPolicy(always_channels=ids("10"))), Trigger.ALWAYS),
    (
        "thread of always",
        replace(PLAIN, room=THREAD),
        AccountPolicy(triggers=TriggerPolicy(always_channels=ids("10"))),
        Trigger.ALWAYS,
    ),
    (
        "thread itself",
        replace(PLAIN, room=THREAD),
        AccountPolicy(triggers=TriggerPolicy(always_channels=ids("11"))),
        Trigger.ALWAYS,
    ),
    ("keyword", replace(PLAIN, text="ask Denizen"), KEYWORD, Trigger.KEYWORD),
]
OFF = [
    ("mention", MENTION, AccountPolicy(triggers=TriggerPolicy(mentions=False))),
    ("direct message", replace(PLAIN, room=DIRECT), AccountPolicy(triggers=TriggerPolicy(direct_messages=False))),
    (
        "mention in a direct message",
        replace(MENTION, room=DIRECT),
        AccountPolicy(triggers=TriggerPolicy(direct_messages=False)),
    ),
    ("reply", replace(PLAIN, replies_to_me=True), AccountPolicy(triggers=TriggerPolicy(replies=False))),
    (
        "followed thread",
        replace(PLAIN, is_followed=True),
        AccountPolicy(triggers=TriggerPolicy(threads=ThreadMode.NONE)),
    ),
    (
        "role that is not configured",
        replace(PLAIN, mentioned_roles=ids("9")),
        AccountPolicy(triggers=TriggerPolicy(mention_roles=ids("8"))),
    ),
    ("always, of another channel", PLAIN, AccountPolicy(triggers=TriggerPolicy(always_channels=ids("20")))),
    ("keyword that is not there", PLAIN, KEYWORD),
]


@pytest.mark.proves("T34", "S35")
@pytest.mark.parametrize(
    ("facts", "account_policy", "why"), [row[1:] for row in TRIGGERS], ids=[row[0] for row in TRIGGERS]
)
def test_a_message_is_for_the_agent_when_it_turns_to_it(
    facts: MessageFacts, account_policy: AccountPolicy, why: Trigger
):
    assert find_trigger(facts, account_policy) is why


@pytest.mark.parametrize(("facts", "account_policy"), [row[1:] for row in OFF], ids=[row[0] for row in OFF])
def test_what_is_switched_off_or_not_configured_is_no_reason_to_speak(
    facts: MessageFacts, account_policy: AccountPolicy
):
    assert decide_attention(facts, account_policy) == IGNORED


def test_where_a_mention_does_not_count_a_followed_thread_still_does():
    facts = replace(MENTION, room=THREAD, is_followed=True)
    assert find_trigger(facts, AccountPolicy(triggers=TriggerPolicy(mentions=False))) is Trigger.FOLLOWED


@pytest.mark.proves("S35")
def test_people_in_a_followed_thread_need_no_mention_and_a_mentioned_role_that_is_configured_triggers():
    assert find_trigger(replace(PLAIN, room=THREAD, is_followed=True)) is Trigger.FOLLOWED
    assert find_trigger(replace(PLAIN, room=THREAD)) is None
    assert (
        decide_attention(replace(OF_A_BOT, mentions_me=False, room=THREAD, is_followed=True), AccountPolicy())
        == IGNORED
    )
    pinged = replace(PLAIN, mentioned_roles=ids("8"))
    assert find_trigger(pinged, AccountPolicy(triggers=TriggerPolicy(mention_roles=ids("8")))) is Trigger.ROLE_MENTION
    assert find_trigger(pinged) is None


@pytest.mark.proves("C-config-channels")
@pytest.mark.parametrize("room", [HALL, THREAD, CLOSET, POST, ELSEWHERE], ids=lambda room: room.name)
def test_an_empty_list_of_channels_admits_every_channel(room: Room):
    assert (
        find_trigger(replace(MENTION, room=room), AccountPolicy(scope=AccountScope(channels=frozenset())))
        is Trigger.MENTION
    )


@pytest.mark.proves("C14", "C-config-channels")
def test_a_thread_counts_through_its_parent():
    listed = AccountPolicy(scope=AccountScope(channels=ids("10")))
    for room in (HALL, THREAD, CLOSET):
        assert find_trigger(replace(MENTION, room=room), listed) is Trigger.MENTION
    for room in (POST, ELSEWHERE):
        assert decide_attention(replace(MENTION, room=room), listed) == IGNORED
    assert (
        find_trigger(replace(MENTION, room=POST), AccountPolicy(scope=AccountScope(channels=ids("20"))))
        is Trigger.MENTION
    )


def test_a_single_thread_may_be_listed_without_its_parent():
    listed = AccountPolicy(scope=AccountScope(channels=ids("11")))
    assert find_trigger(replace(MENTION, room=THREAD), listed) is Trigger.MENTION
    assert decide_attention(MENTION, listed) == IGNORED


@pytest.mark.proves("T34")
def test_mentions_are_answered_in_listed_guilds_only_and_direct_messages_belong_to_none():
    listed = AccountPolicy(scope=AccountScope(guilds=ids("1")))
    assert find_trigger(MENTION, listed) is Trigger.MENTION
    assert decide_attention(replace(MENTION, room=ELSEWHERE), listed) == IGNORED
    assert find_trigger(replace(PLAIN, room=DIRECT), listed) is Trigger.DIRECT


def test_guild_and_channel_must_both_be_listed_where_both_lists_are_there():
    assert decide_attention(MENTION, AccountPolicy(scope=AccountScope(guilds=ids("2"), channels=ids("10")))) == IGNORED
    assert decide_attention(MENTION, AccountPolicy(scope=AccountScope(guilds=ids("1"), channels=ids("30")))) == IGNORED
    assert (
        find_trigger(MENTION, AccountPolicy(scope=AccountScope(guilds=ids("1"), channels=ids("10")))) is Trigger.MENTION
    )


@pytest.mark.proves("C16")
def test_agents_answer_each_other_on_an_explicit_mention_and_not_on_a_mere_reply():
    assert find_trigger(OF_A_BOT) is Trigger.MENTION
    reply = replace(OF_A_BOT, mentions_me=False, replies_to_me=True)
    assert decide_attention(reply, AccountPolicy()) == IGNORED
    assert find_trigger(replace(OF_A_BOT, replies_to_me=True)) is Trigger.MENTION
    assert decide_attention(OF_A_BOT, AccountPolicy(triggers=TriggerPolicy(mentions=False))) == IGNORED


@pytest.mark.proves("C16")
@pytest.mark.parametrize(
    ("facts", "account_policy", "why"), [row[1:] for row in TRIGGERS], ids=[row[0] for row in TRIGGERS]
)
def test_nothing_but_a_mention_makes_an_agent_answer_a_bot(
    facts: MessageFacts, account_policy: AccountPolicy, why: Trigger
):
    attention = decide_attention(as_bot(facts), account_policy)
    assert attention == (Attention(Trigger.MENTION) if why is Trigger.MENTION else IGNORED)


@pytest.mark.proves("C-config-exchanges")
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 5])
def test_agents_talk_among_themselves_as_often_as_is_configured_and_three_times_by_default(limit: int | None):
    account_policy = AccountPolicy() if limit is None else AccountPolicy(limits=ConversationLimits(max_exchanges=limit))
    answered = [decide_attention(replace(OF_A_BOT, bot_replies=count), account_policy).answers for count in range(8)]
    assert answered == [count < (3 if limit is None else limit) for count in range(8)]
    refused = decide_attention(replace(OF_A_BOT, bot_replies=7), account_policy)
    assert refused == Attention(Trigger.MENTION, RefusalReason.EXCHANGES)


def test_people_are_answered_however_long_agents_have_talked():
    assert find_trigger(replace(MENTION, bot_replies=99)) is Trigger.MENTION


@pytest.mark.proves("V24")
def test_where_users_are_listed_others_are_refused():
    listed = AccountPolicy(scope=AccountScope(users=ids("100")))
    assert find_trigger(MENTION, listed) is Trigger.MENTION
    stranger = by(MENTION)
    assert decide_attention(stranger, listed) == Attention(Trigger.MENTION, RefusalReason.NOT_ALLOWED)
    assert decide_attention(replace(stranger, room=DIRECT), listed) == Attention(
        Trigger.DIRECT, RefusalReason.NOT_ALLOWED
    )
    assert decide_attention(replace(stranger, mentions_me=False), listed) == IGNORED, "nobody asked"


@pytest.mark.proves("V24")
def test_the_list_that_is_kept_by_command_counts_like_the_configured_one():
    kept = replace(MENTION, allowed=AllowedPeople(users=ids("100")))
    assert find_trigger(kept) is Trigger.MENTION
    assert decide_attention(by(kept), AccountPolicy()).refusal is RefusalReason.NOT_ALLOWED
    both = AccountPolicy(scope=AccountScope(users=ids("101")))
    assert find_trigger(by(kept), both) is Trigger.MENTION
    assert find_trigger(kept, both) is Trigger.MENTION


def test_users_and_roles_are_one_list_and_either_suffices():
    account_policy = AccountPolicy(scope=AccountScope(users=ids("100"), roles=ids("7")))
    assert find_trigger(MENTION, account_policy) is Trigger.MENTION
    member = by(MENTION, "101", "7", "8")
    assert find_trigger(member, account_policy) is Trigger.MENTION
    assert find_trigger(replace(member, allowed=AllowedPeople(roles=ids("8")))) is Trigger.MENTION
    assert decide_attention(by(member, "101", "8"), account_policy).refusal is RefusalReason.NOT_ALLOWED


@pytest.mark.parametrize(
    "account_policy",
    [
        AccountPolicy(staff=AccountStaff(owners=ids("101"))),
        AccountPolicy(staff=AccountStaff(admins=ids("101"))),
        AccountPolicy(staff=AccountStaff(admin_roles=ids("9"))),
    ],
    ids=["owner", "admin", "admin by role"],
)
def test_owners_and_admins_are_answered_whatever_the_lists_say(account_policy: AccountPolicy):
    asker = by(MENTION, "101", "9")
    listed = replace(account_policy, scope=AccountScope(users=ids("100"), roles=ids("7")))
    assert find_trigger(asker, listed) is Trigger.MENTION
    assert decide_attention(asker, AccountPolicy(scope=listed.scope)).refusal is RefusalReason.NOT_ALLOWED


@pytest.mark.proves("TW8")
def test_an_owner_is_an_admin_too_and_everybody_is_a_member_with_the_roles_of_the_platform():
    staff = AccountStaff(owners=ids("1"), admins=ids("2"), admin_roles=ids("9"))
    assert assign_roles("1", ids(), staff) == {RoleName.OWNER, RoleName.ADMIN, RoleName.MEMBER}
    assert assign_roles("2", ids("8"), staff) == {RoleName.ADMIN, RoleName.MEMBER, "role:8"}
    assert assign_roles("3", ids("9"), staff) == {RoleName.ADMIN, RoleName.MEMBER, "role:9"}
    assert assign_roles("3", ids("owner", "admin"), staff) == {RoleName.MEMBER, "role:owner", "role:admin"}


ROOMS = st.sampled_from([HALL, THREAD, CLOSET, POST, ELSEWHERE, DIRECT])
FEW_IDS = st.frozensets(st.sampled_from(["1", "2", "10", "11", "20", "100", "101", "7", "8"]), max_size=3)
FACTS = st.builds(
    MessageFacts,
    room=ROOMS,
    author=st.builds(AuthorFacts, id=st.sampled_from(["100", "101", "102"]), roles=FEW_IDS, is_bot=st.booleans()),
    text=st.sampled_from(["", "hello", "Denizen?"]),
    mentions_me=st.booleans(),
    mentioned_roles=FEW_IDS,
    replies_to_me=st.booleans(),
    is_followed=st.booleans(),
    bot_replies=st.integers(0, 5),
    allowed=st.builds(AllowedPeople, users=FEW_IDS, roles=FEW_IDS),
)
POLICIES = st.builds(
    AccountPolicy,
    staff=st.builds(AccountStaff, owners=FEW_IDS, admins=FEW_IDS, admin_roles=FEW_IDS),
    scope=st.builds(AccountScope, guilds=FEW_IDS, channels=FEW_IDS, users=FEW_IDS, roles=FEW_IDS),
    triggers=st.builds(
        TriggerPolicy,
        direct_messages=st.booleans(),
        mentions=st.booleans(),
        replies=st.booleans(),
        mention_roles=FEW_IDS,
        keywords=st.sampled_from([(), KEYWORD.triggers.keywords]),
        always_channels=FEW_IDS,
        threads=st.sampled_from(ThreadMode),
    ),
    limits=st.builds(ConversationLimits, max_exchanges=st.integers(0, 4)),
)


@given(FACTS, POLICIES)
def test_what_is_for_nobody_is_never_refused(facts: MessageFacts, account_policy: AccountPolicy):
    attention = decide_attention(facts, account_policy)
    assert attention.trigger is not None or attention.refusal is None
    assert attention.answers == (attention.trigger is not None and attention.refusal is None)


@given(FACTS, POLICIES)
def test_a_bot_never_gets_an_answer_without_a_mention_nor_beyond_the_limit(
    facts: MessageFacts, account_policy: AccountPolicy
):
    bot = as_bot(facts)
    attention = decide_attention(bot, account_policy)
    assert attention.trigger in (None, Trigger.MENTION)
    assert not attention.answers or (bot.mentions_me and bot.bot_replies < account_policy.limits.max_exchanges)
    assert attention.refusal in (None, RefusalReason.EXCHANGES)


@given(FACTS, POLICIES)
def test_a_person_is_refused_only_for_not_being_on_a_list_that_is_there(
    facts: MessageFacts, account_policy: AccountPolicy
):
    person = as_person(facts)
    attention = decide_attention(person, account_policy)
    allowed = person.author.id in account_policy.scope.users | person.allowed.users
    allowed |= bool(person.author.roles & (account_policy.scope.roles | person.allowed.roles))
    nobody_listed = not (
        account_policy.scope.users or account_policy.scope.roles or person.allowed.users or person.allowed.roles
    )
    runs_it = person.author.id in account_policy.staff.owners | account_policy.staff.admins or bool(
        person.author.roles & account_policy.staff.admin_roles
    )
    assert may_talk(person.author, person.allowed, account_policy) == (allowed or nobody_listed or runs_it)
    if attention.trigger is not None:
        assert attention.refusal is (
            None if may_talk(person.author, person.allowed, account_policy) else RefusalReason.NOT_ALLOWED
        )


@given(FACTS, POLICIES)
def test_outside_of_its_guilds_and_channels_the_agent_is_silent(facts: MessageFacts, account_policy: AccountPolicy):
    room, scope = facts.room, account_policy.scope
    outside = (scope.guilds and room.guild not in scope.guilds) or (
        scope.channels and not {room.id, room.parent} & scope.channels
    )
    if room.kind is not RoomKind.DIRECT and outside:
        assert decide_attention(facts, account_policy) == IGNORED


@given(FACTS, POLICIES)
def test_a_person_who_mentions_the_agent_is_heard_at_least_as_well_as_without(
    facts: MessageFacts, account_policy: AccountPolicy
):
    person = replace(as_person(facts), mentions_me=False)
    if decide_attention(person, account_policy).answers:
        assert decide_attention(replace(person, mentions_me=True), account_policy).answers


@given(FACTS, POLICIES)
def test_a_thread_is_treated_like_its_channel(facts: MessageFacts, account_policy: AccountPolicy):
    """As long as the thread's own id is on no list."""
    apart = frozenset({"11"})
    scope = replace(account_policy.scope, channels=account_policy.scope.channels - apart)
    always = account_policy.triggers.always_channels - apart
    triggers = replace(account_policy.triggers, always_channels=always)
    account_policy = replace(account_policy, scope=scope, triggers=triggers)
    in_channel = decide_attention(replace(facts, room=HALL), account_policy)
    assert decide_attention(replace(facts, room=THREAD), account_policy) == in_channel
