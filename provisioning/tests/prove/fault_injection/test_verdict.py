"""Each count is raised by one planted fault, and by no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioning.measure.load.respondent import ACKED, REJECTED, UNKNOWN
from provisioning.prove.fault_injection.saves import (
    ANSWERED,
    FINISHING,
    LAST_LINE,
    AnswerSource,
    Attempt,
    Item,
    LogReader,
    fingerprint,
)
from provisioning.prove.fault_injection.verdict import (
    FORBIDDEN,
    Judge,
    StoredAnswer,
    Verdict,
)

SEED = 20261121
VALUES = ("1", "2", "3", "4", "5")
PAGES = {
    page: [Item(page * 10 + n, f"p{page}_q{n}", VALUES) for n in range(5)]
    for page in (1, 2)
}
SOURCE = AnswerSource(SEED, PAGES)
MAYA, SAM = 41, 42


def attempt(respondent, page, revision, outcome=ACKED, **changes):
    acked = outcome == ACKED
    sent = SOURCE.answers(respondent, page, revision) if page != FINISHING else {}
    made = Attempt(
        number=f"{respondent}-{page}-{revision}",
        respondent=respondent,
        page=page,
        revision=revision,
        tab="1",
        seen=0,
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


def rows(respondent, page, revision, under=None):
    stored = SOURCE.stored(respondent, page, revision)
    return [
        StoredAnswer(under or respondent, item, ANSWERED, value, revision)
        for item, value in stored.items()
    ]


def verdict(attempts, stored, completed=frozenset()) -> Verdict:
    return Judge(SOURCE, attempts, stored, completed).verdict()


def counts(result: Verdict) -> dict[str, int]:
    return {name: count for name, count in result.counts().items() if count}


def good_run():
    """Two people, two pages each, one page changed, one reply lost and retried."""
    attempts = [
        attempt(MAYA, 1, 1001),
        attempt(MAYA, 1, 1003),
        attempt(MAYA, 1, 1001, REJECTED, kind="late", reply="409 superseded"),
        attempt(MAYA, 2, 1002, UNKNOWN),
        attempt(MAYA, 2, 1002, kind="retry"),
        attempt(SAM, 1, 1001),
        attempt(SAM, 2, 1002),
        attempt(SAM, FINISHING, 0, receipt=0),
    ]
    stored = (
        rows(MAYA, 1, 1003)
        + rows(MAYA, 2, 1002)
        + rows(SAM, 1, 1001)
        + rows(SAM, 2, 1002)
    )
    return attempts, stored, frozenset({SAM})


def test_a_good_run_has_no_findings():
    result = verdict(*good_run())
    assert counts(result) == {}
    assert result.forbidden() == []
    assert (result.acknowledged, result.attempts) == (5, 8)


def test_one_deleted_row_is_one_lost_page():
    attempts, stored, completed = good_run()
    for n in range(len(stored)):
        result = verdict(attempts, stored[:n] + stored[n + 1 :], completed)
        assert counts(result) == {"lost": 1}
        assert result.forbidden()


def test_a_page_without_any_row_is_one_lost_page():
    attempts, stored, completed = good_run()
    result = verdict(attempts, stored[: -len(PAGES[2])], completed)
    assert counts(result) == {"lost": 1}


def test_a_missing_completion_is_lost():
    attempts, stored, _ = good_run()
    assert counts(verdict(attempts, stored)) == {"lost": 1}


def test_a_stored_older_revision_is_a_regression():
    attempts, stored, completed = good_run()
    stored[: len(PAGES[1])] = rows(MAYA, 1, 1001)
    result = verdict(attempts, stored, completed)
    assert counts(result) == {"lost": 1, "regressions": 1}


def test_answers_of_another_respondent_are_crossed():
    """Both used the same revision, so that only the answers differ."""
    attempts, stored, completed = good_run()
    stored[-len(PAGES[2]) :] = rows(MAYA, 2, 1002, under=SAM)
    result = verdict(attempts, stored, completed)
    assert counts(result) == {"crossed": 1}


def test_a_page_stored_under_an_unknown_respondent_is_crossed():
    attempts, stored, completed = good_run()
    stored += rows(SAM, 1, 1001, under=77)
    assert counts(verdict(attempts, stored, completed)) == {"crossed": 1}


def test_a_value_that_was_not_sent_is_corrupt():
    attempts, stored, completed = good_run()
    for n, row in enumerate(stored):
        other_value = next(value for value in VALUES if value != row.value)
        changed = [*stored[:n], row._replace(value=other_value), *stored[n + 1 :]]
        result = verdict(attempts, changed, completed)
        assert counts(result) == {"corrupt": 1}


def test_a_page_made_of_two_sendings_is_corrupt():
    attempts, stored, completed = good_run()
    attempts.append(attempt(MAYA, 1, 1005, UNKNOWN))
    stored[0] = rows(MAYA, 1, 1005)[0]
    assert counts(verdict(attempts, stored, completed)) == {"corrupt": 1}


def test_a_page_that_was_never_sent_is_unexpected():
    attempts, stored, completed = good_run()
    stored += rows(77, 1, 5005)
    assert counts(verdict(attempts, stored, completed)) == {"unexpected": 1}


def test_a_completion_that_was_never_sent_is_unexpected():
    attempts, stored, _ = good_run()
    result = verdict(attempts, stored, frozenset({SAM, MAYA}))
    assert counts(result) == {"unexpected": 1}


def test_two_rows_for_one_key_are_duplicated():
    attempts, stored, completed = good_run()
    result = verdict(attempts, [*stored, stored[0]], completed)
    assert counts(result) == {"duplicated": 1}


def test_two_receipts_for_one_save_are_duplicated():
    attempts, stored, completed = good_run()
    attempts.append(replace(attempts[0], at="2026-11-21T12:00:09+00:00"))
    assert counts(verdict(attempts, stored, completed)) == {"duplicated": 1}


def test_a_stored_save_of_unknown_outcome_is_recovered_and_allowed():
    attempts, stored, completed = good_run()
    attempts.append(attempt(MAYA, 1, 1005, UNKNOWN))
    stored[: len(PAGES[1])] = rows(MAYA, 1, 1005)
    result = verdict(attempts, stored, completed)
    assert counts(result) == {"recovered": 1}
    assert result.forbidden() == []


@pytest.mark.parametrize("receipt", [0, 1002])
def test_an_acknowledgement_without_its_own_receipt_is_false(receipt):
    attempts, stored, completed = good_run()
    attempts[0] = replace(attempts[0], receipt=receipt)
    assert counts(verdict(attempts, stored, completed)) == {"false_saved": 1}


# Histories in which every page is stored as it was sent


def two_tabs(seen):
    """Maya saves page 1 in one tab, and then again in another one."""
    attempts = [
        attempt(MAYA, 1, 1001, tab="1"),
        attempt(MAYA, 1, 1002, tab="2", seen=seen),
    ]
    return attempts, rows(MAYA, 1, 1002)


def test_a_save_may_replace_one_that_its_tab_has_shown():
    assert counts(verdict(*two_tabs(seen=1001))) == {}


def test_an_acknowledged_save_replaced_by_one_that_never_saw_it_is_a_lost_update():
    result = verdict(*two_tabs(seen=1000))
    assert counts(result) == {"lost_updates": 1}
    assert result.forbidden()


def test_a_save_may_replace_an_earlier_one_of_its_own_tab():
    attempts, stored = two_tabs(seen=0)
    attempts[1] = replace(attempts[1], tab="1")
    assert counts(verdict(attempts, stored)) == {}


def test_a_save_of_unknown_outcome_that_is_stored_may_lose_an_update_too():
    attempts, stored = two_tabs(seen=0)
    attempts[1] = replace(attempts[1], outcome=UNKNOWN, receipt=0, at="")
    assert counts(verdict(attempts, stored)) == {"lost_updates": 1, "recovered": 1}


def test_a_save_that_was_refused_has_replaced_nothing():
    attempts, _ = two_tabs(seen=0)
    attempts[1] = refused(attempts[1])
    assert counts(verdict(attempts, rows(MAYA, 1, 1001))) == {}


def test_a_save_of_unknown_outcome_may_be_replaced_unseen():
    attempts, stored = two_tabs(seen=0)
    attempts[0] = replace(attempts[0], outcome=UNKNOWN, receipt=0, at="")
    assert counts(verdict(attempts, stored)) == {}


def test_a_lost_update_is_found_after_a_later_save_that_covers_it():
    attempts, _ = two_tabs(seen=0)
    attempts.append(attempt(MAYA, 1, 1003, tab="3", seen=1002))
    assert counts(verdict(attempts, rows(MAYA, 1, 1003))) == {"lost_updates": 1}


def refused(first, **changes):
    changes = {"reply": "409 superseded", **changes}
    return replace(first, outcome=REJECTED, receipt=0, at="", **changes)


@pytest.mark.parametrize("error", ["superseded", "finished", "closed"])
def test_a_stored_save_that_was_refused_is_falsely_rejected(error):
    first = attempt(MAYA, 1, 1001, UNKNOWN)
    retry = refused(first, kind="retry", reply=f"409 {error}")
    result = verdict([first, retry], rows(MAYA, 1, 1001))
    assert result.count("false_rejected") == 1
    assert result.forbidden()


def test_an_acknowledged_save_may_not_be_refused_before_it_was_replaced():
    first = attempt(MAYA, 1, 1001)
    doubled = refused(first, kind="double", sent=101.0, answered=101.5)
    newer = attempt(MAYA, 1, 1002, sent=102.0, answered=102.5)
    result = verdict([first, doubled, newer], rows(MAYA, 1, 1002))
    assert counts(result) == {"false_rejected": 1}


def test_an_acknowledged_save_may_be_refused_after_it_was_replaced():
    first = attempt(MAYA, 1, 1001)
    newer = attempt(MAYA, 1, 1002, sent=102.0, answered=102.5)
    doubled = refused(first, kind="double", sent=101.0, answered=103.0)
    assert counts(verdict([first, newer, doubled], rows(MAYA, 1, 1002))) == {}


def test_an_ended_session_is_no_refusal_of_the_save():
    first = attempt(MAYA, 1, 1001)
    retry = refused(first, reply="401 session")
    assert counts(verdict([first, retry], rows(MAYA, 1, 1001))) == {}


def test_all_counts_but_recovered_are_forbidden():
    attempts, stored, completed = good_run()
    assert set(FORBIDDEN) == {
        "lost",
        "regressions",
        "crossed",
        "corrupt",
        "unexpected",
        "duplicated",
        "lost_updates",
        "false_saved",
        "false_rejected",
    }
    assert verdict(attempts, [], completed).forbidden()


def test_losses_after_a_moment_can_be_excused():
    attempts, stored, completed = good_run()
    attempts.append(attempt(MAYA, 1, 1009, answered=200.0))
    result = verdict(attempts, stored, completed)
    late = [finding for finding in result.findings if finding.acknowledged >= 150]
    assert counts(result) == {"lost": 1, "regressions": 1}
    assert result.without(late).forbidden() == []


def test_a_growing_log_is_read_by_whole_lines(tmp_path):
    path = tmp_path / "one.log"
    reader = LogReader(path)
    assert list(reader.read()) == []
    log = path.open("a", buffering=1)
    first, second = (attempt(MAYA, 1, revision) for revision in (1001, 1002))
    log.write(first.line())
    assert list(reader.read()) == [first]
    with path.open("a") as file:
        file.write(second.line()[:20])
    assert list(reader.read()) == []
    with path.open("a") as file:
        file.write(second.line()[20:])
    assert list(reader.read()) == [second]
    assert not reader.completed
    log.write(LAST_LINE)
    log.close()
    assert list(reader.read()) == []
    assert reader.completed
