"""Issues that tasks mirror: how far each mirror has come, and what is linked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, JsonText, metadata, position_column, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, upsert, write_record
from denizen.domain.issue_mirror import IssueLink, LinkKind, MirrorState

issue_mirrors = sa.Table(
    "issue_mirrors",
    metadata,
    sa.Column("key", sa.Text(), primary_key=True),
    *texts("project_id", "repository"),
    *times("seen_at", "heard_at", "written_at", "looked_at"),
    sa.Column("is_imported", sa.Boolean(), nullable=False),
    sa.Column("imported", sa.Integer(), nullable=False),
    *texts("failure"),
)
issue_links = sa.Table(
    "issue_links",
    metadata,
    position_column(),
    sa.Column("mirror", sa.Text(), nullable=False),
    sa.Column("kind", EnumValue(LinkKind), nullable=False),
    sa.Column("local_id", sa.Text(), nullable=False),
    sa.Column("remote_id", sa.Text(), nullable=False),
    sa.Column("base", JsonText(), nullable=False),
    sa.Column("is_gone", sa.Boolean(), nullable=False),
    sa.UniqueConstraint("mirror", "kind", "remote_id", name="uq_issue_links_remote"),
    sa.UniqueConstraint("mirror", "kind", "local_id", name="uq_issue_links_local"),
)
"""A link stays when its task is deleted, so that the issue does not make another one."""

_STATES = sa.select(issue_mirrors).order_by(issue_mirrors.c.key)
_OF_MIRROR = sa.and_(
    issue_links.c.mirror == sa.bindparam("of", type_=sa.Text()),
    issue_links.c.kind == sa.bindparam("as_kind", type_=EnumValue(LinkKind)),
)
_WHICH = sa.bindparam("which", type_=sa.Text())
_BY_REMOTE = sa.select(issue_links).where(_OF_MIRROR, issue_links.c.remote_id == _WHICH)
_BY_LOCAL = sa.select(issue_links).where(_OF_MIRROR, issue_links.c.local_id == _WHICH)
_CHANGE = sa.update(issue_links).where(_OF_MIRROR, issue_links.c.local_id == _WHICH)

_read_state = partial(read_record, MirrorState)
_read_link = partial(read_record, IssueLink)


class SqlIssueMirrors(SqlRepository):
    """Implements `denizen.ports.issues.IssueMirrorRepository`."""

    async def list_states(self) -> Sequence[MirrorState]:
        return await self._list(_read_state, _STATES)

    async def put_state(self, state: MirrorState) -> None:
        await self._execute(upsert(self._dialect.insert, issue_mirrors), write_record(state))

    async def find_link(self, mirror: str, kind: LinkKind, *, remote_id: str) -> IssueLink | None:
        return await self._find(_read_link, _BY_REMOTE, {"of": mirror, "as_kind": kind, "which": remote_id})

    async def find_local(self, mirror: str, kind: LinkKind, *, local_id: str) -> IssueLink | None:
        return await self._find(_read_link, _BY_LOCAL, {"of": mirror, "as_kind": kind, "which": local_id})

    async def put_link(self, link: IssueLink) -> None:
        if not await self._add(issue_links, write_record(link)):
            change = _CHANGE.values(base=link.base, is_gone=link.is_gone)
            await self._change(change, {"of": link.mirror, "as_kind": link.kind, "which": link.local_id})
