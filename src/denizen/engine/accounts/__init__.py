"""The accounts that are connected now, and actions on a platform through one of them."""
