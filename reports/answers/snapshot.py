"""Read responses from a database snapshot, as one line for each respondent.

A line is UTF-8. Its fields are separated by tabs, and it has no other control
characters except those that separate the answers::

    administration  respondent  school  started  completed  withdrawn
    about  items  answers  saved

Times are Unix times, or blank. `about` is a JSON array of grade, languages and
attributes; of people of a release, whose line `released_rows` completes, only the
language in which they finished. `items` is "{12,13,…}". `answers` has the value of
each of them after a \\x1f: \\x02s if it was skipped, \\x02h if it was not applicable
on its page. Text that people typed is JSON, so that it cannot contain a separator.
`saved`, only for the long format, lists like `items` when each was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Protocol

from django.db import connections, transaction

from accounts.permissions import Places
from reports.answers.selection import Selection
from reports.answers.versions import SurveyVersion
from survey.database.replica.reports import reports_database
from survey.models import Administration, Response
from survey.taking.storage import as_datetime

SKIPPED = f"\x02{Response.State.SKIPPED.value}"
NOT_APPLICABLE = f"\x02{Response.State.HIDDEN.value}"
# Takes the place of any answer that a file must not show; in no database.
MASKED = "\x02*"
FIELDS = 10

POSTGRESQL = """
COPY (
    SELECT r.administration_id, r.id, r.school_id,
        floor(extract(epoch FROM r.started_at))::bigint,
        floor(extract(epoch FROM r.completed_at))::bigint,
        floor(extract(epoch FROM r.withdrawn_at))::bigint,
        {about},
        x.items, x.answers, {saved}
    FROM survey_respondent r
    {join}
    WHERE {people}
    ORDER BY r.id
) TO STDOUT (FORMAT csv, DELIMITER E'\\t', QUOTE E'\\x01', ENCODING 'UTF8')
"""
# Merges both tables in the order of their keys. For most of an administration
# this is faster, by a third for 20,000 people and 60 items.
MERGE_JOIN = """LEFT JOIN (
        SELECT o.respondent_id, {columns}
        FROM (
            SELECT * FROM survey_response
            WHERE administration_id = {administration}
            ORDER BY respondent_id, item_id
        ) o
        GROUP BY o.respondent_id
    ) x ON x.respondent_id = r.id"""
# Looks up the key of each respondent: faster for one school of a whole state.
LOOK_UP_JOIN = """CROSS JOIN LATERAL (
        SELECT {columns}
        FROM (
            SELECT * FROM survey_response
            WHERE administration_id = {administration} AND respondent_id = r.id
            ORDER BY item_id
        ) o
    ) x"""
JOINED_COLUMNS = """array_agg(o.item_id) AS items,
            chr(31) || string_agg(
                coalesce({value}, chr(2) || o.state), chr(31)
            ) AS answers,
            {saved} AS saved"""
# From this share of the people on, the merge is used.
LARGE_PART = 0.2
SAVED_TIMES = "array_agg(floor(extract(epoch FROM o.saved_at))::bigint)"

FINISHED_IN = "CASE WHEN r.completed_at IS NULL THEN '' ELSE r.response_language END"
ABOUT = (
    f"json_build_array(r.grade, json_build_array(r.language, {FINISHED_IN}),"
    " r.attributes)"
)
ABOUT_RELEASED = f"to_json({FINISHED_IN})"

SQLITE = """
SELECT r.id, r.school_id, r.started_at, r.completed_at, r.withdrawn_at,
    r.grade, r.language, {finished_in}, r.attributes,
    x.item_id, x.state, x.value, x.saved_at
FROM survey_respondent r
LEFT JOIN survey_response x
    ON x.administration_id = r.administration_id AND x.respondent_id = r.id
