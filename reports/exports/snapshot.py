"""Responses as the database has them in one moment: a line for each respondent.

A line is UTF-8 with tabs between its fields, and no other control character
but those that part the answers::

    administration  respondent  school  started  completed  withdrawn
    about  items  answers  saved

Moments are seconds since 1970, or nothing. `about` is the JSON array of grade,
language and attributes. `items` is "{12,13,…}", and `answers` has for each of
them, behind a \\x1f, its value; \\x02s where it was skipped and \\x02h where it
was not applicable on its page. What people write themselves is a JSON text,
so that no sign of theirs parts anything. `saved`, for the long form alone, is
like `items`: when each was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import connections, transaction

from accounts.permissions import Places
from reports.exports.columns import Version
from survey.database.replica.reports import reports_database
from survey.models import Administration, Response
from survey.taking.storage import moment

SKIPPED = f"\x02{Response.State.SKIPPED.value}"
NOT_APPLICABLE = f"\x02{Response.State.HIDDEN.value}"
FIELDS = 10

POSTGRESQL = """
COPY (
    SELECT r.administration_id, r.id, r.school_id,
        floor(extract(epoch FROM r.started_at))::bigint,
        floor(extract(epoch FROM r.completed_at))::bigint,
        floor(extract(epoch FROM r.withdrawn_at))::bigint,
        json_build_array(r.grade, r.language, r.attributes),
        x.items, x.answers, {saved}
    FROM survey_respondent r
    {joined}
    WHERE {people}
    ORDER BY r.id
) TO STDOUT (FORMAT csv, DELIMITER E'\\t', QUOTE E'\\x01', ENCODING 'UTF8')
"""
# Both sides in the order of their keys: the faster way for most of an
# administration, at 20,000 × 60 by a third.
ALL_AT_ONCE = """LEFT JOIN (
        SELECT o.respondent_id, {gathered}
        FROM (
            SELECT * FROM survey_response
            WHERE administration_id = {administration}
            ORDER BY respondent_id, item_id
        ) o
        GROUP BY o.respondent_id
    ) x ON x.respondent_id = r.id"""
# One look into the key for each respondent: a school of a whole state.
ONE_BY_ONE = """CROSS JOIN LATERAL (
        SELECT {gathered}
        FROM (
            SELECT * FROM survey_response
            WHERE administration_id = {administration} AND respondent_id = r.id
            ORDER BY item_id
        ) o
    ) x"""
GATHERED = """array_agg(o.item_id) AS items,
            chr(31) || string_agg(
                coalesce({value}, chr(2) || o.state), chr(31)
            ) AS answers,
            {saved} AS saved"""
# From so large a part on, all of it is read.
LARGE_PART = 0.2
SAVED = "array_agg(floor(extract(epoch FROM o.saved_at))::bigint)"

SQLITE = """
SELECT r.id, r.school_id, r.started_at, r.completed_at, r.withdrawn_at,
    r.grade, r.language, r.attributes, x.item_id, x.state, x.value, x.saved_at
FROM survey_respondent r
LEFT JOIN survey_response x
    ON x.administration_id = r.administration_id AND x.respondent_id = r.id
WHERE {people}
ORDER BY r.id, x.item_id
"""

COUNT = """
SELECT count(*) FROM survey_response x
JOIN survey_respondent r ON r.id = x.respondent_id
WHERE x.administration_id = {administration} AND {people}
"""
COUNT_PEOPLE = "SELECT count(*) FROM survey_respondent r WHERE {people}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Whose responses: who started, in these places."""

    administrations: Sequence[Administration]
    places: Places
    finished_only: bool = False

    def people(self, administration: Administration) -> str:
        """A condition on `survey_respondent r`, of whole numbers alone."""
        conditions = [
            f"r.administration_id = {int(administration.pk)}",
            "r.started_at IS NOT NULL",
        ]
        if self.finished_only:
            conditions.append("r.completed_at IS NOT NULL")
        if not self.places.state:
            conditions.append(f"r.school_id IN ({_schools(self.places)})")
        return " AND ".join(conditions)


def _schools(places: Places) -> str:
    return (
        "SELECT s.id FROM accounts_school s"  # noqa: S608
        f" WHERE s.district_id IN ({_numbers(places.districts)})"
        f" OR s.id IN ({_numbers(places.schools)})"
    )


def _numbers(keys: frozenset[int]) -> str:
    return ", ".join(str(int(key)) for key in sorted(keys)) or "NULL"


EVERYWHERE = Places(state=True)


