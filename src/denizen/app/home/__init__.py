"""The home folder: where it is and the environment around it, its secrets, and how its files are written.

The lowest part of `app`: `settings` and `skill_loading` import it, and it imports neither.
"""
