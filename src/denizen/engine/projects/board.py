"""The board: projects, tasks, comments and documents, as one reader may see and change them.

Tools, commands, the command line, the API and the page all come through here, so that every change counts for the
watcher and for those who look at a page, wherever it was made. What may not be read and what does not exist give the
same NotFound.

Whoever may read a project may add to it and change its tasks. It is its author, or an owner or admin, who changes a
project and deletes things. A turn that has read what others wrote leaves words of its own only where all who read them
could have read along, does nothing in an admin's name, deletes nothing, and adds to what somebody else wrote at most:
what it has read may have told it to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded, NotAllowed
from denizen.domain.ids import derive, fresh
from denizen.domain.issue_mirror import IssueMirror, MirrorState
from denizen.domain.principal import Principal
from denizen.domain.project import (
    EVERYBODY,
    MAX_COMMENTS,
    MAX_DOCUMENTS,
    MAX_PROJECT_CHARS,
    MAX_PROJECTS,
    MAX_PROJECTS_OF_PERSON,
    MAX_TASKS,
    AudienceFilter,
    Editor,
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectDraft,
    Task,
    TaskAction,
    TaskChange,
    TaskComment,
    TaskDetails,
    TaskDraft,
    TaskQuery,
    change_project,
    change_task,
    check_comment,
    check_document,
    check_project,
    check_task,
    comment_not_found,
    document_not_found,
    keeps_text,
    make_id,
    pick_project,
    project_key,
    project_not_found,
    task_not_found,
)
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.projects.reader import ProjectReader, ReaderDirectory
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope

DEFAULT_NAME = "Tasks"
"""The name of the project of tasks that name none."""
LISTED = 1000


class ProjectBoards:
    """Opens boards, and watches them. `changed` is sent after each change of this process."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, readers: ReaderDirectory) -> None:
        self.runtime = runtime
        self.store = store
        self.clock = clock
        self.readers = readers
        self.changed = Signal()
        self._changes = Counter[str]()
        self._watches: list[BoardWatch] = []

    def tell_changed(self, audience: str) -> None:
        """Tells those who wait for changes of what this audience reads. Called behind each of them."""
        self._changes[audience] += 1
        self.changed.send()
        for watch in self._watches:
            if watch.readers.allows(audience):
                watch.changed.send()

    def open(self, scope: CallScope) -> ProjectBoard:
        """The board for the call of a turn."""
        return ProjectBoard(self, lambda: self.readers.find(scope), key=scope.options.idempotency_key)

    def open_for(self, principal: Principal, *, key: str = "") -> ProjectBoard:
        """The board for one person outside of turns. With the same `key` the same thing is made once."""
        return ProjectBoard(self, lambda: self.readers.find_person(principal), key=key)

    def open_as(self, find_reader: Callable[[], Awaitable[ProjectReader]], *, key: str = "") -> ProjectBoard:
        """The board for another reader."""
        return ProjectBoard(self, find_reader, key=key)

    async def find_mirror(self, project_id: str) -> tuple[IssueMirror, MirrorState] | None:
        """Returns the mirror of a project, and how far it has come; None for a project without one."""
        mirrors = {each.key: each for each in self.runtime.current.issue_mirrors}
        if not mirrors:
            return None
        async with self.store.work(write=False) as work:
            states = await work.issue_mirrors.list_states()
        found = next((each for each in states if each.key in mirrors and each.project_id == project_id), None)
        return (mirrors[found.key], found) if found else None

    async def find_outside(self, project_id: str) -> str:
        """Returns the repository to which the tasks of a project go; empty for none."""
        found = await self.find_mirror(project_id)
        return found[0].repository if found and found[0].goes_out else ""

    @contextmanager
    def watch(self, readers: AudienceFilter) -> Generator[BoardWatch]:
        """Watches what these readers may read, and nothing else."""
        watch = BoardWatch(readers, Signal())
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    async def load_version(self, readers: AudienceFilter) -> str:
        """Returns a text that differs after each change of what they may read, in whatever process."""
        changes = sum(number for audience, number in self._changes.items() if readers.allows(audience))
        async with self.store.work(write=False) as work:
            return derive("version", await work.projects.load_version(readers), str(changes))


