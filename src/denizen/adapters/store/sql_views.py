"""The views that administrators may query in SQL, and the check of their queries. Pure.

What a query may be is a list of what is allowed, not of what is forbidden: one SELECT whose parts, functions and tables
are all known here. What runs is not the text that was given: it is written anew from the parsed query, in which each
view stands as a subquery of its own, so that a difference between the parser and the database opens nothing. The
database holds a second guard (`sql_reader`).

The views show who used what, when, and what it cost. They hold no sign-ins, password hashes, keys, tokens of shared
chats, addresses of sources (a login may stand in one), arguments or results of tools, e-mail addresses, or any text
that people or agents wrote: neither messages nor titles of chats, which are made of messages. Owners who need such
texts have the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal

from denizen.adapters.store.columns import metadata
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

if TYPE_CHECKING:
    from sqlglot import exp

SqlDialectName = Literal["sqlite", "postgres"]

MAX_QUERY_CHARS = 4000
MAX_NODES = 1500
MAX_TABLES = 12
"""Joins of more are no question of people."""
MAX_CONCATENATIONS = 8
"""Each may double the length of a text."""
MAX_ROWS = 200

_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_COST = "cost_usd / 1000000000000.0"
"""Money is stored in whole units (`columns.Usd`)."""


@record
class SqlView:
    """A view over tables. `columns` maps names to expressions over them; `of` is the FROM clause, in which `{schema}`
    stands for the schema.
    """

    of: str
    columns: Mapping[str, str]

    def write(self, schema: str) -> str:
        columns = ", ".join(f"{expression} AS {name}" for name, expression in self.columns.items())
        return f"SELECT {columns} FROM {self.of.replace('{schema}', schema)}"  # noqa: S608 - texts of ours


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _from(table: str, *names: str) -> dict[str, str]:
    return {name: f"{table}.{name}" for name in names}


VIEWS: Mapping[str, SqlView] = {
    "people": SqlView(
        "{schema}users", {"principal": "'web_user:' || id", **_same("name", "role", "is_verified", "created_at")}
    ),
    "all_chats": SqlView(
        "{schema}chats", _same("conversation_id", "owner", "agent", "mode", "created_at", "updated_at")
    ),
    "all_turns": SqlView(
        "{schema}turns AS t JOIN {schema}conversations AS c ON c.id = t.conversation_id",
        {
            **_from("t", "id", "conversation_id"),
            "platform": "c.platform",
            **_from("t", "agent"),
            "principal": "t.principal_kind || ':' || t.principal_id",
            **_from("t", "principal_name", "status", "opened_at", "closed_at", "model", "failure_code"),
            **_from("t", *_USAGE),
            "cost_usd": f"t.{_COST}",
        },
    ),
    "model_requests": SqlView(
        "{schema}steps",
        {
            **_same("turn_id", "number", "model", "purpose", "agent", "principal", *_USAGE, "duration_ms"),
            **_same("created_at", "day"),
            "cost_usd": _COST,
        },
    ),
    "tool_uses": SqlView(
        "{schema}tool_calls",
        _same("turn_id", "step", "tool", "origin", "decision", "is_error", "duration_ms", "created_at"),
    ),
    "daily_usage": SqlView(
        "{schema}usage_days WHERE principal <> ''",  # an empty one is the sum of all
        {**_same("day", "principal", "source", "model", "messages", "duration_ms", *_USAGE), "cost_usd": _COST},
    ),
    "all_sources": SqlView(
        "{schema}sources AS s LEFT JOIN {schema}source_states AS t ON t.source_id = s.id",
        {
            **_from("s", "id", "kind", "label", "sync_every_minutes", "created_at", "updated_at"),
            **_from("t", "synced_at", "tried_at", "error_code"),
        },
    ),
    "all_syncs": SqlView("{schema}syncs", _same("id", "status", "started_at", "ended_at")),
    "votes": SqlView("{schema}message_votes", _same("vote", "said_at")),
    "approval_requests": SqlView(
        "{schema}approvals", _same("agent", "requester", "platform", "tool", "status", "created_at", "decided_at")
    ),
    "open_questions": SqlView("{schema}gaps", _same("agent", "platform", "kind", "is_closed", "created_at")),
}
"""No view has the name of a table, so that neither can be taken for the other."""


def describe_views() -> str:
    return "\n".join(f"{name}({', '.join(view.columns)})" for name, view in VIEWS.items())


# --- what a query may hold ------------------------------------------------------------------------------------------

_NODES = """
    Select Subquery From Join Where Group Having Order Ordered Limit Offset Distinct With CTE TableAlias Table
    Union Intersect Except Tuple Paren
    Column Identifier Star Alias Literal Null Boolean Cast DataType DataTypeParam Interval Var
    And Or Not EQ NEQ GT GTE LT LTE Is In Between Like ILike Exists Any
    Add Sub Mul Div Mod Neg DPipe Case If Window WindowSpec Filter WithinGroup AtTimeZone
"""
_FUNCTIONS = """
    Count Sum Avg Min Max Round Abs Floor Ceil Coalesce Nullif Lower Upper Length Substring Trim Concat
    RowNumber Rank DenseRank Lag Lead FirstValue LastValue
    Date TsOrDsToDate TsOrDsToTimestamp TimestampTrunc DateTrunc Extract CurrentDate CurrentTimestamp TimeToStr ToChar
    Greatest Least StrPosition PercentileCont
