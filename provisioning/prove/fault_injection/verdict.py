"""Compare what was sent with what is stored: the counts that have to be zero.

docs/decisions/0114-judging-faults.md says what each of them means. The unit is one page
of one respondent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile
from typing import Any, NamedTuple

from provisioning.measure.load.respondent import ACKED, UNKNOWN
from provisioning.prove.fault_injection.saves import (
    ANSWERED,
    FINISHING,
    AnswerSource,
    Attempt,
    fingerprint,
)

FORBIDDEN = (
    "lost",
    "regressions",
    "crossed",
    "corrupt",
    "unexpected",
    "duplicated",
    "lost_updates",
    "false_saved",
    "false_rejected",
)
# A broken index would hide the second row of a key.
WITHOUT_INDEXES = """
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SET statement_timeout = 0;
"""
STORED = """
SELECT respondent_id, item_id, state, value, revision
FROM survey_response
WHERE administration_id = %s
"""
COMPLETED = """
SELECT id FROM survey_respondent
WHERE administration_id = %s AND completed_at IS NOT NULL
"""


class StoredAnswer(NamedTuple):
    respondent: int
    item: int
    state: str
    value: str | None
    revision: int


def read_back(
    connection: Any, administration: int
) -> tuple[list[StoredAnswer], frozenset[int]]:
    with connection.cursor() as cursor:
        cursor.execute(WITHOUT_INDEXES)
        cursor.execute(STORED, [administration])
        stored = [StoredAnswer(*row) for row in cursor]
        cursor.execute(COMPLETED, [administration])
        return stored, frozenset(respondent for (respondent,) in cursor)


@dataclass(frozen=True, slots=True)
class Finding:
    count: str
    respondent: int
    page: int
    # When the save that is gone was acknowledged; 0 for the other counts.
    acknowledged: float = 0.0


@dataclass
class Verdict:
    findings: list[Finding] = field(default_factory=list)
    # Distinct saves: a retry of the same revision counts once.
    acknowledged: int = 0
    attempts: int = 0

    def count(self, name: str) -> int:
        return sum(finding.count == name for finding in self.findings)

    def counts(self) -> dict[str, int]:
        return {name: self.count(name) for name in (*FORBIDDEN, "recovered")}

    def forbidden(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.count in FORBIDDEN]

    def without(self, excused: Iterable[Finding]) -> Verdict:
        dropped = set(excused)
        remaining = [finding for finding in self.findings if finding not in dropped]
        return Verdict(remaining, self.acknowledged, self.attempts)


# Respondent and page.
Key = tuple[int, int]
# Item -> its row.
StoredRows = dict[int, StoredAnswer]


class SentPage:
    """The attempts to save one page of one respondent, by revision."""

    def __init__(self) -> None:
        self.attempts: defaultdict[int, list[Attempt]] = defaultdict(list)

    @cached_property
    def acknowledged(self) -> dict[int, float]:
        return {
            revision: attempt.answered
            for revision, attempts in self.attempts.items()
            for attempt in attempts
            if attempt.outcome == ACKED
        }

    @property
    def newest(self) -> int:
        return max(self.acknowledged, default=0)

    def lost_updates(self, stored: set[int]) -> Iterator[int]:
        """Yield acknowledged revisions that a save replaced without covering them.

        A save covers what its tab had shown, and what its tab had sent before.
        """
        saves = [attempts[-1] for attempts in self.attempts.values()]
        for revision in self.acknowledged:
            tab = self.attempts[revision][-1].tab
            if any(
                save.revision > revision > save.seen
                and (save.revision in self.acknowledged or save.revision in stored)
                and save.tab != tab
                for save in saves
            ):
                yield revision

    def false_rejections(self, stored: set[int]) -> int:
        """Count replies of 409 for saves that were stored, and not yet replaced."""
        every = [each for attempts in self.attempts.values() for each in attempts]

        def is_false(rejected: Attempt) -> bool:
            revision = rejected.revision
            if revision in stored and revision >= self.newest:
                return True
            return revision in self.acknowledged and not any(
                later.revision > revision and later.sent < rejected.answered
                for later in every
            )

        return sum(
            is_false(attempt)
            for attempt in every
            if attempt.reply.startswith("409") and attempt.outcome != ACKED
        )


class Judge:
    """Compare a log with a final read; neither has to be in order."""

    def __init__(
        self,
        source: AnswerSource,
        attempts: Iterable[Attempt],
        stored: Iterable[StoredAnswer],
        completed: frozenset[int] = frozenset(),
    ) -> None:
        """Read both; `completed` are the respondents who have finished."""
        self.source = source
        self.completed = completed
        self.findings: list[Finding] = []
        self.attempt_count = 0
        self.sent: dict[Key, SentPage] = defaultdict(SentPage)
        self.stored: dict[Key, StoredRows] = defaultdict(dict)
        # Respondent -> when finishing was acknowledged; 0 if it was not.
        self.finishing: dict[int, float] = {}
        # Page and revision -> respondents who sent it.
        self.senders: dict[tuple[int, int], set[int]] = defaultdict(set)
        for attempt in attempts:
            self._add_attempt(attempt)
        page_of = {
            item.id: page for page in source.pages for item in source.pages[page]
        }
        for row in stored:
            key = row.respondent, page_of.get(row.item, -1)
            if row.item in self.stored[key]:
                self.findings.append(Finding("duplicated", *key))
            self.stored[key][row.item] = row

    def _add_attempt(self, attempt: Attempt) -> None:
        self.attempt_count += 1
        is_acked = attempt.outcome == ACKED
        if attempt.page == FINISHING:
            known = self.finishing.setdefault(attempt.respondent, 0.0)
            if is_acked:
                self.finishing[attempt.respondent] = known or attempt.answered
            return
        key = (attempt.respondent, attempt.page)
        self.sent[key].attempts[attempt.revision].append(attempt)
        self.senders[attempt.page, attempt.revision].add(attempt.respondent)
        if is_acked and attempt.receipt != attempt.revision:
            self.findings.append(Finding("false_saved", *key))

    def verdict(self) -> Verdict:
        findings = list(self.findings)
        for key in self.sent.keys() | self.stored.keys():
            findings += self._judge_page(key)
        for respondent, acknowledged in self.finishing.items():
            if acknowledged and respondent not in self.completed:
                findings.append(Finding("lost", respondent, FINISHING, acknowledged))
        for respondent in self.completed - self.finishing.keys():
            findings.append(Finding("unexpected", respondent, FINISHING))
        acknowledged_saves = sum(len(sent.acknowledged) for sent in self.sent.values())
        return Verdict(findings, acknowledged_saves, self.attempt_count)

    def _judge_page(self, key: Key) -> Iterator[Finding]:
        sent, stored = self.sent.get(key), self.stored.get(key, {})
        if sent is None:
            yield Finding(self._classify_foreign(key, stored), *key)
            return
        for attempts in sent.attempts.values():
            if len({each.at for each in attempts if each.outcome == ACKED}) > 1:
                yield Finding("duplicated", *key)
            since_unknown = dropwhile(lambda each: each.outcome != UNKNOWN, attempts)
            if any(each.found_stored for each in since_unknown):
                yield Finding("recovered", *key)
        revisions = {row.revision for row in stored.values()}
        for revision in sent.lost_updates(revisions):
            yield Finding("lost_updates", *key, sent.acknowledged[revision])
        for _ in range(sent.false_rejections(revisions)):
            yield Finding("false_rejected", *key)
        newest = sent.newest
        is_missing = len(stored) < len(self.source.pages[key[1]])
        is_older = any(revision < newest for revision in revisions)
        is_lost = bool(newest) and (is_missing or is_older)
        if is_lost:
            yield Finding("lost", *key, sent.acknowledged[newest])
        if is_older and not is_missing:
            yield Finding("regressions", *key, sent.acknowledged[newest])
        wrong = self._classify_wrong_rows(key, sent, stored)
        if wrong:
            yield Finding(wrong, *key)
            return
        if is_lost or not stored:
            return
        # A page is saved whole: all its rows have one revision.
        if len(revisions) > 1 or is_missing:
            yield Finding("corrupt", *key)
        elif {each.outcome for each in sent.attempts[max(revisions)]} == {UNKNOWN}:
            yield Finding("recovered", *key)

    def _classify_wrong_rows(self, key: Key, sent: SentPage, stored: StoredRows) -> str:
        """Return the worst that is wrong with these rows, or ""."""
        wrong = set()
        for revision, rows in _by_revision(stored).items():
            if revision not in sent.attempts:
                wrong.add(self._classify_foreign(key, rows))
            elif not self._is_as_sent(key, revision, rows):
                foreign = self._classify_foreign(key, rows)
                wrong.add("crossed" if foreign == "crossed" else "corrupt")
            else:
                answers = fingerprint(self.source.answers(*key, revision))
                if answers != sent.attempts[revision][-1].answers:
                    wrong.add("corrupt")
        worst_first = ("crossed", "corrupt", "unexpected")
        return next((name for name in worst_first if name in wrong), "")

    def _is_as_sent(self, key: Key, revision: int, rows: StoredRows) -> bool:
        expected = self.source.stored(*key, revision)
        return all(
            (row.state, row.value) == (ANSWERED, expected[row.item])
            for row in rows.values()
        )

    def _classify_foreign(self, key: Key, rows: StoredRows) -> str:
        """Tell answers of another respondent from answers that were never sent."""
        respondent, page = key
        for revision, part in _by_revision(rows).items():
            senders = self.senders.get((page, revision), set()) - {respondent}
            if any(
                self._is_as_sent((sender, page), revision, part) for sender in senders
            ):
                return "crossed"
        return "unexpected"


def _by_revision(stored: StoredRows) -> dict[int, StoredRows]:
    parts: dict[int, StoredRows] = defaultdict(dict)
    for row in stored.values():
        parts[row.revision][row.item] = row
    return parts
