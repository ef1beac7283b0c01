"""The gate decides about every tool call and is the only one that runs tools.

`policy.py` holds what the configuration says, `decide.py` the decision, `limits.py` the rate limits, `door.py` the one
place from which a tool runs.
"""
