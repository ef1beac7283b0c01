"""Brings one mirror up to date: issues into tasks, and tasks into issues where the configuration says so.

A look reads what changed at the repository, and then compares the tasks that changed here (`domain/issue_mirror`). It
begins with reading: what a process that was killed had written there carries a mark, and is found again instead of
being written twice. What has come from the repository has an id that derives from it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from denizen.domain.authored_text import escape_markup
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NotAllowed, NotFound
from denizen.domain.issue_mirror import (
    Issue,
    IssueComment,
    IssueLink,
    IssueMirror,
    IssueState,
    LinkKind,
    LostValue,
    MirrorState,
    digest_task,
    digest_text,
    draft_issue,
    fill_task,
    make_base,
    merge_issue,
    note_pushed,
    read_state,
    to_text,
)
from denizen.domain.json import JsonObject
from denizen.domain.message import Author
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.project import (
    MAX_COMMENTS,
    MAX_FOUND,
    Editor,
    Task,
    TaskAction,
    TaskComment,
    TaskQuery,
    TaskStatus,
    make_id,
)
from denizen.engine.projects.board import ProjectBoards, check_room_for_task, check_size, note_change
from denizen.engine.projects.mirror_refusals import MirrorRefusals
from denizen.ports.issues import IssueTracker
from denizen.ports.store import UnitOfWork

MIRROR = Principal(PrincipalKind.HOOK, "issue_mirror", "issue mirror")
"""The author of what the mirror itself notes. That stays here."""
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
OVERLAP = timedelta(minutes=1)
"""Tasks of so long before are compared again, since another process may have written one late."""
CLOCKS_DIFFER = timedelta(hours=1)
"""The first look for changes goes back so far before the first reading."""
FAILURE_CHARS = 500
_REFUSED = (NotFound, NotAllowed, InvalidInput, LimitExceeded)
"""The errors that concern one issue, and keep nothing from the others."""
_NEW_ISSUES = "new issues"
"""The key of the refusal to open any issue."""

_log = logging.getLogger("denizen.tasks")


class MirrorRun:
    """One look at one mirror. `failure` tells of the last issue or task that was left out."""

    def __init__(
        self,
        boards: ProjectBoards,
        mirror: IssueMirror,
        state: MirrorState,
        tracker: IssueTracker,
        refusals: MirrorRefusals,
    ) -> None:
        self._boards, self._store, self._clock = boards, boards.store, boards.clock
        self._mirror = mirror
        self._state = state
        self._tracker = tracker
        self._refusals = refusals
        self.failure = ""

    # --- from the repository -----------------------------------------------------------------------------------------

    async def pull(self, version: str) -> str:
        """Reads what changed at the repository: at first the open issues. Returns the version of what was read."""
        if not self._state.is_imported:
            await self._import()
            return ""
        repository, since = self._mirror.repository, self._state.seen_at
        page = await self._tracker.list_issues(repository, since=since, known=version)
        version, newest = page.version, since
        while True:
            for issue in page.issues:
                await self._take(issue)
                newest = max(newest, issue.updated_at)
            if not page.next_page:
                break
            page = await self._tracker.list_issues(repository, page=page.next_page)
        comments = await self._tracker.list_comments(repository, since=self._state.heard_at)
        heard = self._state.heard_at
        for comment in comments:
            await self._hear(comment)
            heard = max(heard, comment.updated_at)
        await self._save(replace(self._state, seen_at=newest, heard_at=heard))
        return version if newest == since else ""

    async def _import(self) -> None:
        """Reads the open issues with their comments, and tells after each page how far it has come."""
        began, imported, page_url = self._clock.now(), 0, ""
        while True:
            page = await self._tracker.list_issues(self._mirror.repository, page=page_url)
            for issue in page.issues:
                imported += await self._take(issue, is_import=True)
            await self._save(replace(self._state, imported=imported))
            about = {"repository": self._mirror.repository, "issues": imported}
            _log.info("open issues are being read", extra=about)
            page_url = page.next_page
            if not page_url:
                break
        # What changed while it was reading is read again.
        since = began.replace(microsecond=0) - CLOCKS_DIFFER
        await self._save(replace(self._state, is_imported=True, seen_at=since, heard_at=since))

    async def _take(self, issue: Issue, *, is_import: bool = False) -> bool:
        """Brings an issue and its task together, and makes the task of one that is open. Returns whether it has one."""
        try:
            link = await self._find_link(issue)
            if link is None and issue.state is not IssueState.OPEN:
                return False
            if link is None or link.is_gone:
                return link is None and await self._add_task(issue, is_import=is_import)
            return await self._reconcile(link, issue)
        except _REFUSED as error:
            self._leave_out(f"issue #{issue.number}", error)
            return False

    async def _find_link(self, issue: Issue) -> IssueLink | None:
        """Finds it by the issue; or by the mark of one that was made for a task just before a process was killed."""
        async with self._store.work() as work:
            found = await work.issue_mirrors.find_link(self._mirror.key, LinkKind.ISSUE, remote_id=str(issue.number))
            if found is not None or not issue.mark:
                return found
            task = await work.projects.find_task(issue.mark)
            if task is None or task.project_id != self._state.project_id:
                return None
            known = await work.issue_mirrors.find_local(self._mirror.key, LinkKind.ISSUE, local_id=task.id)
            if known is not None:
                return replace(known, is_gone=True)  # a second issue of one task is left alone
            link = self._link(LinkKind.ISSUE, task.id, str(issue.number), {})
            await work.issue_mirrors.put_link(link)
            await work.projects.replace_task(replace(task, link=issue.url))
            return link

    async def _add_task(self, issue: Issue, *, is_import: bool) -> bool:
        who = self._as_principal(issue.author)
        now = self._clock.now()
        blank = Task(
            id=make_id("tsk", self._mirror.key, str(issue.number)),
            project_id=self._state.project_id,
            title="",
            made_by=Editor(who.key, who.name),
            created_at=issue.created_at,
            updated_at=now,
        )
        task = fill_task(blank, issue)
        comments: Sequence[IssueComment] = ()
        if issue.comments:  # read before the task is there: nobody would look for older ones again
            comments = await self._tracker.list_comments_on(self._mirror.repository, issue.number)
        async with self._store.work() as work:
            await check_room_for_task(work, task.project_id, len(task.title) + len(task.description))
            await work.projects.add_task(task)
            link = self._link(LinkKind.ISSUE, task.id, str(issue.number), make_base(task, issue))
            await work.issue_mirrors.put_link(link)
            known = {each.id: each for each in await work.projects.list_comments(task.id)}
            for comment in comments:
                try:
                    await self._write_comment(work, task, comment, known)
                except LimitExceeded as error:
                    self._leave_out(f"a comment on issue #{issue.number}", error)
            if not is_import:
                await note_change(self._boards, work, who, task, TaskAction.CREATED)
        await self._tell_changed()
        return True

    async def _hear(self, comment: IssueComment) -> None:
        """Takes over a comment on an issue that has a task. What was written for one here is only linked."""
        try:
            async with self._store.work() as work:
                task = await self._find_task(work, str(comment.number))
                if task is None:
                    return
                known = {each.id: each for each in await work.projects.list_comments(task.id)}
                if not await self._write_comment(work, task, comment, known):
                    return
                await work.projects.replace_task(replace(task, updated_at=self._clock.now()))
                await note_change(self._boards, work, self._as_principal(comment.author), task, TaskAction.UPDATED)
        except _REFUSED as error:
            self._leave_out(f"a comment on issue #{comment.number}", error)
        else:
            await self._tell_changed()

    async def _tell_changed(self) -> None:
        async with self._store.work(write=False) as work:
            project = await work.projects.find(self._state.project_id)
        if project is not None:
            self._boards.tell_changed(project.audience)

    async def _write_comment(
        self, work: UnitOfWork, task: Task, comment: IssueComment, comments: dict[str, TaskComment]
    ) -> bool:
        """Returns whether something was written; `comments` are those of the task, by id. Raises LimitExceeded before
        it writes.
        """
        text, digest = to_text(comment.text), digest_text(comment.text)
        link = await work.issue_mirrors.find_link(self._mirror.key, LinkKind.COMMENT, remote_id=comment.id)
        if link is None and (own := comments.get(comment.mark)):
            base: JsonObject = {"text": digest_text(own.text), "out": True}
            await work.issue_mirrors.put_link(self._link(LinkKind.COMMENT, own.id, comment.id, base))
            return False
        if not text or (link is not None and (link.base.get("out") or link.base.get("text") == digest)):
            return False
        known = comments.get(link.local_id) if link else None
        if link is not None and known is None:
            return False  # it was deleted here
        await check_size(work, task.project_id, len(text) - (len(known.text) if known else 0))
        if known is not None:
            await work.projects.replace_comment(replace(known, text=text))
        else:
            if len(comments) >= MAX_COMMENTS:
                raise LimitExceeded(f"There are {MAX_COMMENTS} comments already.", code="projects_full")
            who = self._as_principal(comment.author)
            known = TaskComment(
                id=make_id("cmt", self._mirror.key, comment.id),
                task_id=task.id,
                text=text,
                made_by=Editor(who.key, who.name),
                created_at=comment.created_at,
            )
            await work.projects.add_comment(known)
            comments[known.id] = known
        await work.issue_mirrors.put_link(self._link(LinkKind.COMMENT, known.id, comment.id, {"text": digest}))
        return True

    # --- to the repository -------------------------------------------------------------------------------------------

    async def push(self) -> None:
        """Writes the tasks that changed here. What is refused is tried again later, and keeps nothing from the rest."""
        newest, is_complete = self._state.written_at, True
        for task in await self._list_changed():
            version = task.updated_at.isoformat()
            if told := self._refusals.find(task.id, version):
                self.failure, is_complete = told, False
                continue
            try:
                is_complete &= await self._push_task(task)
                self._refusals.clear(task.id)
            except _REFUSED as error:
                self._leave_out(f"task {task.id}", error)
                self._refusals.note(task.id, self.failure, version)
                is_complete = False
            newest = max(newest, task.updated_at)
        if is_complete and newest > self._state.written_at:
            await self._save(replace(self._state, written_at=newest))

    async def _list_changed(self) -> Sequence[Task]:
        """Returns the tasks that may have changed since, the earliest change first."""
        wanted = TaskQuery(
            statuses=frozenset(TaskStatus),
            project_id=self._state.project_id,
            updated_after=max(self._state.written_at - OVERLAP, EARLIEST),
            limit=MAX_FOUND,
        )
        found: dict[str, Task] = {}
        async with self._store.work(write=False) as work:
            while True:
                rows = await work.projects.search_tasks(wanted, [self._state.project_id])
                found |= {each.id: each for each in rows}
                if len(rows) < MAX_FOUND:
                    return sorted(found.values(), key=lambda each: each.updated_at)
                wanted = replace(wanted, skip=wanted.skip + MAX_FOUND)

    async def _push_task(self, task: Task) -> bool:
        """Returns whether nothing of it is left to be written."""
        async with self._store.work(write=False) as work:
            link = await work.issue_mirrors.find_local(self._mirror.key, LinkKind.ISSUE, local_id=task.id)
            comments = await self._list_unwritten(work, task)
        if link is None:
            # One with the address of another issue belongs to a mirror that is no more.
            if task.link or read_state(task.status) is not IssueState.OPEN:
                return True
            if told := self._refusals.find(_NEW_ISSUES):
                self.failure = told
                return False
            issue = await self._create_issue(task)
            link = self._link(LinkKind.ISSUE, task.id, str(issue.number), make_base(task, issue))
            async with self._store.work() as work:
                await work.issue_mirrors.put_link(link)
                if (now := await work.projects.find_task(task.id)) is not None:
                    await work.projects.replace_task(replace(now, link=issue.url))
        elif link.is_gone:
            return True
        elif comments or link.base.get("task") != digest_task(task):
            try:
                issue = await self._tracker.get_issue(self._mirror.repository, int(link.remote_id))
            except NotFound:
                _log.warning("an issue is gone: its task stays", extra={"task": task.id, "issue": link.remote_id})
                async with self._store.work() as work:
                    await work.issue_mirrors.put_link(replace(link, is_gone=True))
                return True
            await self._reconcile(link, issue)
        await self._push_comments(comments, int(link.remote_id))
        return True

    async def _create_issue(self, task: Task) -> Issue:
        """Makes the issue of a task. Where the account may not, that is so for every other task."""
        try:
            issue = await self._tracker.create_issue(self._mirror.repository, draft_issue(task), mark=task.id)
        except NotAllowed as error:
            self._refusals.note(_NEW_ISSUES, error.explain()[:FAILURE_CHARS])
            raise
        self._refusals.clear(_NEW_ISSUES)
        return issue

    async def _list_unwritten(self, work: UnitOfWork, task: Task) -> Sequence[tuple[TaskComment, IssueLink | None]]:
        """Returns what was said here and does not stand there yet, with what it was linked to. What came from the
        repository, and what the mirror noted, stays.
        """
        found: list[tuple[TaskComment, IssueLink | None]] = []
        for each in await work.projects.list_comments(task.id):
            if each.made_by.author == MIRROR.key:
                continue
            link = await work.issue_mirrors.find_local(self._mirror.key, LinkKind.COMMENT, local_id=each.id)
            if link is None or (link.base.get("out") and link.base.get("text") != digest_text(each.text)):
                found.append((each, link))
        return found

    async def _push_comments(self, comments: Sequence[tuple[TaskComment, IssueLink | None]], number: int) -> None:
        for comment, link in comments:
            name = escape_markup(" ".join((comment.made_by.author_name or "somebody").split()))
            told, repository = f"**{name}**:\n\n{comment.text}", self._mirror.repository
            if link is None:
                written = await self._tracker.add_comment(repository, number, told, mark=comment.id)
            else:
                written = await self._tracker.change_comment(repository, link.remote_id, told, mark=comment.id)
            base: JsonObject = {"text": digest_text(comment.text), "out": True}
            async with self._store.work() as work:
                await work.issue_mirrors.put_link(self._link(LinkKind.COMMENT, comment.id, written.id, base))

    # --- both --------------------------------------------------------------------------------------------------------

    async def _reconcile(self, link: IssueLink, issue: Issue) -> bool:
        """Brings both sides together. Returns whether there is a task."""
        async with self._store.work() as work:
            task = await work.projects.find_task(link.local_id)
            if task is None or task.project_id != self._state.project_id:
                return False  # it was deleted, or moved to another project: the issue is left alone
            rendered = self._tracker.render(task.description)
            merge = merge_issue(link.base, task, issue, goes_out=self._mirror.goes_out, rendered=rendered)
            is_changed = merge.task != task
            if is_changed:
                more = len(merge.task.description) - len(task.description)
                await check_size(work, task.project_id, more)
                merge = replace(merge, task=replace(merge.task, updated_at=self._clock.now()))
                await work.projects.replace_task(merge.task)
                await note_change(self._boards, work, self._as_principal(issue.author), merge.task, TaskAction.UPDATED)
            for lost in merge.lost:
                await work.projects.add_comment(self._note_lost(task, lost))
            await work.issue_mirrors.put_link(replace(link, base=merge.base))
        if is_changed:
            await self._tell_changed()
        if not merge.draft.is_empty:
            number, draft = int(link.remote_id), merge.draft
            written = await self._tracker.change_issue(self._mirror.repository, number, draft, known=issue)
            async with self._store.work() as work:
                await work.issue_mirrors.put_link(replace(link, base=note_pushed(merge, written)))
        return True

    def _note_lost(self, task: Task, lost: LostValue) -> TaskComment:
        """Keeps a value that gave way, once."""
        return TaskComment(
            id=make_id("cmt", "lost", self._mirror.key, task.id, lost.field, digest_text(lost.value)),
            task_id=task.id,
            text=to_text(
                f"The {lost.field} was changed here and in {self._mirror.repository} at the same time. "
                f"The later change counts; the other one was:\n\n{lost.value}"
            ),
            made_by=Editor(MIRROR.key, MIRROR.name),
            created_at=self._clock.now(),
        )

    async def _find_task(self, work: UnitOfWork, number: str) -> Task | None:
        link = await work.issue_mirrors.find_link(self._mirror.key, LinkKind.ISSUE, remote_id=number)
        task = await work.projects.find_task(link.local_id) if link and not link.is_gone else None
        return task if task and task.project_id == self._state.project_id else None

    def _link(self, kind: LinkKind, local_id: str, remote_id: str, base: JsonObject) -> IssueLink:
        return IssueLink(mirror=self._mirror.key, kind=kind, local_id=local_id, remote_id=remote_id, base=base)

    def _leave_out(self, what: str, error: DenizenError) -> None:
        about = {"repository": self._mirror.repository, "what": what, **error.fields}
        _log.warning("left out of a mirror: %s", error.message, extra=about)
        self.failure = f"{what}: {error.explain()}"[:FAILURE_CHARS]

    async def _save(self, state: MirrorState) -> None:
        self._state = state
        async with self._store.work() as work:
            await work.issue_mirrors.put_state(state)

    def _as_principal(self, author: Author) -> Principal:
        """The principal of somebody at the repository, as in its threads."""
        return Principal(PrincipalKind.PLATFORM_USER, f"{self._mirror.platform}:{author.id}", author.name)
