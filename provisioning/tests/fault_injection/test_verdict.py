"""Each count is raised by one planted fault, and by no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioning.fault_injection.answers import (
    Item,
    answers_for,
    as_stored,
    fingerprint,
)
from provisioning.fault_injection.attempts import (
    FINISHING,
    Attempt,
    AttemptLog,
    LogReader,
)
from provisioning.fault_injection.verdict import (
    FORBIDDEN,
    Judge,
    StoredAnswer,
    Verdict,
)
from provisioning.load.respondent import ACKED, REJECTED, UNKNOWN

SEED = 20261121
OPTIONS = ("1", "2", "3", "4", "5")
CHOICES = {
    page: [
        Item(page * 10 + n, f"p{page}_q{n}", "select_one", OPTIONS) for n in range(5)
    ]
    for page in (1, 2)
}
WITH_TEXT = {
    page: [*items, Item(page * 10 + 9, f"p{page}_t", "text")]
    for page, items in CHOICES.items()
}
MAYA, SAM = 41, 42


@pytest.fixture(params=[CHOICES, WITH_TEXT], ids=["choices", "with a text"])
def pages(request):
    return request.param


def answers(pages, respondent, page, revision):
    return answers_for(
        seed=SEED,
        respondent=respondent,
        page=page,
        revision=revision,
        items=pages[page],
    )


def attempt(pages, respondent, page, revision, outcome=ACKED, **changes):
    acked = outcome == ACKED
    sent = answers(pages, respondent, page, revision) if page != FINISHING else {}
    made = Attempt(
        number=f"{respondent}-{page}-{revision}",
        respondent=respondent,
        page=page,
        revision=revision,
        answers=fingerprint(sent),
        sent=100.0,
        answered=100.5,
        outcome=outcome,
        kind="first",
        reply="200" if acked else "timeout",
        receipt=revision if acked else 0,
        at="2026-11-21T12:00:00+00:00" if acked else "",
    )
    return replace(made, **changes)


def rows(pages, respondent, page, revision, under=None):
    sent = answers(pages, respondent, page, revision)
    return [
        StoredAnswer(
            under or respondent, item.id, *as_stored(sent[item.name]), revision
        )
        for item in pages[page]
    ]


def verdict(pages, attempts, stored, completed=frozenset()) -> Verdict:
    return Judge(SEED, pages, attempts, stored, completed).verdict()


def counts(found: Verdict) -> dict[str, int]:
    return {name: count for name, count in found.counts().items() if count}


def good_run(pages):
    """Two people, two pages each, one page changed, one reply lost and retried."""
    attempts = [
        attempt(pages, MAYA, 1, 1001),
        attempt(pages, MAYA, 1, 1003),
        attempt(pages, MAYA, 1, 1001, REJECTED, kind="late", reply="409 superseded"),
        attempt(pages, MAYA, 2, 1002, UNKNOWN),
        attempt(pages, MAYA, 2, 1002, kind="retry"),
        attempt(pages, SAM, 1, 1001),
        attempt(pages, SAM, 2, 1002),
        attempt(pages, SAM, FINISHING, 0, receipt=0),
    ]
    stored = (
        rows(pages, MAYA, 1, 1003)
        + rows(pages, MAYA, 2, 1002)
        + rows(pages, SAM, 1, 1001)
        + rows(pages, SAM, 2, 1002)
    )
    return attempts, stored, frozenset({SAM})


def test_a_good_run_has_no_findings(pages):
    found = verdict(pages, *good_run(pages))
    assert counts(found) == {}
    assert found.holds()
    assert (found.acknowledged, found.attempts) == (5, 8)


def test_one_deleted_row_is_one_lost_page(pages):
    attempts, stored, completed = good_run(pages)
    for n in range(len(stored)):
        found = verdict(pages, attempts, stored[:n] + stored[n + 1 :], completed)
        assert counts(found) == {"lost": 1}
        assert not found.holds()


def test_a_page_without_any_row_is_one_lost_page(pages):
    attempts, stored, completed = good_run(pages)
    found = verdict(pages, attempts, stored[: -len(pages[2])], completed)
    assert counts(found) == {"lost": 1}


def test_a_missing_completion_is_lost(pages):
    attempts, stored, _ = good_run(pages)
    assert counts(verdict(pages, attempts, stored)) == {"lost": 1}


def test_a_stored_older_revision_is_a_regression(pages):
    attempts, stored, completed = good_run(pages)
    stored[: len(pages[1])] = rows(pages, MAYA, 1, 1001)
    found = verdict(pages, attempts, stored, completed)
    assert counts(found) == {"lost": 1, "regressions": 1}


def test_answers_of_another_respondent_are_crossed(pages):
    """Both used the same revision, so that only the answers differ."""
    attempts, stored, completed = good_run(pages)
    stored[-len(pages[2]) :] = rows(pages, MAYA, 2, 1002, under=SAM)
    found = verdict(pages, attempts, stored, completed)
    assert counts(found) == {"crossed": 1}


def test_a_page_stored_under_an_unknown_respondent_is_crossed(pages):
    attempts, stored, completed = good_run(pages)
    stored += rows(pages, SAM, 1, 1001, under=77)
    assert counts(verdict(pages, attempts, stored, completed)) == {"crossed": 1}


def test_a_value_that_was_not_sent_is_corrupt(pages):
    attempts, stored, completed = good_run(pages)
    for n, row in enumerate(stored):
        other = next(value for value in OPTIONS if value != row.value)
        changed = [*stored[:n], replace(row, value=other), *stored[n + 1 :]]
        found = verdict(pages, attempts, changed, completed)
        assert counts(found) == {"corrupt": 1}


def test_a_page_made_of_two_sendings_is_corrupt(pages):
    attempts, stored, completed = good_run(pages)
    attempts.append(attempt(pages, MAYA, 1, 1005, UNKNOWN))
    stored[0] = rows(pages, MAYA, 1, 1005)[0]
    assert counts(verdict(pages, attempts, stored, completed)) == {"corrupt": 1}


def test_a_page_that_was_never_sent_is_unexpected(pages):
    attempts, stored, completed = good_run(pages)
    stored += rows(pages, 77, 1, 5005)
    assert counts(verdict(pages, attempts, stored, completed)) == {"unexpected": 1}


def test_a_completion_that_was_never_sent_is_unexpected(pages):
    attempts, stored, _ = good_run(pages)
    found = verdict(pages, attempts, stored, frozenset({SAM, MAYA}))
    assert counts(found) == {"unexpected": 1}


def test_two_rows_for_one_key_are_duplicated(pages):
    attempts, stored, completed = good_run(pages)
    found = verdict(pages, attempts, [*stored, stored[0]], completed)
    assert counts(found) == {"duplicated": 1}


def test_two_receipts_for_one_save_are_duplicated(pages):
    attempts, stored, completed = good_run(pages)
    attempts.append(replace(attempts[0], at="2026-11-21T12:00:09+00:00"))
    assert counts(verdict(pages, attempts, stored, completed)) == {"duplicated": 1}


def test_a_stored_save_of_unknown_outcome_is_recovered_and_allowed(pages):
    attempts, stored, completed = good_run(pages)
    attempts.append(attempt(pages, MAYA, 1, 1005, UNKNOWN))
    stored[: len(pages[1])] = rows(pages, MAYA, 1, 1005)
    found = verdict(pages, attempts, stored, completed)
    assert counts(found) == {"recovered": 1}
    assert found.holds()


@pytest.mark.parametrize("receipt", [0, 1002])
def test_an_acknowledgement_without_its_own_receipt_is_false(pages, receipt):
    attempts, stored, completed = good_run(pages)
    attempts[0] = replace(attempts[0], receipt=receipt)
    assert counts(verdict(pages, attempts, stored, completed)) == {"false_saved": 1}


def test_all_counts_but_recovered_are_forbidden(pages):
    attempts, stored, completed = good_run(pages)
    assert set(FORBIDDEN) == {
        "lost",
        "regressions",
        "crossed",
        "corrupt",
        "unexpected",
        "duplicated",
        "false_saved",
    }
    assert not verdict(pages, attempts, [], completed).holds()


def test_losses_after_a_moment_can_be_excused(pages):
    attempts, stored, completed = good_run(pages)
    attempts.append(attempt(pages, MAYA, 1, 1009, answered=200.0))
    found = verdict(pages, attempts, stored, completed)
    late = [one for one in found.findings if one.acknowledged >= 150]
    assert counts(found) == {"lost": 1, "regressions": 1}
    assert found.without(late).holds()


def test_a_growing_log_is_read_by_whole_lines(tmp_path, pages):
    path = tmp_path / "one.log"
    reader = LogReader(path)
    assert list(reader.read()) == []
    log = AttemptLog(path)
    first, second = (attempt(pages, MAYA, 1, revision) for revision in (1001, 1002))
    log.write(first)
    assert list(reader.read()) == [first]
    with path.open("a") as file:
        file.write(second.line()[:20])
    assert list(reader.read()) == []
    with path.open("a") as file:
        file.write(second.line()[20:])
    assert list(reader.read()) == [second]
    assert not reader.completed
    log.complete()
    assert list(reader.read()) == []
    assert reader.completed


def test_answers_differ_by_respondent_page_and_revision(pages):
    first = answers(pages, MAYA, 1, 1001)
    assert first == answers(pages, MAYA, 1, 1001)
    others = [
        answers(pages, SAM, 1, 1001),
        answers(pages, MAYA, 1, 1002),
        answers(pages, MAYA, 2, 1001),
    ]
    assert all(other != first for other in others)


def test_blanks_and_several_options_are_stored_as_rows():
    assert as_stored(None) == as_stored([]) == ("s", None)
    assert as_stored(["a", "c"]) == ("a", "a c")
