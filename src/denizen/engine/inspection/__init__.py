"""Read-only views of the system: what happened in a turn, what it would send, a replay, and statistics of usage."""
