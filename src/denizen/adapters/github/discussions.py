"""Discussions, which REST does not know: read whole by one GraphQL query, answered and marked by mutations.

Of a discussion the newest comments are read, and the newest answers to each; what is older is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from denizen.adapters.github.api import Api
from denizen.adapters.github.client import Payload, number_of, part_of, parts_of, text_of
from denizen.adapters.github.threads import Heard, PostKind, Thread, ThreadKind, Topic, comment_of, topic_of
from denizen.domain.errors import NotFound

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
_REACTIONS = {
    "+1": "THUMBS_UP",
    "-1": "THUMBS_DOWN",
    "laugh": "LAUGH",
    "confused": "CONFUSED",
    "heart": "HEART",
    "hooray": "HOORAY",
    "rocket": "ROCKET",
    "eyes": "EYES",
}


@dataclass(frozen=True, slots=True)
class Discussion:
    """`nodes` are GraphQL's ids, by those of the posts; `roots` those of the comments that can be answered."""

    node: str
    topic: Topic
    comments: tuple[Heard, ...]
    nodes: dict[str, str]
    roots: dict[int, str]

    def in_thread(self, thread: Thread) -> list[Heard]:
        """The messages of one room, oldest first. To the discussion itself belong the opening, and the comments that
        answer nothing, each of which begins a room of its own, too.
        """
        if thread.root:
            mine = [each for each in self.comments if each.thread == thread]
        else:
            mine = [self.topic.opening, *(each for each in self.comments if each.thread.root == each.number)]
        return sorted(mine, key=lambda each: each.post.id)

    def node_of(self, post_id: str) -> str:
        if post_id not in self.nodes:
            raise NotFound("There is no such comment in the discussion.", code="github_gone")
        return self.nodes[post_id]


async def load_discussion(api: Api, repository: str, number: int) -> Discussion:
    """Raises NotFound."""
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name, "number": number}
    data = await api.query(_READ, variables, repository, "read a discussion")
    found = part_of(part_of(data, "repository"), "discussion")
    if not found:
        raise NotFound("There is no such discussion on GitHub.", code="github_gone")
    topic = topic_of(repository, _as_rest(found), PostKind.DISCUSSION)
    nodes = {topic.opening.post.id: text_of(found, "id")}
    roots: dict[int, str] = {}
    heard: list[Heard] = []
    for comment in parts_of(part_of(found, "comments"), "nodes"):
        root = number_of(comment, "databaseId")
        roots[root] = text_of(comment, "id")
        thread = Thread(repository, number, ThreadKind.DISCUSSION, root)
        for each in (comment, *parts_of(part_of(comment, "replies"), "nodes")):
            one = comment_of(thread, _as_rest(each), PostKind.DISCUSSION_COMMENT)
            nodes[one.post.id] = text_of(each, "id")
            heard.append(one)
    return Discussion(text_of(found, "id"), topic, tuple(heard), nodes, roots)


async def add_comment(api: Api, discussion: Discussion, thread: Thread, body: str) -> Payload:
    """An answer to the thread's comment, or a comment of its own; as REST would tell of it."""
    reply_to = discussion.roots.get(thread.root)
    if thread.root and reply_to is None:
        raise NotFound("The comment is not in the discussion any more.", code="github_gone")
    variables = {"discussion": discussion.node, "replyTo": reply_to, "body": body}
    data = await api.query(_ADD, variables, thread.repository, "answer in a discussion")
    return _as_rest(part_of(part_of(data, "addDiscussionComment"), "comment"))


async def edit_comment(api: Api, repository: str, node: str, body: str) -> None:
    await api.query(_EDIT, {"id": node, "body": body}, repository, "edit its comment")


async def delete_comment(api: Api, repository: str, node: str) -> None:
    await api.query(_DELETE, {"id": node}, repository, "delete its comment")


async def react(api: Api, repository: str, node: str, reaction: str, *, on: bool) -> None:
    text = _REACT if on else _UNREACT
    await api.query(text, {"id": node, "content": _REACTIONS.get(reaction, "EYES")}, repository, "react")


def _as_rest(node: Payload) -> dict[str, Any]:
    """In the words of REST, so that one reader suffices. Bots are named as REST names them."""
    author = part_of(node, "author")
    is_bot, login = text_of(author, "__typename") == "Bot", text_of(author, "login")
    user = {
        "id": number_of(author, "databaseId"),
        "login": f"{login}[bot]" if is_bot and not login.endswith("[bot]") else login,
        "type": "Bot" if is_bot else "User",
    }
    return {
        "id": number_of(node, "databaseId"),
        "number": number_of(node, "number"),
        "title": text_of(node, "title"),
        "body": text_of(node, "body"),
        "created_at": text_of(node, "createdAt"),
        "updated_at": text_of(node, "updatedAt"),
        "author_association": text_of(node, "authorAssociation"),
        "labels": parts_of(part_of(node, "labels"), "nodes"),
        "user": user if author else {},
    }
