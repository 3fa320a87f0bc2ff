"""Read how long people took for the questions of an administration.

Only medians of many people leave this module, and nothing about answers.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from reports.answers.versions import SurveyVersion
from survey.database.replica.reports import reports_database
from survey.instrument.definitions.schema import VISIBLE
from survey.models import Administration, Respondent, Response

# Enough for a median, and few enough rows for a request: 60,000 of 60 items.
SAMPLE = 1000
FEWEST_PEOPLE = 10
# Longer, and the person did something else.
LONGEST_SECONDS = 600


class PageTimes(NamedTuple):
    """Median seconds by the names of items, and of how many people they are."""

    seconds: dict[str, float]
    people: int


def page_times(administration: Administration, version: SurveyVersion) -> PageTimes:
    """Return the median seconds of each question and note. 2 statements.

    The time of a page is that between its save and the one before it, or the start.
    Its items share it equally. Left out are pages that fewer people saved than
    figures may be shown of. Only people who finished are read, at most a thousand.
    """
    fewest = max(FEWEST_PEOPLE, administration.minimum_group)
    alias = reports_database()
    people = Respondent.objects.using(alias).filter(
        administration=administration,
        completed_at__isnull=False,
        declined_at=None,
        opted_out_at=None,
    )
    started = {
        person: moment
        for person, moment in people.order_by("pk").values_list("pk", "started_at")[
            :SAMPLE
        ]
        # Whoever finished has started.
        if moment
    }
    pages = {item["id"]: item["page"] for item in version.items.values()}
    # All rows of a page have the time of its last save.
    saved: dict[int, dict[int, datetime]] = defaultdict(dict)
    answers = Response.objects.using(alias).filter(
        administration_id=administration.pk, respondent_id__in=list(started)
    )
    for person, key, moment in answers.values_list(
        "respondent_id", "item_id", "saved_at"
    ).iterator():
        if key in pages:
            saved[person][pages[key]] = moment
    seconds: dict[int, list[float]] = defaultdict(list)
    for person, moments in saved.items():
        in_order = sorted((moment, page) for page, moment in moments.items())
        for (before, _page), (after, page) in pairwise(
            [(started[person], 0), *in_order]
        ):
            if 0 < (taken := (after - before).total_seconds()) <= LONGEST_SECONDS:
                seconds[page].append(taken)
    shown: dict[int, list[str]] = defaultdict(list)
    for name, item in version.items.items():
        if item["kind"] in VISIBLE:
            shown[item["page"]].append(name)
    medians = {
        name: median(seconds[page]) / len(names)
        for page, names in shown.items()
        if len(seconds[page]) >= fewest
        for name in names
    }
    return PageTimes(medians, len(saved) if medians else 0)
