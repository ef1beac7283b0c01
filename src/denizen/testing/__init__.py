"""What tests of Denizen and of skills share: real implementations of ports that run in memory or on loopback.

Nothing is imported here: each helper costs only those who import it.
"""