class Snapshot:
    """The database as it was in one moment, for as long as it takes to read."""

    def __init__(self, alias: str, selection: Selection) -> None:
        self.alias = alias
        self.selection = selection

    def people(self) -> int:
        return self._sum(COUNT_PEOPLE)

    def responses(self) -> int:
        return self._sum(COUNT)

    def _sum(self, text: str) -> int:
        return sum(
            self._count(text, one, self.selection)
            for one in self.selection.administrations
        )

    def _count(
        self, text: str, administration: Administration, selection: Selection
    ) -> int:
        people = selection.people(administration)
        with connections[self.alias].cursor() as cursor:
            cursor.execute(
                text.format(administration=int(administration.pk), people=people)
            )
            found: int = cursor.fetchone()[0]
        return found

    def read(
        self,
        sink: Callable[[bytes], object],
        versions: Mapping[str, Version],
        *,
        saved: bool,
    ) -> None:
        """Hand every line to `sink`, which may raise to stop."""
        postgresql = connections[self.alias].vendor == "postgresql"
        read = self._copy if postgresql else self._select
        for one in self.selection.administrations:
            read(one, versions[one.published_id], sink, saved)

    def _copy(
        self,
        administration: Administration,
        version: Version,
        sink: Callable[[bytes], object],
        saved: bool,
    ) -> None:
        gathered = GATHERED.format(
            value=_value(version), saved=SAVED if saved else "NULL"
        )
        joined = ALL_AT_ONCE if self._is_large(administration) else ONE_BY_ONE
        text = POSTGRESQL.format(
            joined=joined.format(
                administration=int(administration.pk), gathered=gathered
            ),
            people=self.selection.people(administration),
            saved="x.saved" if saved else "NULL",
        )
        with connections[self.alias].cursor() as cursor:
            target = _Target(sink, cursor.connection)
            cursor.copy_expert(text, target)

    def _is_large(self, administration: Administration) -> bool:
        everybody = Selection([administration], EVERYWHERE)
        part = self._count(COUNT_PEOPLE, administration, self.selection)
        whole = self._count(COUNT_PEOPLE, administration, everybody)
        return part >= LARGE_PART * whole

    def _select(
        self,
        administration: Administration,
        version: Version,
        sink: Callable[[bytes], object],
        saved: bool,
    ) -> None:
        text = SQLITE.format(people=self.selection.people(administration))
        quoted = _json_items(version)
        with connections[self.alias].cursor() as cursor:
            cursor.execute(text)
            for _, rows in groupby(_rows(cursor), key=lambda row: row[0]):
                sink(_line(administration.pk, list(rows), quoted, saved))


class _Target:
    """What COPY writes to: once for each row."""

    def __init__(self, sink: Callable[[bytes], object], connection: Any) -> None:
        self.sink = sink
        self.connection = connection

    def write(self, line: bytes) -> None:
        try:
            self.sink(line)
        except BaseException:
            # The driver would read the rest of it before it rolls back.
            self.connection.cancel()
            raise


def _value(version: Version) -> str:
    quoted = ", ".join(map(str, sorted(_json_items(version))))
    if not quoted:
        return "o.value"
    return (
        f"CASE WHEN o.item_id IN ({quoted}) THEN to_json(o.value)::text"
        " ELSE o.value END"
    )


def _json_items(version: Version) -> set[int]:
    return {
        int(item["id"])
        for item in version.items.values()
        if version.comes_as_json(item)
    }


def _rows(cursor: Any) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(1000):
        yield from rows


def _line(
    administration: int, rows: list[tuple[Any, ...]], quoted: set[int], saved: bool
) -> bytes:
    respondent, school, *moments, grade, language, attributes = rows[0][:8]
    about = json.dumps([grade, language, json.loads(attributes)], ensure_ascii=False)
    answered = [row[8:] for row in rows if row[8] is not None]
    fields = [
        str(administration),
        str(respondent),
        str(school),
        *map(_seconds, moments),
        about,
        _array(str(item) for item, *_ in answered),
        "".join(f"\x1f{_answer(one, quoted)}" for one in answered),
        _array(_seconds(one[3]) for one in answered) if saved else "",
    ]
    return ("\t".join(fields) + "\n").encode()


def _answer(row: tuple[Any, ...], quoted: set[int]) -> str:
    item, state, value, _ = row
    if value is None:
        return f"\x02{state}"
    return json.dumps(value, ensure_ascii=False) if item in quoted else str(value)


def _array(values: Iterator[str]) -> str:
    inside = ",".join(values)
    return f"{{{inside}}}" if inside else ""


def _seconds(value: Any) -> str:
    return "" if value is None else str(int(moment(value).timestamp()))


@contextmanager
def snapshot(selection: Selection) -> Iterator[Snapshot]:
    """Inside, every statement sees the same moment; nothing is ever locked.

    One transaction, for behind the pooler the next one may be another
    server's connection.
    """
    alias = reports_database()
    connection = connections[alias]
    # Inside somebody's transaction (a test's) it is theirs.
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
    # Django's own transactions take SQLite's one place for writing.
    with connection.cursor() as cursor:
        if not nested:
            cursor.execute("BEGIN DEFERRED")
        try:
            yield Snapshot(alias, selection)
        finally:
            if not nested:
                cursor.execute("ROLLBACK")
