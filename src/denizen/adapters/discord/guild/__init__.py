"""The guilds of an account: their members, and who may see and do what in their rooms."""
