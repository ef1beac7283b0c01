"""Things that an account does on Discord in a member's name (`ports.channel.Channel.act`).

    table.py      which actions there are, and the one place where they are done
    hand.py       what an action works with: the guild, the member who asked, and the checks that keep an action
                  within what both that member and the account may do
    lookup.py     finding people, roles, channels and messages by id, mention or name
    messages.py   messages, reactions, pins, polls, threads

An action asks `hand` for everything that it touches, and `hand` refuses what the asker may not do: they get nothing
from the account that they could not have done themselves.
"""