"""
_TYPES = """
    TEXT VARCHAR CHAR INT BIGINT SMALLINT DOUBLE FLOAT DECIMAL BOOLEAN DATE TIMESTAMP TIMESTAMPTZ INTERVAL DATETIME
"""
_OTHER_FUNCTIONS = frozenset({"date", "time", "datetime", "strftime", "julianday", "unixepoch", "total", "iif", "age"})
"""Those for which the parser has no class of their own."""


@cache
def _allowed() -> frozenset[type[exp.Expr]]:
    from sqlglot import exp

    found = (getattr(exp, name) for name in f"{_NODES} {_FUNCTIONS}".split())
    return frozenset(found)


@record
class CheckedQuery:
    """A query that may run. `tables` are the views that it reads."""

    sql: str
    views: frozenset[str]


def check_query(query: str, dialect: SqlDialectName, schema: str) -> CheckedQuery:
    """Returns the query as it runs, over the views and for one row more than is shown. `schema` goes before the tables
    of the views, with its dot. Raises InvalidInput.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of statements that are refused below
    if len(query) > MAX_QUERY_CHARS or not " ".join(query.split()).isprintable():
        raise _refuse(f"it must have at most {MAX_QUERY_CHARS} printable characters")
    try:
        statements = [each for each in sqlglot.parse(query, read=dialect) if each is not None]
    except (SqlglotError, RecursionError, ValueError):
        raise _refuse("it is no SQL that can be read here") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select | exp.Union | exp.Intersect | exp.Except):
        raise _refuse("only one SELECT may run")
    statement = statements[0]
    views = _check_parts(statement)
    inner = statement.sql(dialect=dialect, comments=False)
    parts = [f"{name} AS ({VIEWS[name].write(schema)})" for name in VIEWS if name in views]
    begin = f"WITH {', '.join(parts)} " if parts else ""
    return CheckedQuery(f"{begin}SELECT * FROM ({inner}) AS result LIMIT {MAX_ROWS + 1}", views)  # noqa: S608 - checked


def _check_parts(statement: exp.Expr) -> frozenset[str]:
    """Returns the views that the statement reads. Raises InvalidInput for any part that is not known."""
    from sqlglot import exp

    allowed, nodes = _allowed(), list(statement.walk())
    if len(nodes) > MAX_NODES:
        raise _refuse("it is too long")
    for node in nodes:
        is_known_function = isinstance(node, exp.Anonymous) and node.name.lower() in _OTHER_FUNCTIONS
        if type(node) not in allowed and not is_known_function:
            raise _refuse(f"{_name_part(node)} may not be used here")
        _check_arguments(node)
    if sum(isinstance(node, exp.DPipe | exp.Concat) for node in nodes) > MAX_CONCATENATIONS:
        raise _refuse(f"texts may be joined at most {MAX_CONCATENATIONS} times")
    own = {name for each in statement.find_all(exp.CTE) for name in [each.alias.lower()]}
    if clash := own & (VIEWS.keys() | {name.lower() for name in metadata.tables}):
        # Where a query is not visible yet, its name would be that of the table behind the views.
        raise _refuse(f"{min(clash)} is the name of a view or a table already")
    tables = list(_list_tables(statement))
    if len(tables) > MAX_TABLES:
        raise _refuse(f"it may name at most {MAX_TABLES} tables")
    unknown = sorted({name for name in tables if name not in VIEWS and name not in own})
    if unknown:
        raise _refuse(f"there is no view {unknown[0]!r}; there are: {', '.join(VIEWS)}")
    return frozenset(tables) & VIEWS.keys()


def _list_tables(statement: exp.Expr) -> Iterator[str]:
    """Yields the names of tables. Raises InvalidInput for one that is named in another way than by a plain name."""
    from sqlglot import exp

    for table in statement.find_all(exp.Table):
        extra = [key for key, value in table.args.items() if value and key not in ("this", "alias", "joins")]
        if extra or not isinstance(table.this, exp.Identifier) or not table.name.isascii():
            raise _refuse("tables are named by the plain name of a view")
        if table.this.args.get("quoted") and table.name != table.name.lower():
            raise _refuse("names of views are written in small letters")
        yield table.name.lower()


def _check_arguments(node: exp.Expr) -> None:
    """Raises InvalidInput for what a known part may not be like."""
    from sqlglot import exp

    if isinstance(node, exp.With) and node.args.get("recursive"):
        raise _refuse("recursive queries may not run here")
    if isinstance(node, exp.Select) and any(node.args.get(key) for key in ("into", "locks", "hint", "kind", "sample")):
        raise _refuse("only a plain SELECT may run")
    if isinstance(node, exp.DataType) and (node.this.name not in _TYPES.split() or node.args.get("nested")):
        raise _refuse(f"the type {node.this.name} may not be used here")
    if isinstance(node, exp.Column) and (node.args.get("db") or node.args.get("catalog")):
        raise _refuse("columns are named by the plain name of a view")
    if isinstance(node, exp.Identifier) and not node.name.isascii():
        raise _refuse("names have ASCII letters only")


def _name_part(node: exp.Expr) -> str:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return f"the function {node.name[:50]}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name()[:50]}"
    return f"{type(node).__name__.upper()}"


def _refuse(why: str) -> InvalidInput:
    return InvalidInput(
        "This query may not run.",
        code="sql_refused",
        why=why,
        fix="Write one SELECT over the views, with plain joins, conditions, groups and ordinary functions.",
    )
