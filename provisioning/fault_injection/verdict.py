"""Compare what was sent with what is stored: the counts that have to be zero.

lost         acknowledged, but missing from the final read, or older there
regressions  lost pages of which an older revision is stored
crossed      stored under another respondent
corrupt      stored, but not what was sent; or a page made of two sendings
unexpected   stored, but never sent
duplicated   two rows for one key; one sending that gave two receipts
recovered    outcome unknown, found stored by a retry or by the final read:
             allowed, and reported
false_saved  shown as saved without a receipt of its own revision

The unit is one page of one respondent.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from provisioning.fault_injection.answers import (
    Pages,
    answers_for,
    as_stored,
    fingerprint,
)
from provisioning.fault_injection.attempts import FINISHING, Attempt
from provisioning.load.respondent import ACKED, UNKNOWN

FORBIDDEN = (
    "lost",
    "regressions",
    "crossed",
    "corrupt",
    "unexpected",
    "duplicated",
    "false_saved",
)
OWNER = re.compile(r"(\d+) on \d+ at \d+: ")
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


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    respondent: int
    item: int
    state: str
    value: str | None
    revision: int


def read_stored_answers(connection: Any, administration: int) -> Iterator[StoredAnswer]:
    with connection.cursor() as cursor:
        cursor.execute(WITHOUT_INDEXES)
        cursor.execute(STORED, [administration])
        for row in cursor:
            yield StoredAnswer(*row)


def read_completed(connection: Any, administration: int) -> frozenset[int]:
    with connection.cursor() as cursor:
        cursor.execute(COMPLETED, [administration])
        return frozenset(respondent for (respondent,) in cursor)


@dataclass(frozen=True, slots=True)
class Finding:
    count: str
    respondent: int
    page: int
    # When the missing save was acknowledged; 0 for the other counts.
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

    def holds(self) -> bool:
        return not any(self.count(name) for name in FORBIDDEN)

    def without(self, excused: Iterable[Finding]) -> Verdict:
        dropped = set(excused)
        kept = [finding for finding in self.findings if finding not in dropped]
        return Verdict(kept, self.acknowledged, self.attempts)


# Respondent and page.
Key = tuple[int, int]
# Item -> its row.
StoredRows = dict[int, StoredAnswer]


@dataclass
class SentPage:
    """The attempts to save one page of one respondent, by revision."""

    outcomes: dict[int, set[str]] = field(default_factory=dict)
    receipts: dict[int, set[str]] = field(default_factory=dict)
    # Fingerprints.
    answers: dict[int, str] = field(default_factory=dict)
    # The newest acknowledged revision, and when it was acknowledged.
    newest: int = 0
    newest_at: float = 0.0
    found_by_retries: set[int] = field(default_factory=set)

    def add(self, attempt: Attempt) -> None:
        revision = attempt.revision
        outcomes = self.outcomes.setdefault(revision, set())
        if UNKNOWN in outcomes and attempt.found_stored:
            self.found_by_retries.add(revision)
        outcomes.add(attempt.outcome)
        self.answers[revision] = attempt.answers
        if attempt.outcome != ACKED:
            return
        self.receipts.setdefault(revision, set()).add(attempt.at)
        if revision >= self.newest:
            self.newest, self.newest_at = revision, attempt.answered


class Judge:
    """Compare a log with a final read; neither has to be in order."""

    def __init__(
        self,
        seed: int,
        pages: Pages,
        attempts: Iterable[Attempt],
        stored: Iterable[StoredAnswer],
        completed: frozenset[int] = frozenset(),
    ) -> None:
        """Read both; `completed` are the respondents who have finished."""
        self.seed = seed
        self.pages = pages
        self.completed = completed
        self.page_of = {item.id: page for page in pages for item in pages[page]}
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
        for row in stored:
            page = self.page_of.get(row.item, -1)
            rows = self.stored[row.respondent, page]
            if row.item in rows:
                self.findings.append(Finding("duplicated", row.respondent, page))
            rows[row.item] = row

    def _add_attempt(self, attempt: Attempt) -> None:
        self.attempt_count += 1
        is_acked = attempt.outcome == ACKED
        if attempt.page == FINISHING:
            known = self.finishing.setdefault(attempt.respondent, 0.0)
            if is_acked:
                self.finishing[attempt.respondent] = known or attempt.answered
            return
        key = (attempt.respondent, attempt.page)
        self.sent[key].add(attempt)
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
        acknowledged_saves = sum(
            ACKED in outcomes
            for sent in self.sent.values()
            for outcomes in sent.outcomes.values()
        )
        return Verdict(findings, acknowledged_saves, self.attempt_count)

    def _judge_page(self, key: Key) -> Iterator[Finding]:
        sent, stored = self.sent.get(key), self.stored.get(key, {})
        if sent is None:
            yield Finding(self._classify_foreign(key, stored), *key)
            return
        for receipts in sent.receipts.values():
            if len(receipts) > 1:
                yield Finding("duplicated", *key)
        for _ in sent.found_by_retries:
            yield Finding("recovered", *key)
        is_lost = False
        if sent.newest:
            rows = [stored.get(item.id) for item in self.pages[key[1]]]
            is_missing = None in rows
            is_older = any(row.revision < sent.newest for row in rows if row)
            is_lost = is_missing or is_older
            if is_lost:
                yield Finding("lost", *key, acknowledged=sent.newest_at)
            if is_older and not is_missing:
                yield Finding("regressions", *key, acknowledged=sent.newest_at)
        wrong = self._classify_wrong_rows(key, sent, stored)
        if wrong:
            yield Finding(wrong, *key)
            return
        if is_lost or not stored:
            return
        # A page is saved whole: all its rows have one revision.
        revisions = {row.revision for row in stored.values()}
        if len(revisions) > 1 or len(stored) < len(self.pages[key[1]]):
            yield Finding("corrupt", *key)
        elif sent.outcomes[max(revisions)] == {UNKNOWN}:
            yield Finding("recovered", *key)

    def _classify_wrong_rows(self, key: Key, sent: SentPage, stored: StoredRows) -> str:
        """Return the worst that is wrong with these rows, or ""."""
        respondent, page = key
        found = set()
        for revision, rows in _by_revision(stored).items():
            if revision not in sent.outcomes:
                found.add(self._classify_foreign(key, rows))
            elif not self._is_as_sent(key, revision, rows):
                foreign = self._classify_foreign(key, rows)
                found.add("crossed" if foreign == "crossed" else "corrupt")
            else:
                answers = answers_for(
                    seed=self.seed,
                    respondent=respondent,
                    page=page,
                    revision=revision,
                    items=self.pages[page],
                )
                if fingerprint(answers) != sent.answers[revision]:
                    found.add("corrupt")
        worst_first = ("crossed", "corrupt", "unexpected")
        return next((name for name in worst_first if name in found), "")

    def _is_as_sent(self, key: Key, revision: int, rows: StoredRows) -> bool:
        respondent, page = key
        items = self.pages[page]
        answers = answers_for(
            seed=self.seed,
            respondent=respondent,
            page=page,
            revision=revision,
            items=items,
        )
        expected = {item.id: as_stored(answers[item.name]) for item in items}
        return all(
            expected[row.item] == (row.state, row.value) for row in rows.values()
        )

    def _classify_foreign(self, key: Key, rows: StoredRows) -> str:
        """Tell answers of another respondent from answers that were never sent."""
        respondent, page = key
        owners = [OWNER.match(row.value or "") for row in rows.values()]
        if any(owner and int(owner[1]) != respondent for owner in owners):
            return "crossed"
        for revision, part in _by_revision(rows).items():
            others = self.senders.get((page, revision), set()) - {respondent}
            if any(self._is_as_sent((other, page), revision, part) for other in others):
                return "crossed"
        return "unexpected"


def _by_revision(stored: StoredRows) -> dict[int, StoredRows]:
    parts: dict[int, StoredRows] = defaultdict(dict)
    for row in stored.values():
        parts[row.revision][row.item] = row
    return parts
