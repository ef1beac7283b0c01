"""Step 5 of a turn: its prompt, which `context.build_context` puts together from what the other modules bring.

system_prompt        the system prompt as segments, most stable first
session_history      an assistant's own messages that fit the budget
participant_prompt   a participant's prompt: the room as it was said
room_transcript      closed blocks and tail of a room
transcript_messages  a transcript as messages of a model
notes                what only this turn shows: memories, talk around it, the subject
caching              how long a provider's cache is worth keeping
pictures             the pictures of the history
"""
