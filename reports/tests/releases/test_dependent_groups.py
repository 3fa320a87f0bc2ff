"""Groups of several attributes, and follow-up questions, tell of nobody alone.

At Lincoln, 70 people have answered. Forty have free lunch and six reduced lunch; both
are economically disadvantaged.
"""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import GroupResults, ResultsRollUp
from reports.releases import apply_suppression
from reports.results.visible import visible_groups
from reports.suppression.explanation import repeating_columns
from reports.tests.exports.conftest import answer
from reports.tests.releases.conftest import release
from reports.tests.releases.stored_figures import distributions
from survey.models import Item, Respondent, Response

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
LUNCHES = ["free"] * 40 + ["reduced"] * 6 + ["paid"] * 24


@pytest.fixture
def closed(staff, fall, enrol, monkeypatch):
    # Lincoln is the only school of its district, and shows groups nevertheless.
    monkeypatch.setattr("reports.suppression.attributes.MOST_LEFT_OUT", 1)
    for number, lunch in enumerate(LUNCHES):
        respondent = enrol(fall, staff.lincoln, grade="07")
        Respondent.objects.filter(pk=respondent.pk).update(
            attributes={
                "disadvantaged": "no" if lunch == "paid" else "yes",
                "lunch": lunch,
            }
        )
        answers = {"safe": ("1", "2", "-1")[number % 3], "age": "9"}
        if number % 8 == 0:
            answers["bus"] = "5"
        answer(respondent, answers)
    fall.subgroups = ["disadvantaged", "lunch"]
    fall.minimum_group = 10
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    Response.objects.update(saved_at=fall.closes_at - timedelta(days=1))
    return fall


def shown(administration, staff, attribute="", value=""):
    place = ("school", staff.lincoln.pk)
    return visible_groups(administration, [place], attribute, value)[place]


def values(group):
    return np.array(list(group.items["safe"].values.values()))


def reduced_lunch(administration, staff):
    """Return the answers of people with reduced lunch, as shown groups tell them."""
    disadvantaged = shown(administration, staff, "disadvantaged", "yes")
    free = shown(administration, staff, "lunch", "free")
    if disadvantaged is None or free is None:
        return None
    return values(disadvantaged) - values(free)


def test_disadvantaged_people_less_those_with_free_lunch_are_not_shown(staff, closed):
    release(closed)
    assert reduced_lunch(closed, staff) is None
    # Everyone is, and the people of one of the attributes.
    assert shown(closed, staff).people == 70
    assert shown(closed, staff, "disadvantaged", "yes").people == 46


def test_without_protection_overlapping_groups_tell_of_six_people(
    staff, closed, monkeypatch
):
    def nothing(tables, memberships, items):
        none = np.zeros(tables.groups.people.shape, dtype=bool)
        return SimpleNamespace(
            groups=none,
            items=dict.fromkeys(items, none),
            repeating=[],
            isolate_in_sum=lambda *_: False,
        )

    monkeypatch.setattr(apply_suppression, "dependent_groups", nothing)
    release(closed)
    place = ("school", staff.lincoln.pk, "lunch", "reduced")
    truth = values(distributions(closed, *place))
    assert reduced_lunch(closed, staff).tolist() == truth.tolist()
    assert truth.sum() == 6


def test_an_item_that_few_people_have_answered_is_not_shown(staff, closed):
    release(closed)
    group = shown(closed, staff)
    assert "bus" in group.hidden_items
    assert group.items["safe"].answered == 70
    # The twin: there was something to show.
    [row] = GroupResults.objects.filter(level="school", attribute="")
    assert distributions(closed, "school", row.place_id).items["bus"].answered == 9


