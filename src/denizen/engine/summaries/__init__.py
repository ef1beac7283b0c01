"""Summaries of the older part of a session: made in the background, or on command."""
