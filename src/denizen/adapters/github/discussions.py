"""Discussions, which REST does not offer: one GraphQL query reads a whole one, and mutations write.

Only the newest comments are read, and the newest answers to each; older ones are left out.
"""

from __future__ import annotations

from typing import Any

from denizen.adapters.github.api import GitHubApi
from denizen.adapters.github.client import Payload, get_number, get_object, get_text, list_items
from denizen.adapters.github.threads import (
    GitHubMessage,
    GitHubThread,
    PostKind,
    ThreadKind,
    ThreadTopic,
    read_comment,
    read_topic,
)
from denizen.domain.errors import NotFound
from denizen.domain.record import record

_COMMENT = "id databaseId body createdAt updatedAt authorAssociation author { ...who }"
_READ = f"""
query Discussion($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{
    discussion(number: $number) {{
      id number title {_COMMENT}
      labels(first: 20) {{ nodes {{ name }} }}
      comments(last: 50) {{ nodes {{ {_COMMENT} replies(last: 50) {{ nodes {{ {_COMMENT} }} }} }} }}
    }}
  }}
}}
fragment who on Actor {{ __typename login ... on User {{ databaseId }} ... on Bot {{ databaseId }} }}
"""
_ADD = """
mutation Add($discussion: ID!, $replyTo: ID, $body: String!) {
  addDiscussionComment(input: {discussionId: $discussion, replyToId: $replyTo, body: $body}) {
    comment { id databaseId createdAt }
  }
}
"""
_EDIT = """
mutation Edit($id: ID!, $body: String!) {
  updateDiscussionComment(input: {commentId: $id, body: $body}) { comment { id } }
}
"""
_DELETE = "mutation Delete($id: ID!) { deleteDiscussionComment(input: {id: $id}) { clientMutationId } }"
_REACT = """
mutation React($id: ID!, $content: ReactionContent!) {
  addReaction(input: {subjectId: $id, content: $content}) { clientMutationId }
}
"""
_UNREACT = """
mutation Unreact($id: ID!, $content: ReactionContent!) {
  removeReaction(input: {subjectId: $id, content: $content}) { clientMutationId }
}
"""


@record
class GitHubDiscussion:
    """A discussion. `nodes` maps post ids to GraphQL's ids; `roots` has those of the comments that can be answered."""

    node: str
    topic: ThreadTopic
    comments: tuple[GitHubMessage, ...]
    nodes: dict[str, str]
    roots: dict[int, str]

    def in_thread(self, thread: GitHubThread) -> list[GitHubMessage]:
        """Returns the messages of one room, oldest first. The discussion's own room has the opening and the top-level
        comments, each of which also begins a room of its own.
        """
        if thread.root:
            mine = [each for each in self.comments if each.thread == thread]
        else:
            mine = [self.topic.opening, *(each for each in self.comments if each.thread.root == each.number)]
        return sorted(mine, key=lambda each: each.post.id)

    def get_node(self, post_id: str) -> str:
        if post_id not in self.nodes:
            raise NotFound("There is no such comment in the discussion.", code="github_gone")
        return self.nodes[post_id]


async def load_discussion(api: GitHubApi, repository: str, number: int) -> GitHubDiscussion:
    """Loads a discussion. Raises NotFound."""
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name, "number": number}
    data = await api.query(_READ, variables, repository, "read a discussion")
    found = get_object(get_object(data, "repository"), "discussion")
    if not found:
        raise NotFound("There is no such discussion on GitHub.", code="github_gone")
    topic = read_topic(repository, _as_rest(found), PostKind.DISCUSSION)
    nodes = {topic.opening.post.id: get_text(found, "id")}
    roots: dict[int, str] = {}
    messages: list[GitHubMessage] = []
    for comment in list_items(get_object(found, "comments"), "nodes"):
        root = get_number(comment, "databaseId")
        roots[root] = get_text(comment, "id")
        thread = GitHubThread(repository, number, ThreadKind.DISCUSSION, root)
        for each in (comment, *list_items(get_object(comment, "replies"), "nodes")):
            one = read_comment(thread, _as_rest(each), PostKind.DISCUSSION_COMMENT)
            nodes[one.post.id] = get_text(each, "id")
            messages.append(one)
    return GitHubDiscussion(get_text(found, "id"), topic, tuple(messages), nodes, roots)


async def add_discussion_comment(
    api: GitHubApi, discussion: GitHubDiscussion, thread: GitHubThread, body: str
) -> Payload:
    """Adds an answer to the thread's comment, or a top-level comment, and returns it in REST's form."""
    reply_to = discussion.roots.get(thread.root)
    if thread.root and reply_to is None:
        raise NotFound("The comment is not in the discussion any more.", code="github_gone")
    variables = {"discussion": discussion.node, "replyTo": reply_to, "body": body}
    data = await api.query(_ADD, variables, thread.repository, "answer in a discussion")
    return _as_rest(get_object(get_object(data, "addDiscussionComment"), "comment"))


async def edit_discussion_comment(api: GitHubApi, repository: str, node: str, body: str) -> None:
    await api.query(_EDIT, {"id": node, "body": body}, repository, "edit its comment")


async def delete_discussion_comment(api: GitHubApi, repository: str, node: str) -> None:
    await api.query(_DELETE, {"id": node}, repository, "delete its comment")


async def react_in_discussion(api: GitHubApi, repository: str, node: str, reaction: str, *, on: bool) -> None:
    content = {"+1": "THUMBS_UP", "-1": "THUMBS_DOWN"}.get(reaction, reaction.upper())
    await api.query(_REACT if on else _UNREACT, {"id": node, "content": content}, repository, "react")


def _as_rest(node: Payload) -> dict[str, Any]:
    """Returns a node in REST's form, so that one parser suffices. Bots are named as REST names them."""
    author = get_object(node, "author")
    is_bot, login = get_text(author, "__typename") == "Bot", get_text(author, "login")
    user = {
        "id": get_number(author, "databaseId"),
        "login": f"{login}[bot]" if is_bot and not login.endswith("[bot]") else login,
        "type": "Bot" if is_bot else "User",
    }
    return {
        "id": get_number(node, "databaseId"),
        "number": get_number(node, "number"),
        "title": get_text(node, "title"),
        "body": get_text(node, "body"),
        "created_at": get_text(node, "createdAt"),
        "updated_at": get_text(node, "updatedAt"),
        "author_association": get_text(node, "authorAssociation"),
        "labels": list_items(get_object(node, "labels"), "nodes"),
        "user": user if author else {},
    }
