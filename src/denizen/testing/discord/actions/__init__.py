"""Everything that can be done in the simulated Discord. Each action checks rights, changes the store, and reports the
change.
"""
