"""TODO guild."""
