"""Go on from a finished round of the state to the pages that the district adds.

The district's pages are an administration of their own (a module), in which the person
is another respondent, without a name. Nothing stored leads from one to the other: the
module's respondent is found by a digest of the first one's key, which only the digest
keys of access codes can make. It is unique, so a repeated request makes one respondent,
and no typed code has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from accounts.models import School
from survey.database import code_routes
from survey.models import Administration, Respondent
from survey.people.access_codes import digest_versions, module_digest_for
from survey.taking.access_refusals import chosen_language
from survey.taking.devices import ONLY_DEVICE, store_device_login
from survey.taking.login_session import choose_language
from survey.taking.published import published_survey
from survey.taking.saved_answers import SavedAnswers
from survey.taking.session import RespondentSession, tag_for

# The person in the state's round. Whoever erases or withdraws the person has this row,
# or waits for it: a module's respondent is there before, and seen, or is not made.
PERSON = """
SELECT p.id FROM survey_respondent p WHERE p.id = %s AND p.withdrawn_at IS NULL
FOR SHARE
"""
# The window is read in the statement, so a closed module takes nobody. On a cluster,
# the key names the shard, and the route of the digest is unique; the person is in
# another shard, and is locked before.
START_ON_CLUSTER = """
INSERT INTO survey_respondent
    (id, administration_id, school_id, grade, language, classroom, attributes, issue,
     code_digest, code_key_version, started_at)
SELECT nextval('survey_respondent_id_seq'), m.id, %s, %s, %s, '', %s, 1, %s, %s, %s
FROM survey_administration m
WHERE m.id = %s AND m.opens_at <= %s AND m.closes_at > %s
RETURNING id
"""
START = (
    START_ON_CLUSTER.replace("(id, ", "(")
    .replace("nextval('survey_respondent_id_seq'), ", "")
    .replace("WHERE m.id", f"JOIN ({PERSON}) person ON true\nWHERE m.id")
    .replace("RETURNING", "ON CONFLICT (code_digest) DO NOTHING\nRETURNING")
)
# SQLite has one writer at a time.
START_UNLOCKED = START.replace("FOR SHARE", "")
BEGUN = """
SELECT r.id, r.issue, r.completed_at, r.withdrawn_at, {only_device}
FROM survey_respondent r WHERE r.code_digest IN ({places})
"""


@dataclass(frozen=True, slots=True)
class BegunPart:
    """The module's respondent, if the person has come to it before."""

    respondent_id: int
    issue: int
    is_finished: bool


@dataclass(frozen=True, slots=True)
class NextPart:
    administration_id: int
    digest: str
    # Of the person in the state's round: school, grade, language and subgroups.
    person: Mapping[str, Any]
    begun: BegunPart | None

    @property
    def pages(self) -> int:
        return len(published_survey(self.digest).answerable)


def next_part(
    session: RespondentSession, saved: SavedAnswers, device: str
) -> NextPart | None:
    """Return the district's pages that a person who has finished has not finished.

    No statement where the state lets no district add pages; else 3.
    """
    if not saved.district_pages:
        return None
    person = _find_person(session)
    module = _find_module(session, person["school_id"]) if person else None
    if module is None or person is None:
        return None
    key, digest, replays_answers = module
    begun = _find_begun(key, session.respondent_id)
    if begun is None:
        return NextPart(key, digest, person, None)
    respondent_id, issue, completed_at, withdrawn_at, only_device = begun
    # On another device, everything is as for a person who has not finished.
    may_tell = replays_answers or bool(device and only_device == device)
    if withdrawn_at or (completed_at and may_tell):
        return None
    part = BegunPart(respondent_id, issue, completed_at is not None)
    return NextPart(key, digest, person, part)


