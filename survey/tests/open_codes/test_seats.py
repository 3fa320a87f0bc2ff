from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from survey.fieldwork.open_codes.seats import USED_WITHIN, return_unused_seats
from survey.models import OpenCodeSeat, Respondent
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.open_codes.cast import begin, open_code

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def test_a_seat_that_nobody_used_within_a_day_is_free_again(parents, lincoln):
    code = open_code(parents, lincoln, limit=2)
    answering, looking, late = Browser(), Browser(), Browser()
    begin(answering, code)
    begin(looking, code)
    base = answering.bootstrap()["revision"]
    assert answering.save(1, FIRST_PAGE, base).status_code == 200
    assert begin(late, code).status_code == 422

    assert return_unused_seats() == 0
    long_ago = timezone.now() - USED_WITHIN - timedelta(minutes=1)
    OpenCodeSeat.objects.update(claimed_at=long_ago)
    assert return_unused_seats() == 1
    assert return_unused_seats() == 0
    assert OpenCodeSeat.objects.filter(respondent=None).count() == 1
    # The person whose seat it was could be one too many.
    pk = looking.session["taking"]["respondent_id"]
    assert Respondent.objects.get(pk=pk).withdrawn_at is not None
    assert looking.get("/take/")["Location"] == "/"
    assert answering.get("/take/").status_code == 200
    assert begin(late, code).status_code == 302


def test_a_start_without_a_seat_is_never_returned(code):
    begin(Browser(), code)
    Respondent.objects.update(started_at=timezone.now() - timedelta(days=9))
    assert return_unused_seats() == 0
    assert Respondent.objects.get().withdrawn_at is None
