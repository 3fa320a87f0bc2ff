"""Respondents with identities, for tests of the console."""

from __future__ import annotations

from typing import Any

from accounts.models import School
from survey.models import Administration, Identity, Respondent
from survey.tests.conftest import enrol


def invite(
    administration: Administration,
    school: School,
    external_id: str,
    name: str = "",
    email: str = "",
    **fields: Any,
) -> Respondent:
    """Create a respondent with an identity. `name` is "given family"."""
    # `enrol` derives a unique digest from the attributes.
    respondent = enrol(
        administration, school, attributes={"n": external_id + school.code}, **fields
    )
    given, _, family = name.partition(" ")
    Identity.objects.create(
        respondent=respondent,
        administration=administration,
        district=school.district,
        external_id=external_id,
        given_name=given,
        family_name=family,
        email=email,
    )
    return respondent
