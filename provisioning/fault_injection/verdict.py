"""What was sent against what stands: the counts that have to be zero.

lost         acknowledged, and missing from the final read, or older there
regressions  those of the lost pages of which an older revision stands
crossed      stored under another respondent
corrupt      stored, but not what was sent; or a page made of two sendings
unexpected   stored, and never attempted
duplicated   two rows for one key; one sending that gave two receipts
recovered    outcome unknown, found stored by a retry or by the final read:
             allowed, and reported
false_saved  shown as saved without a receipt of its own revision

The unit is one page of one respondent.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from provisioning.fault_injection.answers import (
    Answers,
    Pages,
    answers_for,
    as_stored,
    fingerprint,
)
from provisioning.fault_injection.attempts import ACKED, FINISHING, UNKNOWN, Attempt

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


@dataclass(frozen=True, slots=True)
class Row:
    """A stored answer, as the final read found it."""

    respondent: int
    item: int
    state: str
    value: str | None
    revision: int


@dataclass(frozen=True, slots=True)
class Finding:
    count: str
    respondent: int
    page: int
    # When the save that is missing was acknowledged; 0 for the other counts.
    acknowledged: float = 0.0


@dataclass
class Verdict:
    findings: list[Finding] = field(default_factory=list)
    # Distinct saves: a retry of the same revision counts once.
    acknowledged: int = 0
    attempts: int = 0

    def count(self, name: str) -> int:
        return sum(1 for finding in self.findings if finding.count == name)

    def counts(self) -> dict[str, int]:
        return {name: self.count(name) for name in (*FORBIDDEN, "recovered")}

    def holds(self) -> bool:
        return not any(self.count(name) for name in FORBIDDEN)

    def without(self, excused: Iterable[Finding]) -> Verdict:
        dropped = set(excused)
        kept = [finding for finding in self.findings if finding not in dropped]
        return Verdict(kept, self.acknowledged, self.attempts)


Key = tuple[int, int]


@dataclass
class Sent:
    """Everything that the log says of one page of one respondent."""

    outcomes: dict[int, set[str]] = field(default_factory=dict)
    receipts: dict[int, set[str]] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
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

    @property
    def acknowledged(self) -> list[int]:
        return [one for one, known in self.outcomes.items() if ACKED in known]


@dataclass
class Judge:
    """Compares a log with a final read. Neither is kept in order."""

    seed: int
    pages: Pages
    attempts: Iterable[Attempt]
    rows: Iterable[Row]
    # The respondents who are finished, as the database says.
    completed: frozenset[int] = frozenset()

    def verdict(self) -> Verdict:
        verdict = Verdict()
        self._read_log(verdict)
        self._read_rows(verdict)
        verdict.acknowledged = sum(
            len(sent.acknowledged) for sent in self.sent.values()
        )
        for key in self.sent.keys() | self.stored.keys():
            verdict.findings += self._of_page(key)
        verdict.findings += self._of_finishing()
        return verdict

    def _read_log(self, verdict: Verdict) -> None:
        self.sent: dict[Key, Sent] = defaultdict(Sent)
        self.finishing: dict[int, float] = {}
        self.senders: dict[Key, set[int]] = defaultdict(set)
        for attempt in self.attempts:
            verdict.attempts += 1
            if attempt.page == FINISHING:
                self._add_finishing(attempt)
                continue
            key = (attempt.respondent, attempt.page)
            self.sent[key].add(attempt)
            self.senders[attempt.page, attempt.revision].add(attempt.respondent)
            if attempt.outcome == ACKED and attempt.receipt != attempt.revision:
                verdict.findings.append(Finding("false_saved", *key))

    def _add_finishing(self, attempt: Attempt) -> None:
        known = self.finishing.setdefault(attempt.respondent, 0.0)
        if attempt.outcome == ACKED:
            self.finishing[attempt.respondent] = known or attempt.answered

    def _read_rows(self, verdict: Verdict) -> None:
        self.stored: dict[Key, dict[int, Row]] = defaultdict(dict)
        for row in self.rows:
            page = self._page_of.get(row.item, -1)
            items = self.stored[row.respondent, page]
            if row.item in items:
                verdict.findings.append(Finding("duplicated", row.respondent, page))
            items[row.item] = row

    @cached_property
    def _page_of(self) -> Mapping[int, int]:
        return {item.id: page for page, items in self.pages.items() for item in items}

    def _of_page(self, key: Key) -> Iterator[Finding]:
        sent, stored = self.sent.get(key), self.stored.get(key, {})
        if sent is None:
            yield Finding(self._foreign(key, stored), *key)
            return
        for receipts in sent.receipts.values():
            if len(receipts) > 1:
                yield Finding("duplicated", *key)
        for _ in sent.found_by_retries:
            yield Finding("recovered", *key)
        missing = self._missing(key[1], sent, stored)
        for name in missing:
            yield Finding(name, *key, acknowledged=sent.newest_at)
        wrong = self._wrong(key, sent, stored)
        if wrong:
            yield Finding(wrong, *key)
        elif not missing and self._is_torn(key[1], stored):
            yield Finding("corrupt", *key)
        elif stored and not missing:
            newest = max(row.revision for row in stored.values())
            if sent.outcomes[newest] == {UNKNOWN}:
                yield Finding("recovered", *key)

    def _missing(
        self, page: int, sent: Sent, stored: Mapping[int, Row]
    ) -> Sequence[str]:
        if not sent.newest:
            return ()
        rows = [stored.get(item.id) for item in self.pages[page]]
        if any(row is None for row in rows):
            return ("lost",)
        if any(row.revision < sent.newest for row in rows if row):
            return ("lost", "regressions")
        return ()

    def _wrong(self, key: Key, sent: Sent, stored: Mapping[int, Row]) -> str:
        """The worst that can be said of the rows that stand, or nothing."""
        found = set()
        for revision, rows in _by_revision(stored).items():
            if revision not in sent.outcomes:
                found.add(self._foreign(key, rows))
            elif not self._is_as_sent(key, revision, rows):
                found.add(
                    "crossed" if self._foreign(key, rows) == "crossed" else "corrupt"
                )
            elif fingerprint(self._answers(key, revision)) != sent.answers[revision]:
                found.add("corrupt")
        return next(
            (one for one in ("crossed", "corrupt", "unexpected") if one in found), ""
        )

    def _is_as_sent(self, key: Key, revision: int, rows: Mapping[int, Row]) -> bool:
        answers = self._answers(key, revision)
        names = {item.id: item.name for item in self.pages[key[1]]}
        return all(
            as_stored(answers[names[row.item]]) == (row.state, row.value)
            for row in rows.values()
        )

    def _foreign(self, key: Key, rows: Mapping[int, Row]) -> str:
        """Somebody else's, or nobody's."""
        respondent, page = key
        owners = [OWNER.match(row.value or "") for row in rows.values()]
        if any(owner and int(owner[1]) != respondent for owner in owners):
            return "crossed"
        for revision, part in _by_revision(rows).items():
            others = self.senders.get((page, revision), set()) - {respondent}
            if any(self._is_as_sent((other, page), revision, part) for other in others):
                return "crossed"
        return "unexpected"

    def _answers(self, key: Key, revision: int) -> Answers:
        respondent, page = key
        return answers_for(
            seed=self.seed,
            respondent=respondent,
            page=page,
            revision=revision,
            items=self.pages[page],
        )

    def _is_torn(self, page: int, stored: Mapping[int, Row]) -> bool:
        # A page is saved whole: every row of it stands at one revision.
        revisions = {row.revision for row in stored.values()}
        return len(revisions) > 1 or 0 < len(stored) < len(self.pages[page])

    def _of_finishing(self) -> Iterator[Finding]:
        for respondent, acknowledged in self.finishing.items():
            if acknowledged and respondent not in self.completed:
                yield Finding("lost", respondent, FINISHING, acknowledged)
        for respondent in self.completed - self.finishing.keys():
            yield Finding("unexpected", respondent, FINISHING)


def _by_revision(stored: Mapping[int, Row]) -> Mapping[int, Mapping[int, Row]]:
    parts: dict[int, dict[int, Row]] = defaultdict(dict)
    for row in stored.values():
        parts[row.revision][row.item] = row
    return parts
