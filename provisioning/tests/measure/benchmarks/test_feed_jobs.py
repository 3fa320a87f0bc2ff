"""Run the jobs of feeds in this process, and choose the workers of both pools."""

from __future__ import annotations

import json
import os

import pytest

from provisioning.measure.benchmarks import feed_jobs
from provisioning.measure.benchmarks.feed_rows import scans
from provisioning.measure.benchmarks.feed_servers import cut_in_half
from provisioning.tests.measure.benchmarks.test_feed_rows import (
    pytestmark as in_the_database,
)
from provisioning.tests.measure.benchmarks.test_feed_rows import servers  # noqa: F401
from survey.models import FeedScan, Job


def arguments_of(separate):
    return [
        json.loads(command[-1]) for command in feed_jobs.workers_of(separate=separate)
    ]


def test_both_variants_have_one_process_more_than_cores():
    separate, together = arguments_of(True), arguments_of(False)
    assert len(separate) == len(together) == os.cpu_count() + 1
    assert all(
        each == {"kinds": ["download", "scan"], "threads": 1} for each in together
    )
    downloads, *scanners = separate
    assert downloads == {"kinds": ["download"], "threads": 16}
    assert all(each == {"kinds": ["scan"], "threads": 1} for each in scanners)


class TestInTheDatabase:
    pytestmark = in_the_database

    @pytest.fixture(autouse=True)
    def no_messages(self, settings):
        settings.JOBS_BY_MESSAGE = False

    def test_a_warm_worker_is_timed_after_its_first_scan(self, servers):  # noqa: F811
        times = feed_jobs.in_turn(numbers=[1, 2, 3], apart=False)
        assert times["jobs"] == 4
        assert times["per_s"] > 0
        assert scans().filter(state=FeedScan.State.APPLIED).count() == 3
        assert Job.objects.filter(state=Job.State.DONE).count() == 6

    def test_a_scan_that_fails_is_not_timed(self, servers):  # noqa: F811
        district = servers.districts["1"]
        district.archive = cut_in_half(district.archive)
        with pytest.raises(SystemExit, match="not applied"):
            feed_jobs.run_scan(1, apart=False)
