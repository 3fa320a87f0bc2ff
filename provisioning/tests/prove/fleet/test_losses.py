"""A lost answer is found, and given to the host that took it."""

from __future__ import annotations

from dataclasses import replace

from provisioning.measure.load.respondent import UNKNOWN
from provisioning.prove.fleet.losses import Loss, judge, longest_wait, shortcomings
from provisioning.tests.prove.fault_injection.test_verdict import (
    MAYA,
    SAM,
    SOURCE,
    attempt,
    rows,
)

WEB = Loss("web", "web1", began=90.0, ended=99.0, away_s=1.0, start_s=5.0)
PRIMARY = Loss("primary", "db2", began=101.0, ended=140.0, away_s=9.0, start_s=30.0)
CALM = {"open_doors": [], "changed_again": []}


def judged(stored, *losses):
    attempts = [attempt(MAYA, 1, 1), attempt(SAM, 1, 1)]
    each = [replace(loss) for loss in losses]
    return CALM | judge(SOURCE, attempts, stored, frozenset(), each)


def test_all_receipts_are_kept():
    figures = judged(rows(MAYA, 1, 1) + rows(SAM, 1, 1), WEB, PRIMARY)
    assert (figures["saves_acknowledged"], figures["lost"]) == (2, 0)
    assert shortcomings(figures) == []


def test_a_lost_answer_is_counted_for_the_host_that_was_lost_after_its_receipt():
    figures = judged(rows(SAM, 1, 1), WEB, PRIMARY)
    assert figures["lost"] == 1
    assert figures["killed"]["web"]["lost"] == 0
    assert figures["killed"]["primary"]["lost"] == 1
    assert shortcomings(figures) == ["lost is 1"]


def test_what_ended_badly_is_said():
    stored = rows(MAYA, 1, 1) + rows(SAM, 1, 1)
    figures = judged(stored, replace(WEB, away_s=None, start_s=None))
    figures |= {"open_doors": ["10.0.0.21:6379"], "changed_again": ["web : Start"]}
    assert shortcomings(figures) == [
        "no page was saved again after the loss of: web",
        "web1 did not come back whole",
        "the firewall lets everybody in at 10.0.0.21:6379",
        "a second run changed something: web : Start",
    ]


def test_a_run_without_saves_proves_nothing():
    figures = CALM | judge(SOURCE, [], [], frozenset(), [])
    assert shortcomings(figures) == ["nobody saved a page"]


def test_a_page_waits_from_its_first_attempt_to_its_receipt():
    cut = attempt(MAYA, 1, 1, UNKNOWN, sent=91.0, answered=96.0)
    late = attempt(MAYA, 1, 1, sent=97.0, answered=98.5)
    prompt = attempt(SAM, 1, 1, sent=95.0, answered=95.1)
    assert longest_wait([late, prompt, cut], 90.0, 99.0) == 7.5
    # Those of another loss.
    assert longest_wait([late, prompt, cut], 90.0, 98.0) == prompt.answered - 95.0
