"""Discord's permission bits, and the permissions that depend on others."""

from __future__ import annotations

from enum import IntFlag


class DiscordPermission(IntFlag):
    """The permission bits by their documented names."""

    CREATE_INSTANT_INVITE = 1 << 0
    KICK_MEMBERS = 1 << 1
    BAN_MEMBERS = 1 << 2
    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_AUDIT_LOG = 1 << 7
    PRIORITY_SPEAKER = 1 << 8
    STREAM = 1 << 9
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    SEND_TTS_MESSAGES = 1 << 12
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_EXTERNAL_EMOJIS = 1 << 18
    VIEW_GUILD_INSIGHTS = 1 << 19
    CONNECT = 1 << 20
    SPEAK = 1 << 21
    MUTE_MEMBERS = 1 << 22
    DEAFEN_MEMBERS = 1 << 23
    MOVE_MEMBERS = 1 << 24
    USE_VAD = 1 << 25
    CHANGE_NICKNAME = 1 << 26
    MANAGE_NICKNAMES = 1 << 27
    MANAGE_ROLES = 1 << 28
    MANAGE_WEBHOOKS = 1 << 29
    MANAGE_GUILD_EXPRESSIONS = 1 << 30
    USE_APPLICATION_COMMANDS = 1 << 31
    REQUEST_TO_SPEAK = 1 << 32
    MANAGE_EVENTS = 1 << 33
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    USE_EXTERNAL_STICKERS = 1 << 37
    SEND_MESSAGES_IN_THREADS = 1 << 38
    USE_EMBEDDED_ACTIVITIES = 1 << 39
    MODERATE_MEMBERS = 1 << 40
    CREATE_GUILD_EXPRESSIONS = 1 << 43
    CREATE_EVENTS = 1 << 44
    SEND_VOICE_MESSAGES = 1 << 46
    SEND_POLLS = 1 << 49
    USE_EXTERNAL_APPS = 1 << 50
    PIN_MESSAGES = 1 << 51


P = DiscordPermission
ALL = ~P(0)
NONE = P(0)
EVERYONE = (
    P.CREATE_INSTANT_INVITE
    | P.ADD_REACTIONS
    | P.STREAM
    | P.VIEW_CHANNEL
    | P.SEND_MESSAGES
    | P.EMBED_LINKS
    | P.ATTACH_FILES
    | P.READ_MESSAGE_HISTORY
    | P.USE_EXTERNAL_EMOJIS
    | P.CONNECT
    | P.SPEAK
    | P.USE_VAD
    | P.CHANGE_NICKNAME
    | P.USE_APPLICATION_COMMANDS
    | P.CREATE_PUBLIC_THREADS
    | P.CREATE_PRIVATE_THREADS
    | P.USE_EXTERNAL_STICKERS
    | P.SEND_MESSAGES_IN_THREADS
    | P.SEND_VOICE_MESSAGES
    | P.SEND_POLLS
    | P.USE_EXTERNAL_APPS
)
"""The permissions of @everyone in a new guild."""

DIRECT = (
    P.VIEW_CHANNEL
    | P.SEND_MESSAGES
    | P.EMBED_LINKS
    | P.ATTACH_FILES
    | P.READ_MESSAGE_HISTORY
    | P.ADD_REACTIONS
    | P.USE_APPLICATION_COMMANDS
    | P.USE_EXTERNAL_EMOJIS
    | P.USE_EXTERNAL_STICKERS
    | P.SEND_POLLS
    | P.PIN_MESSAGES
    | P.MENTION_EVERYONE
    | P.SEND_VOICE_MESSAGES
    | P.SEND_TTS_MESSAGES
)
"""The permissions of both sides in a direct message."""

IN_TIMEOUT = P.VIEW_CHANNEL | P.READ_MESSAGE_HISTORY
"""The permissions that a member in time-out keeps."""

_ONLY_WHO_SPEAKS = P.MENTION_EVERYONE | P.SEND_TTS_MESSAGES | P.ATTACH_FILES | P.EMBED_LINKS


def combine_permissions(granted: DiscordPermission, *, thread: bool) -> DiscordPermission:
    """Removes permissions that depend on a missing one: nothing without view, no files without the right to send."""
    if not granted & P.VIEW_CHANNEL:
        return NONE
    sends = P.SEND_MESSAGES_IN_THREADS if thread else P.SEND_MESSAGES
    return granted if granted & sends else granted & ~_ONLY_WHO_SPEAKS
