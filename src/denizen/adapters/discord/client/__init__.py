"""TODO client."""