@dataclass(frozen=True, eq=False, slots=True)
class BoardWatch:
    """Somebody who looks at the boards that these readers may read. `changed` is sent after each change of theirs."""

    readers: AudienceFilter
    changed: Signal


class ProjectBoard:
    """The board of one reader, who is looked up with the first use."""

    def __init__(self, boards: ProjectBoards, find_reader: Callable[[], Awaitable[ProjectReader]], *, key: str) -> None:
        self._boards = boards
        self._find_reader = find_reader
        self._key = key
        self._reader: ProjectReader | None = None

    async def find_readers(self) -> AudienceFilter:
        """Returns which audiences may be read here, for those who watch."""
        return (await self._find()).audiences

    # --- projects ----------------------------------------------------------------------------------------------------

    async def list_projects(self) -> Sequence[Project]:
        """Returns the projects that may be read here, oldest first."""
        reader = await self._find()
        async with self._boards.store.work(write=False) as work:
            return await work.projects.list_projects(reader.audiences, limit=LISTED)

    async def get_project(self, wanted: str) -> Project:
        """Returns the project with that id or name. Raises NotFound, and InvalidInput for a name that several have."""
        return pick_project(await self.list_projects(), wanted)

    async def create_project(self, draft: ProjectDraft, *, for_everybody: bool = False) -> Project:
        """Makes a project for those who read along here, or for everybody. Raises InvalidInput, NotAllowed for one who
        is no owner or admin, LimitExceeded, Conflict for a name that is taken.
        """
        reader, draft = await self._find(), check_project(draft)
        if not draft.name:
            raise InvalidInput("A project needs a name.", code="project_name", fix="Give a name.", field="name")
        if for_everybody and (not reader.is_admin or reader.is_tainted):
            raise NotAllowed(
                "Only owners and admins make projects for everybody.",
                code="project_everybody",
                fix="Leave that out: it is then for those who read along here.",
            )
        audience = EVERYBODY if for_everybody else reader.own
        now = self._boards.clock.now()
        project = Project(
            id=self._make_id(reader, "prj", draft.name),
            name=draft.name,
            audience=audience,
            made_by=reader.editor,
            created_at=now,
            updated_at=now,
        )
        project = replace(change_project(project, draft, now=now), created_at=now)
        async with self._boards.store.work() as work:
            if known := await work.projects.find(project.id):
                _check_made_again(reader, known.made_by)
                return known
            await self._check_room(work, audience, project.name)
            made = 0 if reader.is_admin else await work.projects.count_made(project.made_by.author)
            if made >= MAX_PROJECTS_OF_PERSON:
                raise _full("projects of yours", MAX_PROJECTS_OF_PERSON, "Delete some that are completed.")
            await work.projects.add(project)
        self._boards.tell_changed(audience)
        return project

    async def change_project(self, wanted: str, draft: ProjectDraft) -> Project:
        """Raises as `get_project`, InvalidInput, and NotAllowed for one who is not its author."""
        reader, draft, project = await self._find(), check_project(draft), await self.get_project(wanted)
        _check_author(reader, project.made_by, "change this project")
        if draft.name or draft.description:
            await self._check_words(reader, project)
        changed = change_project(project, draft, now=self._boards.clock.now())
        if changed != project:
            async with self._boards.store.work() as work:
                if changed.name.casefold() != project.name.casefold():
                    await self._check_room(work, project.audience, changed.name)
                await work.projects.replace(changed)
            self._boards.tell_changed(project.audience)
        return changed

    async def delete_project(self, wanted: str) -> Project:
        """Deletes a project with everything in it. Raises as `change_project`."""
        reader, project = await self._find(), await self.get_project(wanted)
        _check_delete(reader, project.made_by, "this project")
        async with self._boards.store.work() as work:
            await work.projects.remove(project.id)
        self._boards.tell_changed(project.audience)
        return project

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def find_tasks(self, wanted: TaskQuery) -> Sequence[Task]:
        """Returns the tasks that were searched for, the one that changed last first. The project may be given by its
        name. Raises NotFound for a project that may not be read.
        """
        projects = await self.list_projects()
        if wanted.project_id:
            wanted = replace(wanted, project_id=pick_project(projects, wanted.project_id).id)
        async with self._boards.store.work(write=False) as work:
            return await work.projects.search_tasks(wanted, [project.id for project in projects])

    async def get_task(self, task_id: str) -> TaskDetails:
        """Raises NotFound."""
        reader = await self._find()
        async with self._boards.store.work(write=False) as work:
            task, project = await _load_task(work, reader, task_id)
            return TaskDetails(task, project, await work.projects.list_comments(task.id))

    async def create_task(self, draft: TaskDraft, project: str = "") -> Task:
        """Makes a task in that project, or in the one of those who read along here. Raises NotFound, InvalidInput,
        NotAllowed and LimitExceeded.
        """
        reader, draft = await self._find(), check_task(draft)
        if not draft.title:
            raise InvalidInput("A task needs a title.", code="task_title", fix="Give a title.", field="title")
        home = await self._find_home(reader, project)
        await self._check_words(reader, home)
        now = self._boards.clock.now()
        task = Task(
            id=self._make_id(reader, "tsk", home.id, draft.title),
            project_id=home.id,
            title=draft.title,
            made_by=reader.editor,
            created_at=now,
            updated_at=now,
        )
        task = change_task(task, draft, now=now)
        async with self._boards.store.work() as work:
            if known := await work.projects.find_task(task.id):
                _check_made_again(reader, known.made_by)
                return known
            await work.projects.add(home)
            await check_room_for_task(work, home.id, draft.size_chars)
            await work.projects.add_task(task)
            await note_change(self._boards, work, reader.principal, task, TaskAction.CREATED)
        self._boards.tell_changed(home.audience)
        return task

    async def change_task(self, task_id: str, draft: TaskDraft, project: str = "") -> Task:
        """Changes a task, or moves it to another project of the same readers. Raises as `create_task`."""
        reader, draft = await self._find(), check_task(draft)
        target = await self.get_project(project) if project else None
        async with self._boards.store.work(write=False) as work:
            _, home = await _load_task(work, reader, task_id)
        if target is not None and target.audience != home.audience:
            raise NotAllowed(
                "A task does not move to a project that others read.",
                code="task_audience",
                why="what was written for some is not shown to others",
                fix="Make a new task there.",
            )
        if draft.has_text:
            await self._check_words(reader, home)
        if target is not None and target.id != home.id:
            await self._check_words(reader, target)  # all its words are said there
        async with self._boards.store.work() as work:
            task, home = await _load_task(work, reader, task_id)
            if not keeps_text(task.title, draft.title) or not keeps_text(task.description, draft.description):
                _check_overwrite(reader, task.made_by, "the text of this task", "Say it in a comment")
            moved_to = target.id if target is not None else ""
            changed = change_task(task, draft, now=self._boards.clock.now(), project_id=moved_to)
            if changed == task:
                return task
            is_moved = changed.project_id != task.project_id
            if is_moved and await work.projects.count_tasks(changed.project_id) >= MAX_TASKS:
                raise _full("tasks", MAX_TASKS, "Delete some, or choose another project.")
            kept = 0 if is_moved else len(task.title) + len(task.description)
            await check_size(work, changed.project_id, len(changed.title) + len(changed.description) - kept)
            await work.projects.replace_task(changed)
            await note_change(self._boards, work, reader.principal, changed, TaskAction.UPDATED)
        self._boards.tell_changed(home.audience)
        return changed

    async def delete_task(self, task_id: str) -> Task:
        """Deletes a task with its comments. Raises NotFound, and NotAllowed for one who is not its author."""
        reader = await self._find()
        async with self._boards.store.work() as work:
            task, home = await _load_task(work, reader, task_id)
            _check_delete(reader, task.made_by, "this task")
            await work.projects.remove_task(task.id)
        self._boards.tell_changed(home.audience)
        return task

    async def comment(self, task_id: str, text: str) -> TaskComment:
        """Adds a comment. Raises NotFound, InvalidInput, NotAllowed and LimitExceeded."""
        reader, text = await self._find(), check_comment(text)
        async with self._boards.store.work(write=False) as work:
            _, home = await _load_task(work, reader, task_id)
        await self._check_words(reader, home)
        now = self._boards.clock.now()
        comment = TaskComment(
            id=self._make_id(reader, "cmt", task_id.strip(), text),
            task_id=task_id.strip(),
            text=text,
            made_by=reader.editor,
            created_at=now,
        )
        async with self._boards.store.work() as work:
            task, home = await _load_task(work, reader, task_id)
            if await work.projects.count_comments(task.id) >= MAX_COMMENTS:
                raise _full("comments", MAX_COMMENTS, "Sum them up in another task.")
            await check_size(work, home.id, len(text))
            if await work.projects.add_comment(comment):
                await work.projects.replace_task(replace(task, updated_at=now))
                await note_change(self._boards, work, reader.principal, task, TaskAction.UPDATED)
        self._boards.tell_changed(home.audience)
        return comment

    async def change_comment(self, task_id: str, comment_id: str, text: str) -> TaskComment:
        """Writes a comment anew. Raises as `comment`, and NotAllowed for one who is not its author."""
        reader, text = await self._find(), check_comment(text)
        async with self._boards.store.work(write=False) as work:
            task, home = await _load_task(work, reader, task_id)
            _check_author(reader, (await _load_comment(work, task, comment_id)).made_by, "change this comment")
        await self._check_words(reader, home)
        async with self._boards.store.work() as work:
            task, home = await _load_task(work, reader, task_id)
            comment = await _load_comment(work, task, comment_id)
            changed = replace(comment, text=text)
            if changed == comment:
                return comment
            await check_size(work, home.id, len(text) - len(comment.text))
            await work.projects.replace_comment(changed)
            await work.projects.replace_task(replace(task, updated_at=self._boards.clock.now()))
            await note_change(self._boards, work, reader.principal, task, TaskAction.UPDATED)
        self._boards.tell_changed(home.audience)
        return changed

    async def delete_comment(self, task_id: str, comment_id: str) -> TaskComment:
        """Deletes a comment, which no task watcher is told of. Raises NotFound, and NotAllowed as `change_comment`."""
        reader = await self._find()
        async with self._boards.store.work() as work:
            task, home = await _load_task(work, reader, task_id)
            comment = await _load_comment(work, task, comment_id)
            _check_delete(reader, comment.made_by, "this comment")
            await work.projects.remove_comment(comment.id)
            await work.projects.replace_task(replace(task, updated_at=self._boards.clock.now()))
        self._boards.tell_changed(home.audience)
        return comment

    # --- documents ---------------------------------------------------------------------------------------------------

    async def list_documents(self, project: str = "") -> Sequence[ProjectDocumentEntry]:
        """Returns the documents of a project by name, without their texts. Raises as `get_project`."""
        home = await self._find_home(await self._find(), project)
        async with self._boards.store.work(write=False) as work:
            return await work.projects.list_documents(home.id)

    async def get_document(self, name: str, project: str = "") -> ProjectDocument:
        """Returns the document with that name or id. Raises NotFound."""
        wanted = " ".join(name.split())
        home = await self._find_home(await self._find(), project)
        async with self._boards.store.work(write=False) as work:
            known = await work.projects.list_documents(home.id)
            entry = next((each for each in known if wanted in (each.id, each.name)), None)
            document = await work.projects.find_document(entry.id) if entry else None
        if document is None:
            raise document_not_found(wanted)
        return document

    async def create_document(self, name: str, text: str, project: str = "") -> ProjectDocument:
        """Writes a new document. Raises Conflict for a name that is taken, and as `create_task`."""
        reader, (name, text) = await self._find(), check_document(name, text)
        home = await self._find_home(reader, project)
        await self._check_words(reader, home)
        now = self._boards.clock.now()
        document = ProjectDocument(
            id=self._make_id(reader, "doc", home.id, name),
            project_id=home.id,
            name=name,
            text=text,
            made_by=reader.editor,
            created_at=now,
            updated_at=now,
        )
        async with self._boards.store.work() as work:
            await work.projects.add(home)
            known = await work.projects.list_documents(home.id)
            if same := await work.projects.find_document(document.id):
                return same
            _check_free(known, name)
            if len(known) >= MAX_DOCUMENTS:
                raise _full("documents", MAX_DOCUMENTS, "Delete some, or begin another project.")
            await check_size(work, home.id, len(text))
            await work.projects.put_document(document)
        self._boards.tell_changed(home.audience)
        return document

    async def change_document(
        self, name: str, project: str = "", *, text: str | None = None, new_name: str = ""
    ) -> ProjectDocument:
        """Writes a document anew. Raises NotFound, Conflict for a name that is taken, InvalidInput and NotAllowed."""
        reader, document = await self._find(), await self.get_document(name, project)
        home = await self._find_home(reader, document.project_id)
        await self._check_words(reader, home)
        name, text = check_document(new_name or document.name, document.text if text is None else text)
        if name != document.name or not keeps_text(document.text, text):
            _check_overwrite(
                reader, document.made_by, "this document", "Write a new document, or only add below its text"
            )
        changed = replace(document, name=name, text=text)
        if changed == document:
            return document
        changed = replace(changed, updated_at=self._boards.clock.now())
        async with self._boards.store.work() as work:
            known = await work.projects.list_documents(document.project_id)
            _check_free([each for each in known if each.id != document.id], name)
            await check_size(work, home.id, len(text) - len(document.text))
            await work.projects.put_document(changed)
        self._boards.tell_changed(home.audience)
        return changed

    async def delete_document(self, name: str, project: str = "") -> ProjectDocument:
        """Raises NotFound, and NotAllowed for one who is not its author."""
        reader, document = await self._find(), await self.get_document(name, project)
        home = await self._find_home(reader, document.project_id)
        _check_delete(reader, document.made_by, "this document")
        async with self._boards.store.work() as work:
            await work.projects.remove_document(document.id)
        self._boards.tell_changed(home.audience)
        return document

    # --- shared ------------------------------------------------------------------------------------------------------

    async def _find(self) -> ProjectReader:
        if self._reader is None:
            self._reader = await self._find_reader()
        return self._reader

    def _make_id(self, reader: ProjectReader, prefix: str, *parts: str) -> str:
        """The key of a call counts for the one who makes it: somebody else's same key is another thing."""
        return make_id(prefix, reader.principal.key, self._key or fresh(prefix), *parts)

    async def _find_home(self, reader: ProjectReader, wanted: str) -> Project:
        """Returns the project of that id or name; without one the default one here, which need not be stored yet."""
        if wanted.strip():
            return await self.get_project(wanted)
        if reader.project_id:
            return await self.get_project(reader.project_id)
        if not reader.own:
            raise project_not_found("")
        now = self._boards.clock.now()
        async with self._boards.store.work(write=False) as work:
            known = await work.projects.find(project_key(reader.own))
        return known or Project(
            id=project_key(reader.own),
            name=DEFAULT_NAME,
            audience=reader.own,
            is_default=True,
            made_by=reader.editor,
            created_at=now,
            updated_at=now,
        )

    async def _check_words(self, reader: ProjectReader, project: Project) -> None:
        """Raises NotAllowed where a turn would tell those who read the project what it has read, or a repository that
        mirrors it.
        """
        if reader.is_tainted and (outside := await self._boards.find_outside(project.id)):
            raise NotAllowed(
                f"Nothing was written to the project '{project.name}'.",
                code="project_taint",
                why=f"this answer draws on what others wrote, and what is written there goes to {outside}",
                fix="Let a person write it on the board or with /tasks. A status may be set.",
            )
        if reader.is_tainted and not await self._boards.readers.may_tell(reader, project.audience):
            raise NotAllowed(
                f"Nothing was written to the project '{project.name}'.",
                code="project_taint",
                why="this answer draws on what others wrote, and that project has other readers than this place",
                fix="Name no project, so that it stays here, or write it yourself on the board or with /tasks.",
            )

    async def _check_room(self, work: UnitOfWork, audience: str, name: str) -> None:
        """Raises LimitExceeded for too many projects of one audience, Conflict for a second one of the same name."""
        if await work.projects.count(audience) >= MAX_PROJECTS:
            raise _full("projects", MAX_PROJECTS, "Delete some that are completed.")
        only = AudienceFilter(frozenset({audience}))
        for each in await work.projects.list_projects(only, limit=MAX_PROJECTS):
            if each.name.casefold() == name.casefold():
                raise Conflict(
                    f"There is a project '{name}' already.", code="project_name_taken", fix="Choose another name."
                )


