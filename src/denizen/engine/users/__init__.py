"""People with accounts of their own: how they come in, how they are known, and what they change about themselves.

`registration` makes accounts, `credentials` knows callers by sign-ins and keys, `accounts` changes and deletes what is
there; `passwords` hashes.
"""
