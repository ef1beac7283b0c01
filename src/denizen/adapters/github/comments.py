"""Comments, edits and reactions in a thread, over REST, or over GraphQL for discussions."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.adapters.github.api import GitHubApi
from denizen.adapters.github.client import GitHubRequest, format_time, get_number, get_object, list_items
from denizen.adapters.github.discussions import (
    add_discussion_comment,
    delete_discussion_comment,
    edit_discussion_comment,
    load_discussion,
    react_in_discussion,
)
from denizen.adapters.github.threads import (
    GitHubMessage,
    GitHubThread,
    PostId,
    PostKind,
    ThreadKind,
    ThreadTopic,
    parse_post_id,
    read_comment,
    read_topic,
    review_thread,
)
from denizen.domain.errors import NotFound
from denizen.domain.room import is_newer


async def load_topic(api: GitHubApi, thread: GitHubThread) -> ThreadTopic:
    """Returns the topic of a thread. Raises NotFound."""
    if thread.kind is ThreadKind.DISCUSSION:
        return (await load_discussion(api, thread.repository, thread.number)).topic
    answer = await api.send(GitHubRequest("GET", thread.issue_path, "read an issue"), thread.repository)
    return read_topic(thread.repository, answer.body)


async def list_after(
    api: GitHubApi, thread: GitHubThread, after: str, limit: int, topic: ThreadTopic | None = None
) -> list[GitHubMessage]:
    """Returns the oldest `limit` messages after that post, oldest first. With a topic the opening counts too, and so do
    the reviews of a pull request.
    """
    found = await _list_since(api, thread, after, topic)
    newer = sorted((each for each in found if is_newer(each.post.id, after)), key=lambda each: each.post.id)
    return newer[:limit]


async def list_before(api: GitHubApi, thread: GitHubThread, before: str, limit: int) -> list[GitHubMessage]:
    """Returns the newest `limit` messages before that post, or of all, oldest first. The opening counts."""
    if thread.kind is ThreadKind.ISSUE:
        topic = await load_topic(api, thread)
        call = GitHubRequest("GET", f"{thread.issue_path}/comments", "read comments")
        rows = await api.list_last(call, thread.repository, limit if not before else 10 * limit)
        found = [topic.opening, *(read_comment(thread, row, PostKind.COMMENT) for row in rows)]
    else:
        found = await _list_since(api, thread, "")
    older = [each for each in found if not before or is_newer(before, each.post.id)]
    return sorted(older, key=lambda each: each.post.id)[-limit:]


async def list_newest(api: GitHubApi, thread: GitHubThread, before: str, limit: int) -> Sequence[GitHubMessage]:
    """Returns the messages just before a question, in few requests and without the opening."""
    if thread.kind is not ThreadKind.ISSUE:
        found = await _list_since(api, thread, "")
    else:
        call = GitHubRequest("GET", f"{thread.issue_path}/comments", "read comments")
        rows = await api.list_last(call, thread.repository, limit + 10)
        found = [read_comment(thread, row, PostKind.COMMENT) for row in rows]
    older = [each for each in found if is_newer(before, each.post.id) and not each.is_opening]
    return sorted(older, key=lambda each: each.post.id)[-limit:]


async def _list_since(
    api: GitHubApi, thread: GitHubThread, after: str, topic: ThreadTopic | None = None
) -> list[GitHubMessage]:
    repository, number = thread.repository, thread.number
    if thread.kind is ThreadKind.DISCUSSION:
        return (await load_discussion(api, repository, number)).in_thread(thread)
    since = {"since": format_time(parse_post_id(after).created_at)} if len(after) > 1 else {}
    if thread.kind is ThreadKind.REVIEW:
        call = GitHubRequest("GET", f"/repos/{repository}/pulls/{number}/comments", "read a review", params=since)
        rows = await api.list_all(call, repository)
        mine = [row for row in rows if review_thread(repository, number, row) == thread]
        return [read_comment(thread, row, PostKind.REVIEW_COMMENT) for row in mine]
    call = GitHubRequest("GET", f"{thread.issue_path}/comments", "read comments", params=since)
    found = [read_comment(thread, row, PostKind.COMMENT) for row in await api.list_all(call, repository)]
    if topic is None:
        return found
    if topic.subject.kind == "pull request":
        call = GitHubRequest("GET", f"/repos/{repository}/pulls/{number}/reviews", "read reviews")
        rows = await api.list_all(call, repository)
        found += [read_comment(thread, row, PostKind.REVIEW) for row in rows if row.get("body")]
    return [topic.opening, *found]


# All reactions of GitHub, by the names in its API.
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
SIGNS = {
    "\N{WHITE HEAVY CHECK MARK}": "+1",
    "\N{EYES}": "eyes",
    "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}": "confused",
}
"""Emojis of other platforms to GitHub's reactions, of which there are only eight."""