async def note_change(boards: ProjectBoards, work: UnitOfWork, by: Principal, task: Task, action: TaskAction) -> None:
    """Leaves the change to the task watcher, in the same unit of work, if there is one that wants it."""
    policy = boards.runtime.current.task_watcher
    project = await work.projects.find(task.project_id) if policy is not None else None
    if policy is None or project is None or not policy.watches(action, project.audience, by):
        return
    now = boards.clock.now()
    change = TaskChange(
        id=fresh("chg"),
        task_id=task.id,
        project_id=task.project_id,
        action=action,
        due_at=now + timedelta(milliseconds=policy.debounce_ms),
        made_by=derive("maker", by.key),
    )
    await work.task_changes.note(change, now=now)


async def _load_task(work: UnitOfWork, reader: ProjectReader, task_id: str) -> tuple[Task, Project]:
    """Raises NotFound for a task that does not exist, or that the reader may not read."""
    task = await work.projects.find_task(task_id.strip())
    project = await work.projects.find(task.project_id) if task is not None else None
    if task is None or project is None or not reader.audiences.allows(project.audience):
        raise task_not_found(task_id.strip())
    return task, project


async def _load_comment(work: UnitOfWork, task: Task, comment_id: str) -> TaskComment:
    """Raises NotFound for a comment that this task does not have."""
    wanted = comment_id.strip()
    found = next((each for each in await work.projects.list_comments(task.id) if each.id == wanted), None)
    if found is None:
        raise comment_not_found(wanted)
    return found


