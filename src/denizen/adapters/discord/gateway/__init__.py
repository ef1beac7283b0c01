"""The gateway: discord.py's client, its events, and the queues in which they wait for the listener."""
