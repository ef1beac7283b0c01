"""What stands in a thread, read over REST (or GraphQL for discussions): for catching up, for context, and for finding
what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from denizen.adapters.github.api import Api
from denizen.adapters.github.client import Call, items_of, number_of, part_of
from denizen.adapters.github.discussions import add_comment, delete_comment, edit_comment, load_discussion
from denizen.adapters.github.discussions import react as react_in_discussion
from denizen.adapters.github.threads import (
    Heard,
    PostId,
    PostKind,
    Thread,
    ThreadKind,
    Topic,
    comment_of,
    post_id_of,
    review_thread,
    topic_of,
)
from denizen.domain.errors import NotFound
from denizen.domain.room import is_newer


async def load_topic(api: Api, thread: Thread) -> Topic:
    """Raises NotFound."""
    if thread.kind is ThreadKind.DISCUSSION:
        return (await load_discussion(api, thread.repository, thread.number)).topic
    path = f"/repos/{thread.repository}/issues/{thread.number}"
    answer = await api.send(Call("GET", path, "read an issue"), thread.repository)
    return topic_of(thread.repository, answer.body)


async def list_after(api: Api, thread: Thread, after: str, limit: int, topic: Topic | None = None) -> list[Heard]:
    """The oldest `limit` messages behind that post, oldest first; with a topic what is no comment too: the opening, and
    the reviews of a pull request.
    """
    found = await _list_since(api, thread, after, topic)
    newer = sorted((each for each in found if is_newer(each.post.id, after)), key=lambda each: each.post.id)
    return newer[:limit]


async def list_before(api: Api, thread: Thread, before: str, limit: int) -> list[Heard]:
    """The newest `limit` messages before that post, or of all, oldest first. The opening counts."""
    repository = thread.repository
    if thread.kind is ThreadKind.ISSUE:
        topic = await load_topic(api, thread)
        call = Call("GET", f"/repos/{repository}/issues/{thread.number}/comments", "read comments")
        rows = await api.list_last(call, repository, limit if not before else 10 * limit)
        found = [topic.opening, *(comment_of(thread, row, PostKind.COMMENT) for row in rows)]
    else:
        found = await _list_since(api, thread, "")
    older = [each for each in found if not before or is_newer(before, each.post.id)]
    return sorted(older, key=lambda each: each.post.id)[-limit:]


async def list_newest(api: Api, thread: Thread, before: str, limit: int) -> Sequence[Heard]:
    """What was said just before a question: few requests, and nothing of the opening."""
    if thread.kind is not ThreadKind.ISSUE:
        found = await _list_since(api, thread, "")
    else:
        call = Call("GET", f"/repos/{thread.repository}/issues/{thread.number}/comments", "read comments")
        rows = await api.list_last(call, thread.repository, limit + 10)
        found = [comment_of(thread, row, PostKind.COMMENT) for row in rows]
    older = [each for each in found if is_newer(before, each.post.id) and not each.is_opening]
    return sorted(older, key=lambda each: each.post.id)[-limit:]


async def _list_since(api: Api, thread: Thread, after: str, topic: Topic | None = None) -> list[Heard]:
    repository, number = thread.repository, thread.number
    if thread.kind is ThreadKind.DISCUSSION:
        return (await load_discussion(api, repository, number)).in_thread(thread)
    since = {"since": _iso(post_id_of(after).created_at)} if len(after) > 1 else {}
    if thread.kind is ThreadKind.REVIEW:
        call = Call("GET", f"/repos/{repository}/pulls/{number}/comments", "read a review", params=since)
        rows = await api.list_all(call, repository)
        mine = [row for row in rows if review_thread(repository, number, row) == thread]
        return [comment_of(thread, row, PostKind.REVIEW_COMMENT) for row in mine]
    call = Call("GET", f"/repos/{repository}/issues/{number}/comments", "read comments", params=since)
    found = [comment_of(thread, row, PostKind.COMMENT) for row in await api.list_all(call, repository)]
    if topic is None:
        return found
    if topic.subject.kind == "pull request":
        call = Call("GET", f"/repos/{repository}/pulls/{number}/reviews", "read reviews")
        rows = await api.list_all(call, repository)
        found += [comment_of(thread, row, PostKind.REVIEW) for row in rows if row.get("body")]
    return [topic.opening, *found]


def _iso(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


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