def _check_made_again(reader: ProjectReader, author: Editor) -> None:
    """Raises Conflict unless the reader made it, by the same call: else it is somebody else's with the same id."""
    if author.author != reader.principal.key:
        raise Conflict("Something else has this id.", code="project_id", fix="Send another idempotency key.")


def _check_author(reader: ProjectReader, author: Editor, what: str) -> None:
    is_mine = author.author == reader.principal.key
    if is_mine or (reader.is_admin and not reader.is_tainted):
        return
    raise NotAllowed(
        f"You may not {what}.",
        code="project_author",
        why=f"{author.author_name or 'somebody else'} made it",
        fix="Ask them, or an owner or admin.",
    )


def _check_delete(reader: ProjectReader, author: Editor, what: str) -> None:
    """Raises NotAllowed also for the author's own turn, once it has read what others wrote."""
    _check_author(reader, author, f"delete {what}")
    if reader.is_tainted:
        raise NotAllowed(
            f"Nothing was deleted: {what} stays.",
            code="project_taint",
            why="this answer draws on what others wrote, which may have told it to",
            fix="Let a person delete it on the page of projects, or set its status to archived.",
        )


def _check_overwrite(reader: ProjectReader, author: Editor, what: str, instead: str) -> None:
    """Raises NotAllowed where a turn that has read what others wrote replaces what somebody else wrote."""
    if reader.is_tainted and author.author != reader.principal.key:
        raise NotAllowed(
            f"Nothing was replaced in {what}.",
            code="project_taint",
            why=f"this answer draws on what others wrote, and {author.author_name or 'somebody else'} wrote that text",
            fix=f"{instead}, or let a person change it on the page of projects.",
        )


