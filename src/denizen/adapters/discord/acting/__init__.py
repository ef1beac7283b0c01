"""Things that an account does on Discord in a member's name (`ports.channel.Channel.act`).

    table.py        which actions there are, and the one place where they are done
    hand.py         what an action works with: the guild, the member who asked, and the checks that keep an action
                    within what both that member and the account may do
    lookup.py       finding people, roles, channels and messages by id, mention or name
    writing.py      posting a text with the pings that the asker has a right to, once
    messages.py     sending, editing, deleting, pinning and publishing messages
    marks.py        reactions
    polls.py        Discord's own polls
    threads.py      threads and posts of forums
    menus.py        choices by button or menu, which say their label to the agent
    role_menus.py   menus by which members give themselves roles
    powers.py       permissions by name; nobody hands out what they do not have
    moderation.py   warnings, time-outs, kicks, bans, purges, slow mode
    members.py      looking members up, their names and roles, direct messages to them
    channels.py     channels, categories, and who may what in them
    roles.py        roles themselves
    server.py       the guild as a whole, its emojis
    doors.py        invitations and webhooks
    events.py       scheduled events

An action asks `hand` for everything that it touches, and `hand` refuses what the asker may not do: they get nothing
from the account that they could not have done themselves.
"""