async def add_comment(api: GitHubApi, thread: GitHubThread, body: str) -> str:
    """Writes a comment and returns the id of its post."""
    repository, number = thread.repository, thread.number
    if thread.kind is ThreadKind.DISCUSSION:
        discussion = await load_discussion(api, repository, number)
        made = await add_discussion_comment(api, discussion, thread, body)
        return read_comment(thread, made, PostKind.DISCUSSION_COMMENT).post.id
    if thread.kind is ThreadKind.REVIEW:
        path, kind = f"/repos/{repository}/pulls/{number}/comments/{thread.root}/replies", PostKind.REVIEW_COMMENT
    else:
        path, kind = f"{thread.issue_path}/comments", PostKind.COMMENT
    answer = await api.send(GitHubRequest("POST", path, "comment", json={"body": body}), repository)
    return read_comment(thread, answer.body, kind).post.id


async def edit_comment(api: GitHubApi, thread: GitHubThread, post_id: str, body: str) -> None:
    """Edits a comment. Raises NotFound when it is gone."""
    post = parse_post_id(post_id)
    if post.kind is PostKind.DISCUSSION_COMMENT:
        discussion = await load_discussion(api, thread.repository, thread.number)
        await edit_discussion_comment(api, thread.repository, discussion.get_node(post_id), body)
        return
    call = GitHubRequest("PATCH", _comment_path(thread, post), "edit its comment", json={"body": body})
    await api.send(call, thread.repository)


async def delete_comment(api: GitHubApi, thread: GitHubThread, post_id: str) -> None:
    """Deletes a comment. One that is gone already is no error."""
    post = parse_post_id(post_id)
    try:
        if post.kind is PostKind.DISCUSSION_COMMENT:
            discussion = await load_discussion(api, thread.repository, thread.number)
            await delete_discussion_comment(api, thread.repository, discussion.get_node(post_id))
        else:
            call = GitHubRequest("DELETE", _comment_path(thread, post), "delete its comment")
            await api.send(call, thread.repository)
    except NotFound:
        return


async def set_reaction(
    api: GitHubApi, thread: GitHubThread, post_id: str, reaction: str, *, on: bool, user_id: str
) -> None:
    """Adds or removes the account's reaction. Does nothing for a review, which can have none."""
    post, reaction = parse_post_id(post_id), SIGNS.get(reaction, reaction)
    if reaction not in REACTIONS or post.kind is PostKind.REVIEW:
        return
    if post.kind in (PostKind.DISCUSSION, PostKind.DISCUSSION_COMMENT):
        discussion = await load_discussion(api, thread.repository, thread.number)
        await react_in_discussion(api, thread.repository, discussion.get_node(post_id), reaction, on=on)
        return
    path = f"{thread.issue_path if post.kind is PostKind.OPENING else _comment_path(thread, post)}/reactions"
    if on:
        await api.send(GitHubRequest("POST", path, "react", json={"content": reaction}), thread.repository)
        return
    call = GitHubRequest("GET", path, "look at reactions", params={"content": reaction, "per_page": "100"})
    for row in list_items((await api.send(call, thread.repository)).body):
        if str(get_number(get_object(row, "user"), "id")) == user_id:
            gone = GitHubRequest("DELETE", f"{path}/{get_number(row, 'id')}", "take its reaction away")
            await api.send(gone, thread.repository)


def _comment_path(thread: GitHubThread, post: PostId) -> str:
    kind = "pulls" if post.kind is PostKind.REVIEW_COMMENT else "issues"
    return f"/repos/{thread.repository}/{kind}/comments/{post.number}"
