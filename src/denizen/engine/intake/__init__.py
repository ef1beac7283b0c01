"""Step 2 of a turn: a message is written down with its turn, and waits in the queue of its conversation."""
