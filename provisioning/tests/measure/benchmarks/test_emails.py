"""What `provisioning/run emails` says about doubled and missing e-mails."""

from __future__ import annotations

from provisioning.measure.benchmarks.emails import figures_of

SENT = {
    "people": 10,
    "sent": 8,
    "bounced": 1,
    "failed": 1,
    "unconfirmed": 1,
    "failed_unreceived": 0,
    "tried_again": 0,
    "seconds": 0.05,
    "cpu_seconds": 0.01,
    "memory_mb": 100,
    "memory_growth_mb": 0,
}


def test_every_email_is_received_once_or_has_a_reason():
    figures = figures_of(SENT, {"received": 9, "times": {"1": 9}, "hung": 1})
    assert (figures["doubled"], figures["missing"]) == (0, 0)
    assert figures["per_s"] == 200


def test_a_doubled_email_is_counted():
    figures = figures_of(SENT, {"received": 9, "times": {"1": 7, "2": 2}})
    assert (figures["doubled"], figures["missing"]) == (2, 0)


def test_an_email_that_did_not_arrive_is_missing():
    figures = figures_of(SENT, {"received": 7, "times": {"1": 7}})
    assert (figures["doubled"], figures["missing"]) == (0, 2)