WHERE {people}
ORDER BY r.id, x.item_id
"""

COUNT_RESPONSES = """
SELECT count(*) FROM survey_response x
JOIN survey_respondent r ON r.id = x.respondent_id
WHERE x.administration_id = {administration} AND {people}
"""
COUNT_PEOPLE = "SELECT count(*) FROM survey_respondent r WHERE {people}"

LineSink = Callable[[bytes], object]


class Snapshot:
    """Reads the database as it was at one moment, however long reading takes."""

    def __init__(self, alias: str, selection: Selection) -> None:
        self.alias = alias
        self.selection = selection

    def count_people(self) -> dict[int, int]:
        """Return the number of people by administration."""
        return {
            administration.pk: self._count(COUNT_PEOPLE, administration, self.selection)
            for administration in self.selection.administrations
        }

    def count_responses(self) -> int:
        return sum(
            self._count(COUNT_RESPONSES, administration, self.selection)
            for administration in self.selection.administrations
        )

    def _count(
        self, statement: str, administration: Administration, selection: Selection
    ) -> int:
        people = selection.people(administration, self.alias)
        with connections[self.alias].cursor() as cursor:
            cursor.execute(
                statement.format(administration=int(administration.pk), people=people)
            )
            return int(cursor.fetchone()[0])

    def read(
        self, sink: LineSink, versions: Mapping[str, SurveyVersion], *, saved: bool
    ) -> None:
        """Pass every line to `sink`, which may raise to stop."""
        postgresql = connections[self.alias].vendor == "postgresql"
        read = self._read_postgresql if postgresql else self._read_sqlite
        for administration in self.selection.administrations:
            version = versions[administration.published_id]
            json_items = {
                int(item["id"])
                for item in version.items.values()
                if version.comes_as_json(item)
            }
            read(administration, json_items, sink, saved)

    def _read_postgresql(
        self,
        administration: Administration,
        json_items: set[int],
        sink: LineSink,
        saved: bool,
    ) -> None:
        value = "o.value"
        if json_items:
            keys = ", ".join(map(str, sorted(json_items)))
            value = (
                f"CASE WHEN o.item_id IN ({keys}) THEN to_json(o.value)::text"
                " ELSE o.value END"
            )
        everyone = Selection([administration], Places(state=True))
        part = self._count(COUNT_PEOPLE, administration, self.selection)
        whole = self._count(COUNT_PEOPLE, administration, everyone)
        join = MERGE_JOIN if part >= LARGE_PART * whole else LOOK_UP_JOIN
        statement = POSTGRESQL.format(
            about=ABOUT if self.selection.keys is None else ABOUT_RELEASED,
            join=join.format(
                administration=int(administration.pk),
                columns=JOINED_COLUMNS.format(
                    value=value, saved=SAVED_TIMES if saved else "NULL"
                ),
            ),
            people=self.selection.people(administration, self.alias),
            saved="x.saved" if saved else "NULL",
        )
        with connections[self.alias].cursor() as cursor:
            cursor.copy_expert(statement, CopyTarget(sink, cursor.connection))

    def _read_sqlite(
        self,
        administration: Administration,
        json_items: set[int],
        sink: LineSink,
        saved: bool,
    ) -> None:
        statement = SQLITE.format(
            finished_in=FINISHED_IN,
            people=self.selection.people(administration, self.alias),
        )
        is_released = self.selection.keys is not None
        with connections[self.alias].cursor() as cursor:
            cursor.execute(statement)
            rows = chain.from_iterable(iter(lambda: cursor.fetchmany(1000), []))
            # The rows are ordered by respondent.
            for _, group in groupby(rows, key=itemgetter(0)):
                responses = list(group)
                sink(
                    _sqlite_line(
                        *(administration.pk, responses, json_items),
                        saved=saved,
                        is_released=is_released,
                    )
                )


class Cancellable(Protocol):
    """A connection of psycopg2."""

    def cancel(self) -> None: ...


class CopyTarget:
    """The file that COPY writes to, once for each row."""

    def __init__(self, sink: LineSink, connection: Cancellable) -> None:
        self.sink = sink
        self.connection = connection

    def write(self, line: bytes) -> None:
        try:
            self.sink(line)
        except BaseException:
            # Otherwise the driver would read all other rows before it stops.
            self.connection.cancel()
            raise


# A column of a plain SQLite cursor: key, text, time or NULL.
SqliteRow = Sequence[Any]


def _sqlite_line(
    administration: int,
    rows: list[SqliteRow],
    json_items: set[int],
    *,
    saved: bool,
    is_released: bool,
) -> bytes:
    """Make the line of a respondent from one row for each response."""
    respondent, school, *times = rows[0][:5]
    grade, language, finished_in, attributes = rows[0][5:9]
    cells = [grade, [language, finished_in], json.loads(attributes)]
    about = json.dumps(finished_in if is_released else cells, ensure_ascii=False)
    items, answers, saved_times = [], "", []
    for row in rows:
        item, state, value, saved_at = row[9:]
        if item is None:
            continue
        if value is None:
            text = f"\x02{state}"
        elif item in json_items:
            text = json.dumps(value, ensure_ascii=False)
        else:
            text = str(value)
        items.append(str(item))
        answers += f"\x1f{text}"
        saved_times.append(_seconds(saved_at))
    fields = [
        str(administration),
        str(respondent),
        str(school),
        *map(_seconds, times),
        about,
        _array(items),
        answers,
        _array(saved_times) if saved else "",
    ]
    return ("\t".join(fields) + "\n").encode()


def _array(values: Iterable[str]) -> str:
    inside = ",".join(values)
    return f"{{{inside}}}" if inside else ""


def _seconds(value: datetime | str | None) -> str:
    return "" if value is None else str(int(as_datetime(value).timestamp()))


@contextmanager
def snapshot(selection: Selection) -> Iterator[Snapshot]:
    """Open a snapshot: all statements see the same moment, and lock nothing.

    It is a single transaction, because behind the pooler the next one may use
    another server connection.
    """
    alias = reports_database()
    connection = connections[alias]
    # A test may have opened a transaction already.
    nested = connection.in_atomic_block
    if connection.vendor == "postgresql":
        with transaction.atomic(using=alias), connection.cursor() as cursor:
            if not nested:
                cursor.execute(
                    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
                )
            cursor.execute(
                "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;"
                " SET LOCAL idle_in_transaction_session_timeout = 0"
            )
            yield Snapshot(alias, selection)
        return
    # Not `atomic`: on SQLite it takes the only write lock.
    with connection.cursor() as cursor:
        if not nested:
            cursor.execute("BEGIN DEFERRED")
        try:
            yield Snapshot(alias, selection)
        finally:
            if not nested:
                cursor.execute("ROLLBACK")