def test_an_item_is_not_shown_if_overlapping_groups_tell_of_few_who_answered(
    staff, closed
):
    # Sixteen have reduced lunch, of whom six have answered the item.
    paid = Respondent.objects.filter(attributes__lunch="paid").order_by("pk")
    few = list(paid.values_list("pk", flat=True)[:10])
    Respondent.objects.filter(pk__in=few).update(
        attributes={"disadvantaged": "yes", "lunch": "reduced"}
    )
    item = Item.objects.get(survey=closed.published.survey, name="safe").pk
    Response.objects.filter(respondent_id__in=few, item_id=item).update(
        value=None, state=Response.State.SKIPPED
    )
    release(closed)
    groups = [
        shown(closed, staff, "disadvantaged", "yes"),
        shown(closed, staff, "lunch", "free"),
    ]
    assert all(groups)
    assert not all("safe" in group.items for group in groups)
    assert any("age" in group.items for group in groups)


# Disadvantaged, lunch, gender: people. Six who are not disadvantaged have free lunch.
REPEATED = {
    ("yes", "free", "girl"): 15,
    ("yes", "free", "boy"): 15,
    ("yes", "reduced", "boy"): 20,
    ("no", "paid", "girl"): 30,
    ("no", "paid", "boy"): 20,
    ("no", "free", "girl"): 3,
    ("no", "free", "boy"): 3,
}
COLUMNS = ("disadvantaged", "lunch", "gender")


@pytest.fixture
def repeated(staff, closed, enrol):
    Respondent.objects.filter(administration=closed).delete()
    for groups, people in REPEATED.items():
        for number in range(people):
            respondent = enrol(closed, staff.lincoln, grade="07")
            answer(respondent, {"safe": ("1", "2")[number % 2]})
            attributes = dict(zip(COLUMNS, groups, strict=True))
            Respondent.objects.filter(pk=respondent.pk).update(attributes=attributes)
    closed.subgroups = list(COLUMNS)
    closed.save()
    Response.objects.update(saved_at=closed.closes_at - timedelta(days=1))
    return closed


NOTICE = (
    "“Disadvantaged” is not shown by school, because it repeats “Lunch”: people could"
    " be calculated from both."
)
ADVICE = "Leave one of these columns out of the next survey round to show the other."


def test_a_column_that_no_school_shows_is_named_with_the_one_that_it_repeats(
    staff, repeated, client
):
    release(repeated)
    roll_up = ResultsRollUp.objects.get(pk=repeated.pk)
    assert roll_up.repeating == [["disadvantaged", "lunch"]]
    assert shown(repeated, staff, "disadvantaged", "no") is None
    assert shown(repeated, staff, "lunch", "paid").people == 50
    assert shown(repeated, staff, "gender", "girl").people == 48
    roll_up.shared_at = timezone.now()
    roll_up.save()
    for user, texts in (
        (staff.state, {NOTICE, ADVICE}),
        (staff.dana, set()),
        (staff.chen, set()),
    ):
        log_in(client, user)
        for route in ("administration_detail", "results_page"):
            text = client.get(reverse(route, args=[repeated.pk])).text
            assert {each for each in (NOTICE, ADVICE) if each in text} == texts
        # Everybody reads the reason, and only administrators what to do.
        text = client.get(reverse("results_hidden", args=[repeated.pk])).text
        assert NOTICE in text and ADVICE not in text


def test_nothing_is_said_of_columns_that_repeat_nothing(staff, repeated, client):
    # The twin: without the six people, both columns are shown.
    people = Respondent.objects.filter(attributes__disadvantaged="no")
    people.filter(attributes__lunch="free").delete()
    release(repeated)
    assert ResultsRollUp.objects.get(pk=repeated.pk).repeating == []
    assert shown(repeated, staff, "disadvantaged", "no").people == 50
    assert shown(repeated, staff, "lunch", "paid").people == 50
    log_in(client, staff.state)
    for route in ("administration_detail", "results_page", "results_hidden"):
        text = client.get(reverse(route, args=[repeated.pk])).text
        assert "not shown by school" not in text


def test_a_column_that_repeats_several_others_together_names_none():
    [sentence] = repeating_columns([("Lunch", "")])
    assert "because it repeats other columns" in sentence
