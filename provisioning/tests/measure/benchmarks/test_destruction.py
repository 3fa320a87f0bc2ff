"""Measure saves beside a destruction, with simulated saves; destroy a small round."""

from __future__ import annotations

import math
import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.tests.conftest import create_staff
from provisioning.commands import Refusal
from provisioning.measure.benchmarks import destroyed_round, destruction
from provisioning.measure.benchmarks.destruction import (
    figures_of,
    save_throughout,
    shortcomings,
)
from provisioning.measure.load.tally import Tally
from survey.models import Administration, Response
from survey.tests.conftest import enrol, open_now, publish_items
from survey.tests.erasing.conftest import (
    jobs_run_by_hand as jobs_run_by_hand,  # noqa: PLC0414
)


def tally_of(*seconds: float, failed: int = 0) -> Tally:
    tally = Tally(began=math.inf)
    for each in seconds:
        tally.add("save", each, "")
    for _ in range(failed):
        tally.add("save", 0.0, "timeout")
    return tally


def test_saves_count_for_the_phase_in_which_they_were_sent():
    may_end, sent = threading.Event(), []

    def saves() -> Tally:
        sent.append(len(sent))
        # A warm-up of two rounds, two before, and the third of those during.
        if len(sent) == 7:
            may_end.set()
            destroyed.wait(5)
        return tally_of(len(sent))

    destroyed = threading.Event()

    def destroy() -> dict[str, object]:
        may_end.wait(5)
        destroyed.set()
        return {"rows": 7}

    saved, result = save_throughout(saves, destroy, rounds=2)
    assert result == {"rows": 7}
    assert list(saved["before"].latencies["save"]) == [3, 4]
    assert list(saved["during"].latencies["save"])[:3] == [5, 6, 7]
    assert len(saved["after"].latencies["save"]) == 2
    # None is counted twice, and only the warm-up is not.
    assert sum(tally.answered() for tally in saved.values()) == len(sent) - 2


def phases(**changes: Tally):
    usual = {phase: tally_of(*[0.01] * 100) for phase in destruction.PHASES}
    return figures_of({**usual, **changes})


def test_steady_saves_are_as_required():
    assert shortcomings(phases()) == []
    # Twice as slow is allowed.
    assert shortcomings(phases(during=tally_of(*[0.02] * 100))) == []


@pytest.mark.parametrize(
    ("during", "sentence"),
    [
        (tally_of(*[0.021] * 100), "99th percentile rose from 10.0 to 21.0 ms"),
        (tally_of(*[0.01] * 999, 1.2), "a save during took 1200 ms"),
        (tally_of(*[0.01] * 100, failed=1), "1 saves failed during"),
    ],
)
def test_slow_and_failed_saves_are_not_as_required(during, sentence):
    [missed] = shortcomings(phases(during=during))
    assert sentence in missed


def test_silence_is_refused():
    with pytest.raises(Refusal, match="No save was answered during"):
        phases(during=tally_of(failed=3))


@pytest.mark.django_db
@pytest.mark.sqlite
def test_the_answers_are_destroyed_by_the_products_own_job():
    administration = open_now(publish_items())
    Administration.objects.filter(pk=administration.pk).update(name="measured")
    maya = enrol(administration, create_staff().lincoln)
    Response.objects.create(
        administration_id=administration.pk,
        respondent_id=maya.pk,
        item_id=administration.published.survey.items.get(name="comment").pk,
        state="a",
        value="Good",
        revision=1,
        saved_at=timezone.now() - timedelta(days=200),
    )
    result = destroyed_round.destroy(job=destroyed_round.order())
    assert (result["state"], result["rows"]) == ("done", 1), result["message"]
    assert result["certified"]
    assert not Response.objects.exists()