def begin_part(
    request: HttpRequest, session: RespondentSession, part: NextPart, device: str
) -> RespondentSession | None:
    """Create the respondent of a part, or find it; return the session of both parts.

    2 statements, 1 for a person who comes back. None if it has closed meanwhile.
    """
    now = timezone.now()
    begun = part.begun or _start(part, session.respondent_id, now)
    if begun is None:
        return None
    if device:
        store_device_login(
            respondent_id=begun.respondent_id,
            administration_id=part.administration_id,
            device=device,
            at=now,
            after_finishing=begun.is_finished,
        )
    wanted = (chosen_language(request), session.language)
    return RespondentSession(
        administration_id=part.administration_id,
        respondent_id=begun.respondent_id,
        issue=begun.issue,
        digest=part.digest,
        language=choose_language(wanted, published_survey(part.digest).languages),
        tag=tag_for(begun.respondent_id),
        open_code=session.open_code,
        personal_code=session.personal_code,
        start_number=number_of(session.tag),
    )


def number_of(tag: str) -> str:
    """Return the number of the form with which a person goes on from a part."""
    return salted_hmac("survey.next_part", tag, algorithm="sha256").hexdigest()[:12]


def _find_person(session: RespondentSession) -> Mapping[str, Any] | None:
    return (
        Respondent.objects.filter(
            pk=session.respondent_id,
            administration=session.administration_id,
            # Somebody who was erased leaves nothing in a module afterwards.
            withdrawn_at=None,
        )
        .exclude(completed_at=None)
        .values("school_id", "grade", "language", "attributes")
        .first()
    )


def _find_module(
    session: RespondentSession, school_id: int
) -> tuple[int, str, bool] | None:
    """Return key, digest and `replays_answers` of the district's open module."""
    now = timezone.now()
    district = School.objects.filter(pk=school_id).values("district_id")
    modules = Administration.objects.filter(
        module_of=session.administration_id,
        module_of__district_pages_limit__gt=0,
        district__in=district,
        stopped_at=None,
        opens_at__lte=now,
        closes_at__gt=now,
    )
    # Two of them only where districts were merged.
    columns = modules.order_by("pk").values_list("pk", "published", "replays_answers")
    return columns.first()


def _find_begun(module: int, respondent_id: int) -> Sequence[Any] | None:
    """Return the row of BEGUN. 1 statement, and 1 more on a cluster."""
    candidates = [
        module_digest_for(module, respondent_id, version)
        for version in digest_versions()
    ]
    places = ", ".join(["%s"] * len(candidates))
    query, parameters = BEGUN, list[Any](candidates)
    with connection.cursor() as cursor:
        if settings.IS_DISTRIBUTED:
            route = code_routes.find_respondent(cursor, candidates)
            query, parameters = f"{BEGUN} AND r.id = %s", [*candidates, route]
        text = query.format(places=places, only_device=ONLY_DEVICE)
        cursor.execute(text, parameters)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


def _start(part: NextPart, respondent_id: int, now: datetime) -> BegunPart | None:
    version = digest_versions()[0]
    digest = module_digest_for(part.administration_id, respondent_id, version)
    at = connection.ops.adapt_datetimefield_value(now)
    person = part.person
    columns = [
        *(person["school_id"], person["grade"], person["language"]),
        *(json.dumps(person["attributes"]), digest, version, at),
    ]
    window = [part.administration_id, at, at]
    with connection.cursor() as cursor:
        if settings.IS_DISTRIBUTED:
            parameters = [*columns, *window]
            key = _insert_on_cluster(cursor, respondent_id, parameters, digest)
        else:
            start = START if connection.vendor == "postgresql" else START_UNLOCKED
            cursor.execute(start, [*columns, respondent_id, *window])
            row = cursor.fetchone()
            key = row and row[0]
    if key is not None:
        return BegunPart(key, issue=1, is_finished=False)
    # A second request was faster, the module has closed, or the person was withdrawn.
    begun = _find_begun(part.administration_id, respondent_id)
    if begun is None or begun[3]:
        return None
    return BegunPart(begun[0], begun[1], is_finished=begun[2] is not None)


def _insert_on_cluster(
    cursor: Any, person: int, parameters: Sequence[object], digest: bytes
) -> int | None:
    with transaction.atomic():
        cursor.execute(PERSON, [person])
        if not cursor.fetchone():
            return None
        cursor.execute(START_ON_CLUSTER, parameters)
        row = cursor.fetchone()
        if row and not code_routes.add_new_route(cursor, digest, row[0]):
            transaction.set_rollback(True)
            return None
    return row and row[0]
