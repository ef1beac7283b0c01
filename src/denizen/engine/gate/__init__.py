"""The gate decides about every tool call, whoever asked for it, and is the only one that runs tools.

decision        the verdict about a call: denied, approved, or for people to decide
executor        runs a call once it is approved; the only caller of `Toolset.call`
observer        a model's opinion about calls of tiers 2 and 3
approvals       calls that wait for people
approval_card   how people are asked
"""
