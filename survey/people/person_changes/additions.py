"""Add one person by hand, as a row of a roster would."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import date

from django.db import connection, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import School, User
from survey.models import (
    Administration,
    Identity,
    RecordJoin,
    Respondent,
)
from survey.people import access_codes
from survey.people.erasing.erased_ids import ERASED, ErasedIds
from survey.people.new_codes import reissue
from survey.people.opt_outs.listed_ids import apply_listed_ids
from survey.people.person_changes.records import NO_SCHOOL, PersonConflict
from survey.people.rosters.counted_groups import keep_group_of_added
from survey.people.rosters.field_parsers import LONGEST_ID
from survey.people.rosters.roster_lock import RosterIsRunning, hold_off_rosters
from survey.people.rosters.scope import (
    TAKES_ROSTER,
    RosterRefused,
    check_takes_roster,
)


@dataclass(frozen=True, slots=True)
class NewPerson:
    """The values of a roster's row, as its parsers return them."""

    external_id: str
    given_name: str = ""
    family_name: str = ""
    grade: str = ""
    classroom: str = ""
    email: str = ""
    language: str = ""
    birth_date: date | None = None
    attributes: dict[str, str] = field(default_factory=dict)


class PersonExists(PersonConflict):
    """The ID belongs to a person on the roster, or to a record joined with theirs.

    `known_id` is the ID there, which may differ in its leading zeros.
    """

    def __init__(self, person: Respondent, known_id: str, typed: str) -> None:
        super().__init__(_("The person is on the roster already."))
        self.person = person
        self.known_id = known_id
        self.differs_in_zeros = known_id != typed


@transaction.atomic
def add_person(
    administration: Administration,
    new: NewPerson,
    *,
    school: School,
    by: User,
    request: HttpRequest | None = None,
) -> Respondent:
    """Invite a person with an access code of their own. Raises PersonConflict.

    The next rosters treat them as any other person.
    """
    try:
        hold_off_rosters(administration)
        # Under the lock: it can be changed while there is no roster.
        administration.refresh_from_db(fields=TAKES_ROSTER)
        check_takes_roster(administration)
    except (RosterIsRunning, RosterRefused) as refused:
        raise PersonConflict(str(refused)) from refused
    # Until this is committed, the school is neither deleted nor merged.
    locked = School.objects.select_for_update(no_key=True)
    if not locked.filter(pk=school.pk).exists():
        raise PersonConflict(_(NO_SCHOOL))
    _refuse_known_id(administration, school, new.external_id)
    person = Respondent.objects.create(
        administration=administration,
        school=school,
        grade=new.grade,
        classroom=new.classroom,
        language=new.language,
        attributes=new.attributes,
        # The code is derived from the primary key: the first issue follows.
        issue=0,
        code_digest=secrets.token_bytes(32),
        code_key_version=access_codes.current_version(),
    )
    reissue(respondent=person)
    Identity.objects.create(
        respondent=person,
        administration=administration,
        district=school.district,
        external_id=new.external_id,
        given_name=new.given_name,
        family_name=new.family_name,
        email=new.email,
        birth_date=new.birth_date,
    )
    with connection.cursor() as cursor:
        keep_group_of_added(cursor, person)
        apply_listed_ids(cursor, administration, [person.pk], are_new=True)
    audit.record(
        "add a person",
        by=by,
        request=request,
        subject=person,
        school=school,
        after={"administration": str(administration)},
    )
    return person


def _refuse_known_id(
    administration: Administration, school: School, external_id: str
) -> None:
    """Find the ID also without its leading zeros, which spreadsheets drop."""
    place = {"administration": administration, "district": school.district_id}
    if ErasedIds(administration.role, [school.district_id]).has(
        school.district_id, external_id
    ):
        raise PersonConflict(f"{external_id} {_(ERASED)}.")
    digits = external_id.lstrip("0")
    zeros = range(LONGEST_ID - len(digits) + 1)
    spellings = {external_id, *("0" * count + digits for count in zeros)} - {""}
    rows = Identity.objects.filter(**place, external_id__in=spellings)
    known = dict(rows.values_list("external_id", "respondent"))
    joined = RecordJoin.objects.filter(
        **place, external_id=external_id, state=RecordJoin.State.JOINED
    )
    for_joined = joined.values_list("kept", flat=True).first()
    person_id = known.get(external_id) or for_joined
    known_id = external_id
    if person_id is None and known:
        known_id, person_id = min(known.items())
    if person_id is not None:
        people = Respondent.objects.select_related("identity", "school__district")
        raise PersonExists(people.get(pk=person_id), known_id, external_id)
