"""The talk of a channel as documents: one for each day, one for each thread, and an index. Pure.

`engine/archive/channel_source` chooses what may be shown; here nothing is left out. Words of people stand in block
quotes, so that nobody can write a heading with another's name on it. Times are UTC.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date
from itertools import groupby

from denizen.domain.archiving import ArchivePolicy
from denizen.domain.document import front_matter, one_line, quote_yaml, slug
from denizen.domain.record import record
from denizen.domain.room import Post, Room
from denizen.domain.words import make_excerpt

EXCERPT_CHARS = 80

LinkPost = Callable[[Post], str]


@record
class RoomPosts:
    """A room and what was said in it, oldest first."""

    room: Room
    posts: Sequence[Post]


@record
class ChannelDocuments:
    """A channel with its threads. `policy` knows the addresses of posts."""

    channel: RoomPosts
    threads: Sequence[RoomPosts]
    policy: ArchivePolicy = field(default_factory=ArchivePolicy)

    @property
    def revision(self) -> str:
        """Changes with whatever the documents say."""
        digest = hashlib.sha256()
        for talk in (self.channel, *self.threads):
            digest.update(repr((talk.room.id, talk.room.name, talk.room.guild_name)).encode(errors="surrogatepass"))
            for post in talk.posts:
                digest.update(repr(_told(post)).encode(errors="surrogatepass"))
        return digest.hexdigest()[:40]

    def includes(self, earlier: ChannelDocuments) -> bool:
        """Whether nothing of that was taken back or changed since; more may have been said."""
        return earlier.told <= self.told

    @property
    def told(self) -> frozenset[object]:
        return frozenset(_told(post) for talk in (self.channel, *self.threads) for post in talk.posts)


def _told(post: Post) -> tuple[object, ...]:
    return (post.id, post.author.id, post.author.name, post.changes.edited_at, post.text)


def write_channel_documents(chronicle: ChannelDocuments) -> list[tuple[str, str]]:
    """Paths and texts; the index comes last."""
    channel, link = chronicle.channel, chronicle.policy.link_to
    spoken = [talk for talk in chronicle.threads if talk.posts]
    files = {talk.room.id: _thread_file(talk.room) for talk in spoken}
    days = [(day, list(posts)) for day, posts in groupby(channel.posts, lambda post: post.created_at.date())]
    known = {post.id: post for talk in (channel, *spoken) for post in talk.posts}
    documents = [(_day_file(day), _write_day(channel.room, day, posts, known, files, link)) for day, posts in days]
    documents += [(files[talk.room.id], _write_thread(channel.room, talk, known, link)) for talk in spoken]
    return [*documents, ("index.md", _write_index(channel.room, days, spoken, files))]


def _day_file(day: date) -> str:
    return f"{day.year}/{day.isoformat()}.md"


def _thread_file(room: Room) -> str:
    return f"threads/{slug(room.id)}-{slug(room.name)}.md"


def _title(room: Room) -> str:
    return f"#{one_line(room.name)}"


def _write_day(
    room: Room, day: date, posts: Sequence[Post], known: Mapping[str, Post], threads: Mapping[str, str], link: LinkPost
) -> str:
    title = f"{_title(room)} on {day.isoformat()}"
    head = front_matter(
        {
            "title": title,
            "channel": _title(room),
            "server": one_line(room.guild_name),
            "date": day.isoformat(),
            "messages": len(posts),
        }
    )
    # A thread that began with a message has its id.
    told = (
        _write_post(post, known, "%H:%M", link(post), f"../{threads[post.id]}" if post.id in threads else "")
        for post in posts
    )
    return _document(head, title, told)


def _write_thread(channel: Room, talk: RoomPosts, known: Mapping[str, Post], link: LinkPost) -> str:
    title = f"{_title(channel)} > {one_line(talk.room.name)}"
    first = talk.posts[0].created_at
    head = front_matter(
        {
            "title": title,
            "channel": _title(channel),
            "server": one_line(channel.guild_name),
            "date": first.date().isoformat(),
            "messages": len(talk.posts),
        }
    )
    return _document(head, title, (_write_post(post, known, "%Y-%m-%d %H:%M", link(post)) for post in talk.posts))


def _write_index(
    room: Room, days: Sequence[tuple[date, Sequence[Post]]], threads: Sequence[RoomPosts], files: Mapping[str, str]
) -> str:
    head = front_matter(
        {"title": _title(room), "server": one_line(room.guild_name), "days": len(days), "threads": len(threads)}
    )
    text = f"{head}\n# {_title(room)}\n\nWhat was said there, by days and threads, newest first. Times are UTC.\n"
    if days:
        lines = (f"- [{day.isoformat()}]({_day_file(day)}): {_count(posts)}" for day, posts in reversed(days))
        text += "\n" + "\n".join(lines) + "\n"
    if threads:
        newest = sorted(threads, key=lambda talk: talk.posts[0].created_at, reverse=True)
        lines = (
            f"- {talk.posts[0].created_at:%Y-%m-%d} [{_label(talk.room.name)}]({files[talk.room.id]}): "
            f"{_count(talk.posts)}"
            for talk in newest
        )
        text += "\n## Threads\n\n" + "\n".join(lines) + "\n"
    return text


def _document(head: str, title: str, said: Iterable[str]) -> str:
    return f"{head}\n# {title}\n\nTimes are UTC.\n\n" + "\n\n".join(said) + "\n"


def _write_post(post: Post, known: Mapping[str, Post], time: str, link: str, thread: str = "") -> str:
    about = [f"[message]({link})"] if link else []
    if post.changes.edited_at is not None:
        about.append(f"edited {post.changes.edited_at:%Y-%m-%d %H:%M}")
    if post.reply_to:
        about.append(_describe_reply(known.get(post.reply_to)))
    if thread:
        about.append(f"[thread]({thread})")
    lines = [f"## {post.created_at.strftime(time)} {_who(post)}", ""]
    lines += ["; ".join(about), ""] if about else []
    if post.text.strip():
        lines.append(quote_yaml(post.text.strip()))
    lines += [f"> [file] {one_line(each.name)} ({one_line(each.media_type)})" for each in post.attachments]
    return "\n".join(lines).rstrip()


def _describe_reply(post: Post | None) -> str:
    if post is None:
        return "in reply to a message that is not here"
    words = _label(make_excerpt(post.text, ())[:EXCERPT_CHARS])
    return f"in reply to {_who(post)}, {post.created_at:%Y-%m-%d %H:%M}: “{words}”"


def _who(post: Post) -> str:
    """Anybody may call themselves like somebody else, but not by their id."""
    return f"{one_line(post.author.name) or 'somebody'} (id {one_line(post.author.id)})"


def _label(text: str) -> str:
    return one_line(text).replace("[", "(").replace("]", ")")


def _count(posts: Sequence[Post]) -> str:
    return "1 message" if len(posts) == 1 else f"{len(posts)} messages"
