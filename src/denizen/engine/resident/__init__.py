"""An agent at home on a platform: it hears what is said there, decides what is for it, and answers.

`resident.py` hears; `receiver.py` decides about one message; `missed.py` catches up; `showing.py` shows that work is
under way. What goes out is the business of `engine/outbox`.
"""
