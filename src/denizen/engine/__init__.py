"""The use cases. Start with `turn.py`: the life of one message, readable top to bottom."""
