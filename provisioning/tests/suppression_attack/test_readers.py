"""The public and coordinators recover what is not protected, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from accounts.models import Membership, User
from provisioning.suppression_attack.database import published_survey, store
from provisioning.suppression_attack.hierarchies import Hierarchy
from provisioning.suppression_attack.readers import ReaderAttack
from provisioning.suppression_attack.views import (
    PEOPLE,
    coordinator_view,
    differences,
    public_view,
    schools_without_report,
)
from reports.models import GroupResults
from reports.suppression.tables import GroupCounts, PlaceTree

pytestmark = pytest.mark.django_db

ADAMS, BAKER, COOPER, DREW = range(2, 6)


@pytest.fixture
def stored():
    """Store four schools of a district; too few of Drew's people have finished."""
    grades = np.array([[30, 30], [40, 20], [25, 35], [12, 8]])
    invited = np.array([[35, 35], [45, 25], [30, 40], [60, 9]])
    answers = np.array(
        [
            [[10, 15, 5], [12, 10, 8]],
            [[20, 10, 10], [5, 10, 5]],
            [[5, 10, 10], [15, 10, 10]],
            [[4, 5, 3], [4, 2, 2]],
        ]
    )

    def whole(numbers):
        table = np.concatenate([numbers.sum(axis=1, keepdims=True), numbers], axis=1)
        total = table.sum(axis=0, keepdims=True)
        return np.concatenate([total, total, table])

    return store(
        Hierarchy(
            PlaceTree(np.array([-1, 0, 1, 1, 1, 1])),
            GroupCounts(((1, 2),), whole(grades), whole(invited)),
            {"item_1": whole(answers)},
            5,
        ),
        published_survey(),
        "attacked",
    )


@pytest.fixture
def coordinator(stored):
    user = User.objects.create(email="chen@example.org")
    school = stored.places[ADAMS][1]
    Membership.objects.create(user=user, role="coordinator", school_id=school)
    return user


def attacked(stored, view, table="item_1"):
    outcome = ReaderAttack(stored, view, {DREW}, table).attack()
    return outcome.recovered, outcome.narrowed


def test_the_school_below_its_threshold_is_attacked(stored):
    assert schools_without_report(stored) == {DREW}
    view = public_view(stored)
    outcome = ReaderAttack(stored, view, {DREW}, "item_1").attack()
    assert outcome.cells >= 9


def test_the_public_recovers_a_school_only_without_protection(stored):
    assert attacked(stored, public_view(stored)) == (0, 0)
    recovered, _ = attacked(stored, public_view(stored, protected=False))
    assert recovered >= 3


def test_a_coordinator_recovers_a_school_only_without_protection(stored, coordinator):
    public = public_view(stored)
    for protected in (True, False):
        view = coordinator_view(stored, [ADAMS], coordinator, protected=protected)
        view.figures.extend(public.figures)
        recovered, narrowed = attacked(stored, view)
        if protected:
            assert (recovered, narrowed) == (0, 0)
            assert attacked(stored, view, PEOPLE) == (0, 0)
        else:
            assert recovered >= 3


@pytest.mark.sqlite
def test_pages_show_what_was_decided(stored):
    assert stored.decision.groups[DREW].any()
    assert differences(stored) == 0
    # A hidden group that is shown, and an item that is missing.
    rows = GroupResults.objects.filter(administration=stored.administration)
    assert rows.filter(is_hidden=True).update(is_hidden=False)
    adams = rows.filter(level="school", place_id=stored.places[ADAMS][1], attribute="")
    adams.update(hidden_items=["item_1"])
    assert differences(stored) >= 2


def test_a_figure_that_is_another_sum_is_an_error(stored):
    view = public_view(stored)
    rows = GroupResults.objects.filter(administration=stored.administration)
    rows.filter(level="school", attribute="").update(people=1000)
    changed = public_view(stored)
    assert changed.figures != view.figures
    with pytest.raises(RuntimeError, match="is not the sum of its schools"):
        attacked(stored, changed, PEOPLE)
