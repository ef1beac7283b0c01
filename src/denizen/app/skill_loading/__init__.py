"""Loading the owner's own skills: folders below `skills/` in the home folder.

`folder` reads one into memory, pins its content and reads its manifest; `registry` says which skills there are and
loads those that are enabled; `markdown` offers Markdown skills to agents; `editor` writes and deletes skills; `check`
and `check_child` find out whether one works; `review` enables and refuses, and `history` keeps who did what and the
contents before. (The skills that ship with Denizen are in `denizen.builtin_skills`, what a
skill is written with in `denizen.skill`.)

Nothing runs because it lies in the folder: the configuration names a skill with the sha256 of its whole content, and
only exactly this content is loaded. Enabled Python skills run inside Denizen, as built-in ones do, with all that
Denizen may do; their permissions keep honest code honest and are no sandbox. So a change of one byte switches a skill
off until its owner has looked at it and enabled it again, and what a model writes is never enabled by it.
"""
