"""The chats of the web: who has which, what was said in them, their titles, forks and uploads.

`chats.Chats` is the door. `reading` gathers what a chat shows, `watching` follows what happens in one, `titles` makes
titles in durable runs, `forks` begins sessions from what was said before, `uploads` keeps files that people attach,
`removal` removes everything.
"""
