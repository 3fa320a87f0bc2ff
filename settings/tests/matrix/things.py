"""What there is to find in each place, and which of it a route is about.

Whoever adds a route with a parameter adds a line to `THINGS`; whoever adds a
model that is somebody's makes one in `furnish`, with the mark in all its texts.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.db.models import Model
from django.utils import timezone

from accounts import audit
from accounts.models import District, Membership, School, User
from reports.models import Export
from survey.administrations import open_administration
from survey.models import (
    Administration,
    CardSet,
    Identity,
    Job,
    PublishedSurvey,
    Respondent,
    Response,
    RosterUpload,
    SurveyUpload,
    Wave,
)
from survey.publishing import publish_survey
from survey.rosters.codes import code_for, current_version, digest_for, shown
from survey.tests.workbooks import form
from survey.xlsform import import_survey, read_xlsform

if TYPE_CHECKING:
    from settings.tests.matrix.routes import Route

Role = Membership.Role


@dataclass
class Place:
    """One district with all that is in it. Each text there holds its mark."""

    mark: str
    district: District
    school: School
    administrator: User
    coordinator: User
    analyst: User
    administration: Administration
    respondent: Respondent
    job: Job
    authenticator: Authenticator
    roster: RosterUpload
    card_set: CardSet
    export: Export
    survey_upload: SurveyUpload
    wave: Wave
    # Nobody's own, and hides nothing.
    published: PublishedSurvey
    # What else gives it away: access codes.
    secrets: list[str] = field(default_factory=list)

    @property
    def marks(self) -> list[str]:
        return [self.mark, *self.secrets]


@dataclass(frozen=True)
class Thing:
    """`about` is "ROUTE PARAMETER", either with a `*`; the first that fits counts.

    `shared` is the same thing where it belongs to both districts at once.
    What is not `owned` belongs to nobody, and whoever may ask for one may ask
    for each.
    """

    about: str
    of: Callable[[Place, Route], object]
    owned: bool = True
    shared: bool = False


# The line of a new route. A route's name is what it is reversed by.
THINGS = (
    # Respondents have codes; what they see of a survey is the same for all.
    Thing("survey_change_page n", lambda place, route: 1, owned=False),
    Thing(
        "survey_content digest",
        lambda place, route: place.published.digest,
        owned=False,
    ),
    Thing("survey_content renderer", lambda place, route: "x", owned=False),
    Thing("survey_content language", lambda place, route: "en", owned=False),
    Thing("survey_content n", lambda place, route: 1, owned=False),
    # The console's.
    Thing("job_* pk", lambda place, route: place.job.pk),
    Thing(
        "administration_* pk", lambda place, route: place.administration.pk, True, True
    ),
    Thing(
        "* administration_id", lambda place, route: place.administration.pk, True, True
    ),
    *(
        Thing(about, lambda place, route: place.administration.pk, True, True)
        for about in (
            "people_* pk",
            "cards_* pk",
            "roster_upload pk",
            "roster_template_* pk",
        )
    ),
    Thing("people_* respondent", lambda place, route: place.respondent.pk),
    Thing("cards_* respondent", lambda place, route: place.respondent.pk),
    Thing("cards_* card_set", lambda place, route: place.card_set.pk),
    Thing("export_* pk", lambda place, route: place.export.pk),
    Thing("roster_* pk", lambda place, route: place.roster.pk),
    Thing("rates_district* pk", lambda place, route: place.district.pk),
    Thing("rates_school* pk", lambda place, route: place.school.pk),
    Thing("survey_upload* pk", lambda place, route: place.survey_upload.pk),
    Thing("survey_preview_* seed", lambda place, route: 1, owned=False),
    Thing("survey_preview_* language", lambda place, route: "en", owned=False),
    Thing("survey_preview_* n", lambda place, route: 1, owned=False),
    Thing("* school_id", lambda place, route: place.school.pk),
    Thing("* district_id", lambda place, route: place.district.pk),
    Thing("* respondent_id", lambda place, route: place.respondent.pk),
    Thing("staff_* pk", lambda place, route: place.coordinator.pk),
    Thing(
        "membership_* pk",
        lambda place, route: place.coordinator.memberships.get().pk,
    ),
    Thing("wave_* pk", lambda place, route: place.wave.pk),
    # Surveys are the state's: whoever manages surveys sees all of them.
    Thing("survey_* pk", lambda place, route: place.published.survey_id, owned=False),
    # allauth's.
    Thing(
        "session_end pk",
        lambda place, route: UserSession.objects.get(user_agent=place.mark).pk,
    ),
    Thing("mfa_* pk", lambda place, route: place.authenticator.pk),
    Thing("account_* key", lambda place, route: "nobodys-key", owned=False),
    Thing("account_* uidb36", lambda place, route: "1", owned=False),
    # The engineers', who see all.
    Thing("admin:view_on_site object_id", lambda place, route: 1, owned=False),
    Thing("admin:* id", lambda place, route: any_row(route), owned=False),
    Thing("admin:* object_id", lambda place, route: any_row(route), owned=False),
    Thing("admin:* app_label", lambda place, route: "survey", owned=False),
    Thing("admin:* content_type_id", lambda place, route: 1, owned=False),
    Thing("admin:* url", lambda place, route: "no/such/page", owned=False),
)


class Unknown(Exception):
    """No line says what a parameter is; says which one to add."""


def thing_for(route: Route, parameter: str) -> Thing:
    about = f"{route.name} {parameter}"
    for thing in THINGS:
        if fnmatch(about, thing.about):
            return thing
    raise Unknown(
        f"nobody knows what <{parameter}> of the route “{route.name}” is. Add a line"
        f' Thing("{about}", lambda place, route: place.…) to THINGS in'
        " settings/tests/matrix/things.py, and to furnish() there what a place has"
        " of it, with the mark in its texts."
    )


def any_row(route: Route) -> object:
    """Of the model of one of the admin's pages, by its address."""
    app, model = route.template.split("/")[1:3]
    row = apps.get_model(app, model).objects.first()
    return row.pk if row else 1


