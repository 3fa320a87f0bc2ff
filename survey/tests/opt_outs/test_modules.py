"""People who opt out of the state's round are out of their district's module too."""

from __future__ import annotations

import pytest
from django.utils import timezone

from survey.models import Administration, CountedGroup, Respondent
from survey.people.access_codes import current_version, module_digest_for
from survey.people.opt_outs.records import opt_out, opt_out_list, take_back
from survey.tests.conftest import publish_items
from survey.tests.opt_outs.conftest import NO_FORM

pytestmark = pytest.mark.django_db


@pytest.fixture
def module(administration, staff) -> Administration:
    return Administration.objects.create(
        name="riverside-pages",
        published=publish_items([{"lunch": {"kind": "text"}}], name="lunch"),
        role=administration.role,
        district=staff.riverside,
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
        module_of=administration,
    )


def come(module: Administration, person: Respondent) -> Respondent:
    version = current_version()
    return Respondent.objects.create(
        administration=module,
        school=person.school,
        code_digest=module_digest_for(module.pk, person.pk, version),
        code_key_version=version,
        started_at=timezone.now(),
    )


@pytest.mark.sqlite
def test_an_opt_out_and_its_end_reach_the_module(staff, maya, ali, module):
    hers, his = come(module, maya), come(module, ali)

    opt_out(maya, NO_FORM, by=staff.chen)
    hers.refresh_from_db()
    assert hers.opted_out_at is not None
    assert hers.withdrawn_at is not None
    # Rates do not tell at once that she had answered.
    assert CountedGroup.objects.filter(respondent=hers, school=maya.school).exists()
    his.refresh_from_db()
    assert his.withdrawn_at is None

    take_back(maya, by=staff.chen)
    hers.refresh_from_db()
    assert (hers.opted_out_at, hers.withdrawn_at) == (None, None)


def test_a_list_of_opt_outs_reaches_the_module(staff, maya, ali, module):
    hers = come(module, maya)
    opt_out_list(
        {maya.pk: None, ali.pk: None},
        NO_FORM,
        administration=maya.administration,
        schools=staff.riverside.schools.all(),
        by=staff.chen,
    )
    hers.refresh_from_db()
    assert hers.opted_out_at is not None
