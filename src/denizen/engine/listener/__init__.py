"""The listener of one account: here a message of Discord or GitHub becomes a turn.

A new message goes from `listener.py` (the events of the account) to `messages.py` (mirrors it, and decides whether it
is for the agent, with the facts of `reading.py`) to `turn_start.py` (claims it and submits the turn). `arbiter.py`
chooses among several agents, `interactions.py` takes commands and buttons, `connection.py` connects and catches up on
what was missed, `turn_display.py` shows that a turn is under way. `engine/outbox` sends what goes out.
"""