def furnish(
    name: str, mark: str, published: PublishedSurvey, shared: Administration
) -> Place:
    """One of each, with the mark in its texts; people in the shared one too."""
    district = District.objects.create(code=f"{mark}-d", name=f"{name} {mark}")
    school = School.objects.create(
        district=district, code=f"{mark}-s", name=f"School of {mark}"
    )
    wave = Wave.objects.create(name=f"Spring 2027 {mark}", district=district)
    administrator = member(f"admin@{mark}.example", Role.DISTRICT, district=district)
    coordinator = member(f"chief@{mark}.example", Role.COORDINATOR, school=school)
    analyst = member(f"reads@{mark}.example", Role.ANALYST, district=district)
    administration = opened(f"{mark}-students", published, wave=wave, district=district)
    shared.districts.add(district)
    people = [person(one, school, published, mark) for one in (administration, shared)]
    job = Job.objects.create(
        kind="test.nothing", by=administrator, message=f"Reading {mark}.csv"
    )
    authenticator = Authenticator.objects.create(
        user=administrator, type=Authenticator.Type.TOTP, data={"secret": mark}
    )
    UserSession.objects.create(
        user=administrator, ip="192.0.2.1", user_agent=mark, session_key=f"{mark}-key"
    )
    audit.record(
        "import roster",
        by=administrator,
        subject=school,
        school=school,
        before={"file": f"{mark}.csv"},
        after={"file": f"{mark}.xlsx"},
    )
    codes = [code_for(one.pk, one.issue, one.code_key_version) for one in people]
    return Place(
        mark=mark,
        district=district,
        school=school,
        administrator=administrator,
        coordinator=coordinator,
        analyst=analyst,
        administration=administration,
        respondent=people[0],
        job=job,
        authenticator=authenticator,
        roster=RosterUpload.objects.create(
            administration=administration,
            by=coordinator,
            school=school,
            name=f"{mark}.csv",
            size=100,
            state=RosterUpload.State.CHECKED,
            message=mark,
        ),
        card_set=CardSet.objects.create(
            by=coordinator,
            administration=administration,
            school=school,
            classroom=f"7 {mark}",
            file=f"cards/{mark}.pdf",
        ),
        export=Export.objects.create(
            by=administrator,
            district=district,
            format=Export.Format.WIDE,
            reason=mark,
            places={"state": False, "districts": [district.pk], "schools": []},
        ),
        survey_upload=SurveyUpload.objects.create(
            by=administrator, district=district, name=f"{mark}.xlsx"
        ),
        published=published,
        wave=wave,
        secrets=[*codes, *map(shown, codes)],
    )


