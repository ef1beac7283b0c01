"""The GitHub adapter: an App or a user's token answers in issues, pull requests and discussions. Implements
`ports.channel`.

Read `account` first. `events` parses webhooks and looks for missed messages, `comments` reads and writes threads
over REST, `discussions` over GraphQL. `api` sends requests with the right token, through the HTTP client of
`client`. `threads` has the ids of rooms and posts, `markdown` the text of a comment. `check` is for `denizen
doctor`.
"""