async def check_room_for_task(work: UnitOfWork, project_id: str, size_chars: int) -> None:
    """Raises LimitExceeded where a project has no room for one more task of that size."""
    if await work.projects.count_tasks(project_id) >= MAX_TASKS:
        raise _full("tasks", MAX_TASKS, "Delete some, or begin another project.")
    await check_size(work, project_id, size_chars)


async def check_size(work: UnitOfWork, project_id: str, more_chars: int) -> None:
    """Raises LimitExceeded where the texts of a project would grow beyond their bound."""
    if more_chars > 0 and await work.projects.measure(project_id) + more_chars > MAX_PROJECT_CHARS:
        raise LimitExceeded(
            f"The texts of this project would have more than {MAX_PROJECT_CHARS:,} characters.",
            code="projects_full",
            why="one project must not fill the store of all",
            fix="Delete documents or tasks that are done, or begin another project.",
        )


def _check_free(known: Sequence[ProjectDocumentEntry], name: str) -> None:
    if any(each.name == name for each in known):
        raise Conflict(
            f"There is a document '{name}' already.", code="document_taken", fix="Change it, or choose another name."
        )


def _full(what: str, limit: int, fix: str) -> LimitExceeded:
    return LimitExceeded(f"There are {limit:,} {what} already, which is the limit.", code="projects_full", fix=fix)