def member(email: str, role: str, **place: object) -> User:
    user = User.objects.create_user(email)
    Membership.objects.create(user=user, role=role, **place)
    return user


def opened(name: str, published: PublishedSurvey, **more: Any) -> Administration:
    now = timezone.now()
    return open_administration(
        name=name,
        published=published,
        role="student",
        opens_at=now - timedelta(days=2),
        closes_at=now + timedelta(days=30),
        **more,
    )


def person(
    administration: Administration,
    school: School,
    published: PublishedSurvey,
    mark: str,
) -> Respondent:
    """Who has begun, and has answered."""
    now = timezone.now()
    respondent = Respondent.objects.create(
        administration=administration,
        school=school,
        grade="07",
        language="en",
        classroom=f"7 {mark}",
        attributes={"program": mark},
        code_digest=f"{mark} {administration.pk}".encode(),
        code_key_version=current_version(),
        started_at=now - timedelta(hours=2),
    )
    code = code_for(respondent.pk, 1, current_version())
    respondent.code_digest = digest_for(code, current_version())
    respondent.save(update_fields=["code_digest"])
    Identity.objects.create(
        respondent=respondent,
        administration=administration,
        district=school.district,
        external_id=f"{mark}-1",
        given_name=f"Maya {mark}",
        family_name=f"Robinson {mark}",
        email=f"maya@{mark}.example",
    )
    item = published.survey.items.get(name="comment")
    Response.objects.create(
        administration_id=administration.pk,
        respondent_id=respondent.pk,
        item_id=item.pk,
        state="a",
        value=f"{mark} is my answer",
        revision=1,
        saved_at=now - timedelta(hours=1),
    )
    return respondent


def publish() -> PublishedSurvey:
    source = form(
        [
            ["type", "name", "label"],
            ["select_one agree", "safe", "I feel safe"],
            ["text", "comment", "Anything else?"],
        ]
    )
    reading = read_xlsform(io.BytesIO(source))
    survey = import_survey(
        draft=reading.draft, source_name="climate.xlsx", source=source
    )
    return publish_survey(survey=survey)


def rows_of(place: Place) -> dict[type[Model], int]:
    """What of a place other rows point at."""
    owned = (
        place.district,
        place.school,
        place.administration,
        place.respondent,
        place.wave,
        place.coordinator,
        place.job,
    )
    return {type(one): one.pk for one in owned}


def numbers_of(place: Place) -> dict[str, Any]:
    """Every id of a place under every name that a filter or a form might have."""
    ids = {
        "district": place.district.pk,
        "school": place.school.pk,
        "administration": place.administration.pk,
        "respondent": place.respondent.pk,
        "wave": place.wave.pk,
        "user": place.coordinator.pk,
        "membership": place.coordinator.memberships.get().pk,
        "job": place.job.pk,
    }
    plural = {f"{name}s": value for name, value in ids.items()}
    with_id = {f"{name}_id": value for name, value in ids.items()}
    more = {
        "id": place.administration.pk,
        "pk": place.administration.pk,
        "by": place.administrator.pk,
        "email": place.coordinator.email,
        "role": "coordinator",
    }
    return {**ids, **plural, **with_id, **more}
