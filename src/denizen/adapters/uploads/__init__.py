"""Uploads of chats: their files in a folder, and pictures encoded anew. Implements `ports.uploads`."""
