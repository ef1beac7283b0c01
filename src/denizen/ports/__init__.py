"""Protocols: what the engine needs from the outside world. Adapters and `denizen.testing` implement them."""
