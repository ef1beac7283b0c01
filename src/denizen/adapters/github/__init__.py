"""GitHub behind `ports/channel`: an App or a user's token answers in issues, pull requests and discussions.

`account` is the channel, `events` reads what webhooks say, `reading` and `writing` speak REST, `discussions` the little
GraphQL that discussions need, `requests` sends everything, `credentials` has the tokens. `check` is for the doctor.
"""
