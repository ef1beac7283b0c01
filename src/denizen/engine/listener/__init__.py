"""The listener of one account: it hears what is said on a platform, decides what is for the agent, and answers.

`listener.py` takes the events of the account. `connection.py` connects it and catches up on what was missed.
`turn_start.py` takes one message from its arrival to the submitted turn. `turn_display.py` shows that a turn is under
way. What goes out is sent by `engine/outbox`.
"""
