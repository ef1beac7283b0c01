"""What an account does in a thread: comments, their edits and their end, and reactions."""

from __future__ import annotations

from denizen.adapters.github.api import Api
from denizen.adapters.github.discussions import add_comment, delete_comment, edit_comment, load_discussion
from denizen.adapters.github.discussions import react as react_in_discussion
from denizen.adapters.github.heard import comment_of
from denizen.adapters.github.payload import number_of, part_of
from denizen.adapters.github.requests import Call, items_of
from denizen.adapters.github.threads import PostId, PostKind, Thread, ThreadKind, post_id_of
from denizen.domain.errors import NotFound

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
SIGNS = {
    "\N{WHITE HEAVY CHECK MARK}": "+1",
    "\N{EYES}": "eyes",
    "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}": "confused",
}
"""What other platforms show as an emoji: GitHub has eight reactions and no others."""


async def add(api: Api, thread: Thread, body: str) -> str:
    """Writes a comment and returns the id of its post."""
    repository, number = thread.repository, thread.number
    if thread.kind is ThreadKind.DISCUSSION:
        discussion = await load_discussion(api, repository, number)
        made = await add_comment(api, discussion, thread, body)
        return comment_of(thread, made, PostKind.DISCUSSION_COMMENT).post.id
    if thread.kind is ThreadKind.REVIEW:
        path, kind = f"/repos/{repository}/pulls/{number}/comments/{thread.root}/replies", PostKind.REVIEW_COMMENT
    else:
        path, kind = f"/repos/{repository}/issues/{number}/comments", PostKind.COMMENT
    answer = await api.send(Call("POST", path, "comment", json={"body": body}), repository)
    return comment_of(thread, answer.body, kind).post.id


async def edit(api: Api, thread: Thread, post_id: str, body: str) -> None:
    """Raises NotFound when it is gone."""
    post = post_id_of(post_id)
    if post.kind is PostKind.DISCUSSION_COMMENT:
        discussion = await load_discussion(api, thread.repository, thread.number)
        await edit_comment(api, thread.repository, discussion.node_of(post_id), body)
        return
    await api.send(
        Call("PATCH", _comment_path(thread, post), "edit its comment", json={"body": body}), thread.repository
    )


async def delete(api: Api, thread: Thread, post_id: str) -> None:
    """What is gone needs no deleting."""
    post = post_id_of(post_id)
    try:
        if post.kind is PostKind.DISCUSSION_COMMENT:
            discussion = await load_discussion(api, thread.repository, thread.number)
            await delete_comment(api, thread.repository, discussion.node_of(post_id))
        else:
            await api.send(Call("DELETE", _comment_path(thread, post), "delete its comment"), thread.repository)
    except NotFound:
        return


async def react(api: Api, thread: Thread, post_id: str, reaction: str, *, on: bool, user_id: str) -> None:
    """Puts the account's reaction there, or takes it away. A review has none, so nothing is done to it."""
    post, reaction = post_id_of(post_id), SIGNS.get(reaction, reaction)
    if reaction not in REACTIONS or post.kind is PostKind.REVIEW:
        return
    if post.kind in (PostKind.DISCUSSION, PostKind.DISCUSSION_COMMENT):
        discussion = await load_discussion(api, thread.repository, thread.number)
        await react_in_discussion(api, thread.repository, discussion.node_of(post_id), reaction, on=on)
        return
    issue = f"/repos/{thread.repository}/issues/{thread.number}"
    path = f"{issue if post.kind is PostKind.OPENING else _comment_path(thread, post)}/reactions"
    if on:
        await api.send(Call("POST", path, "react", json={"content": reaction}), thread.repository)
        return
    call = Call("GET", path, "look at reactions", params={"content": reaction, "per_page": "100"})
    for row in items_of((await api.send(call, thread.repository)).body):
        if str(number_of(part_of(row, "user"), "id")) == user_id:
            gone = Call("DELETE", f"{path}/{number_of(row, 'id')}", "take its reaction away")
            await api.send(gone, thread.repository)


def _comment_path(thread: Thread, post: PostId) -> str:
    kind = "pulls" if post.kind is PostKind.REVIEW_COMMENT else "issues"
    return f"/repos/{thread.repository}/{kind}/comments/{post.number}"
