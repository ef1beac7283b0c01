"""Denizen: a self-hosted AI that lives in a community.

Nothing is imported here, so that `denizen --version` costs nothing. Start reading at `denizen/engine/turn.py`.
"""

__version__ = "0.3.0"
