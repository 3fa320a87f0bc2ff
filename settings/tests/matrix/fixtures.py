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
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.utils import timezone

from accounts import audit
from accounts.models import District, Invitation, Letter, Membership, School, User
from reports.models import Export
from survey.access_codes import code_for, current_version, digest_for, format_code
from survey.administrations import open_administration
from survey.definitions.corrections import publish_correction
from survey.definitions.publishing import publish_survey
from survey.files import new_name, path_of
from survey.models import (
    Administration,
    CardSet,
    Identity,
    Job,
    PublishedSurvey,
    Respondent,
    Response,
    Retirement,
    RosterUpload,
    Survey,
    SurveyUpload,
    Wave,
)
from survey.tests.workbooks import form
from survey.xlsform import import_survey, read_xlsform

if TYPE_CHECKING:
    from settings.tests.matrix.routes import Route

Role = Membership.Role


@dataclass
class Place:
    """A district, or a school of it, with all that is in it, under its mark.

    The state's holds what is everybody's: each text there has both marks.
    """

    mark: str
    district: District | None
    school: School | None
    administrator: User
    coordinator: User
    analyst: User
    administration: Administration
    things: dict[str, Any] = field(default_factory=dict)
    # What else gives it away: access codes.
    secrets: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["things"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def marks(self) -> list[str]:
        return [self.mark, *self.secrets]


@dataclass(frozen=True)
class Thing:
    """`about` is "ROUTE PARAMETER", either with a `*`; the first that fits counts.

    `shared`: the state has one as well, which is everybody's or holds
    everybody's. `beside_shared` is a place's own within that one. What is one
    person's says whose: the others of the same place must not find it either.
    What is not `owned` belongs to nobody, and whoever may ask for one may ask
    for each.
    """

    about: str
    of: Callable[[Place, Route], object]
    owned: bool = True
    shared: bool = False
    beside_shared: Callable[[Place, Route], object] | None = None
    whose: str = ""


def the(name: str) -> Callable[[Place, Route], object]:
    return lambda place, route: getattr(place, name).pk


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
    Thing("job_* pk", the("job"), shared=True, whose="administrator"),
    Thing("session_end pk", the("seat"), shared=True, whose="administrator"),
    Thing(
        "* respondent",
        the("respondent"),
        beside_shared=the("respondent_of_shared"),
    ),
    Thing(
        "* card_set",
        the("card_set"),
        shared=True,
        beside_shared=the("card_set_of_shared"),
    ),
    Thing("administration_* pk", the("administration"), shared=True),
    Thing("people_* pk", the("administration"), shared=True),
    Thing("cards_* pk", the("administration"), shared=True),
    Thing("roster_upload pk", the("administration"), shared=True),
    Thing("roster_template_* pk", the("administration"), shared=True),
    Thing("roster_* pk", the("roster"), shared=True),
    Thing("rates_school* pk", the("school")),
    Thing("rates_district* pk", the("district")),
    Thing("export_detail pk", the("export"), shared=True),
    # Administrators of the state see the record of it, never the file.
    Thing("export_* pk", the("export"), shared=True, whose="analyst"),
    Thing("* school_id", the("school")),
    Thing("membership_resend pk", the("invited")),
    Thing("membership_withdraw pk", the("invited")),
    Thing("membership_* pk", the("membership")),
    Thing("wave_* pk", the("wave"), shared=True),
    # A district's own, and the state's, which everybody may offer.
    Thing("survey_uploaded pk", the("survey_upload"), shared=True),
    Thing("survey_upload_problems pk", the("survey_upload"), shared=True),
    Thing("survey_publish pk", the("draft"), shared=True),
    Thing("survey_delete pk", the("draft"), shared=True),
    Thing("survey_bring_back pk", the("retired"), shared=True),
    Thing("survey_correction pk", the("correction"), shared=True),
    Thing("survey_* pk", the("survey"), shared=True),
    Thing("survey_preview_* seed", lambda place, route: 7, owned=False),
    Thing("survey_preview_* language", lambda place, route: "en", owned=False),
    Thing("survey_preview_* n", lambda place, route: 1, owned=False),
    # allauth's.
    Thing("account_* key", lambda place, route: "nobodys-key", owned=False),
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
        " settings/tests/matrix/fixtures.py, and to furnish() there what a place has"
        " of it, with the mark in its texts."
    )


def any_row(route: Route) -> object:
    """Of the model of one of the admin's pages, by its address."""
    app, model = route.template.split("/")[1:3]
    row = apps.get_model(app, model).objects.first()
    return row.pk if row else 1


def furnish(
    name: str,
    mark: str,
    published: PublishedSurvey,
    shared: Administration,
    district: District | None = None,
) -> Place:
    """One of each, with the mark in its texts; people in the shared one too.

    With a district: a further school of it.
    """
    whole = {"district": district} if district else {}
    if district is None:
        district = District.objects.create(code=f"{mark}-d", name=f"{name} {mark}")
        shared.districts.add(district)
    school = School.objects.create(
        district=district, code=f"{mark}-s", name=f"School of {mark}"
    )
    schools = [school] if whole else []
    wave = Wave.objects.create(name=f"Spring 2027 {mark}", district=district)
    administrator = member(f"admin@{mark}.example", Role.DISTRICT, district=district)
    coordinator = member(f"chief@{mark}.example", Role.COORDINATOR, school=school)
    analyst = member(f"reads@{mark}.example", Role.ANALYST, district=district)
    administration = opened(
        f"{mark}-students", published, wave=wave, district=district, schools=schools
    )
    # The state's, and none of anybody else's business.
    opened(
        f"{mark}-from-the-state",
        published,
        role="teacher",
        **({"schools": schools} if whole else {"districts": [district]}),
    )
    people = [person(one, school, published, mark) for one in (administration, shared)]
    Authenticator.objects.create(
        user=administrator, type=Authenticator.Type.TOTP, data={"secret": mark}
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
    surveys = surveys_of(mark, administrator, district)
    opened(
        f"{mark}-own-survey",
        surveys["published_own"],
        role="parent",
        district=district,
        schools=schools,
    )
    return Place(
        mark=mark,
        district=district,
        school=school,
        administrator=administrator,
        coordinator=coordinator,
        analyst=analyst,
        administration=administration,
        things={
            "published": published,
            "shared": shared,
            "wave": wave,
            "respondent": people[0],
            "respondent_of_shared": people[1],
            "membership": coordinator.memberships.get(),
            "invited": invited(mark, school),
            "card_set": cards(mark, administration, administrator, school=school),
            "card_set_of_shared": cards(
                mark, shared, administrator, district=district, format="csv"
            ),
            "roster": roster(mark, administration, coordinator, school=school),
            "export": export(
                mark, administration, analyst, {"districts": [district.pk]}
            ),
            **surveys,
            **personal(mark, administrator),
        },
        secrets=[*codes, *map(format_code, codes)],
    )


def of_the_state(marks: str, published: PublishedSurvey, head: User) -> Place:
    """What both districts share, or are in together."""
    administration = opened("statewide-students", published)
    everything = {"state": True}
    return Place(
        mark="both",
        district=None,
        school=None,
        administrator=head,
        coordinator=head,
        analyst=head,
        administration=administration,
        things={
            # Made by the state; its texts are for all districts.
            "wave": Wave.objects.create(name="Statewide"),
            **surveys_of("statewide", head, None),
            "survey_upload": survey_upload(marks, head, None),
            "card_set": cards(marks, administration, head, format="csv"),
            "roster": roster(marks, administration, head),
            "export": export(marks, administration, head, everything),
            **personal(marks, head),
        },
    )


def kept(folder: str, ending: str, text: str) -> str:
    """A private file's name."""
    name = new_name(folder, ending)
    path_of(name).write_text(text)
    return name


def cards(
    mark: str, administration: Administration, by: User, **fields: Any
) -> CardSet:
    return CardSet.objects.create(
        administration=administration,
        file=kept("cards", ".pdf", f"cards of {mark}"),
        made_at=timezone.now(),
        people=1,
        by=by,
        job=finished_job("cards.make", mark, by),
        **fields,
    )


def roster(
    mark: str, administration: Administration, by: User, **fields: Any
) -> RosterUpload:
    """Checked, with a row that was refused, and waiting for a word."""
    upload = RosterUpload.objects.create(
        administration=administration,
        by=by,
        file=kept("rosters", ".roster", f"roster of {mark}"),
        name=f"{mark}.csv",
        size=30,
        state="checked",
        report={"rows": 2, "columns": {"external_id": f"ID of {mark}"}},
        message=f"About {mark}",
        rejected=1,
        rejected_file=kept("rosters", ".csv", f"rejected {mark}"),
        **fields,
    )
    upload.rejections.create(row=2, column="grade", reason="is no grade", text=mark)
    upload.schools.create(
        school=fields.get("school"), name=f"School of {mark}", district_name=mark
    )
    return upload


def export(
    mark: str, administration: Administration, by: User, places: dict[str, Any]
) -> Export:
    now = timezone.now()
    one = Export.objects.create(
        by=by,
        job=finished_job("export.make", mark, by),
        format="wide",
        language="en",
        places=places,
        made_at=now,
        expires_at=now + timedelta(days=7),
        file_name=kept("exports", ".csv", f"answers of {mark}"),
        codebook_name=kept("exports", ".html", f"codebook of {mark}"),
        size=20,
        rows=1,
        respondents=1,
        responses=1,
        sha256="0" * 64,
    )
    one.administrations.add(administration)
    return one


def personal(mark: str, user: User) -> dict[str, Any]:
    """Nobody's but theirs."""
    return {
        "job": Job.objects.create(
            kind="test.nothing",
            by=user,
            state="running",
            started_at=timezone.now(),
            heartbeat_at=timezone.now(),
            message=f"Reading {mark}.csv",
        ),
        "seat": UserSession.objects.create(
            user=user,
            session_key=f"of-{mark}"[:40],
            ip="203.0.113.7",
            user_agent=f"Browser of {mark}",
        ),
    }


def finished_job(kind: str, mark: str, by: User) -> Job:
    return Job.objects.create(
        kind=kind, by=by, state="done", message=mark, ended_at=timezone.now()
    )


def invited(mark: str, school: School) -> Membership:
    """Who has not come yet, and the letter to them."""
    user = member(f"new@{mark}.example", Role.COORDINATOR, school=school)
    User.objects.filter(pk=user.pk).update(first_name="New", last_name=mark)
    Invitation.objects.create(user=user)
    Letter.objects.create(kind="invitation", to=user.email, facts={"place": mark})
    return user.memberships.get()


def survey_upload(mark: str, by: User, district: District | None) -> SurveyUpload:
    """A workbook that could not be read."""
    problem = {
        "sheet": "survey",
        "row": 2,
        "column": "type",
        "reason": "is no type",
        "text": mark,
    }
    return SurveyUpload.objects.create(
        by=by,
        district=district,
        name=f"{mark}.xlsx",
        read_at=timezone.now(),
        problems=[problem],
        warnings=[problem],
    )


def surveys_of(mark: str, by: User, district: District | None) -> dict[str, Any]:
    """A draft, a published one, its correction, a corrected and a retired one."""

    def imported(name: str, version: str, label: str, **more: Any) -> Survey:
        source = workbook_of(f"{mark}-{name}", version, f"{label} {mark}")
        reading = read_xlsform(source, name=f"{mark}-{name}")
        return import_survey(
            draft=reading.draft,
            source_name=f"{mark}.xlsx",
            source=source,
            district=district,
            by=by,
            **more,
        )

    published = publish_survey(survey=imported("own", "1", "Fist"))
    mended = imported("own", "2", "First", corrects=published)
    publish_correction(survey=mended, corrects=published, by=by)
    retired = publish_survey(survey=imported("old", "1", "Old")).survey
    Retirement.objects.create(survey=retired, by=by)
    return {
        "published_own": published,
        "survey": published.survey,
        "draft": imported("draft", "1", "Draft"),
        "correction": imported("own", "3", "The first", corrects=published),
        "corrected": mended,
        "retired": retired,
        "survey_upload": survey_upload(mark, by, district),
    }


def workbook_of(name: str, version: str, label: str) -> bytes:
    return form(
        [
            ["type", "name", "label"],
            ["select_one agree", "safe", label],
            ["text", "comment", "Anything else?"],
        ],
        settings=[
            ["form_id", "version", "default_language", "form_title"],
            [name, version, "en", name],
        ],
    )


def member(email: str, role: str, **place: object) -> User:
    user = User.objects.create_user(email)
    Membership.objects.create(user=user, role=role, **place)
    return user


def opened(
    name: str, published: PublishedSurvey, role: str = "student", **more: Any
) -> Administration:
    now = timezone.now()
    return open_administration(
        name=name,
        published=published,
        role=role,
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


def rows_of(place: Place, *, with_district: bool = True) -> dict[type[Model], int]:
    """What of a place other rows point at; a school next door has no district."""
    owned: list[Model] = [
        place.school,
        place.administration,
        place.respondent,
        place.wave,
        place.coordinator,
        place.job,
        place.survey,
        place.card_set,
        place.roster,
        place.export,
        place.survey_upload,
    ]
    if with_district:
        owned.append(place.district)
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
        "membership": place.membership.pk,
        "job": place.job.pk,
        "survey": place.survey.pk,
        "card_set": place.card_set.pk,
        "export": place.export.pk,
        "upload": place.roster.pk,
    }
    plural = {f"{name}s": value for name, value in ids.items()}
    with_id = {f"{name}_id": value for name, value in ids.items()}
    more = {
        "id": place.administration.pk,
        "pk": place.administration.pk,
        "by": place.administrator.pk,
        "email": place.coordinator.email,
        "role": "coordinator",
        "published": place.published_own.pk,
        "owner": place.district.pk,
        "place": f"school-{place.school.pk}",
        "format": "wide",
    }
    return {**ids, **plural, **with_id, **more}


def forms_about(route: Route, place: Place) -> list[dict[str, Any]]:
    """What to send: all its numbers, and where a form needs more, that.

    A form that is right but for the place gets as far as asking whose it is.
    """
    now = timezone.now()
    workbook = workbook_of("new", "1", "New")
    people = f"district,school,id\n{place.district.code},{place.school.code},1\n"
    complete: dict[str, list[dict[str, Any]]] = {
        "export_new": [
            {
                "administrations": place.things["shared"].pk,
                "format": "wide",
                **places,
            }
            for places in (
                {"school": place.school.pk},
                {"district": place.district.pk},
            )
        ],
        "staff_invite": [
            {
                "email": "somebody@new.example",
                "role": "coordinator",
                "district": place.district.pk,
                "school": place.school.pk,
            },
            {
                "email": "somebody@new.example",
                "role": "analyst",
                "district": place.district.pk,
            },
        ],
        "survey_upload": [
            {
                "owner": place.district.pk,
                "file": SimpleUploadedFile("new.xlsx", workbook),
            }
        ],
        "roster_upload": [
            {
                "place": f"school-{place.school.pk}",
                "complete_for": "schools",
                "file": SimpleUploadedFile("new.csv", people.encode()),
            }
        ],
        "administration_open": [
            {
                "name": "new-one",
                "owner": place.district.pk,
                "published": place.published_own.pk,
                "role": "student",
                "wave": place.wave.pk,
                "districts": place.district.pk,
                "schools": place.school.pk,
                "opens_at": f"{now:%Y-%m-%dT%H:%M}",
                "closes_at": f"{now + timedelta(days=9):%Y-%m-%dT%H:%M}",
            }
        ],
    }
    return [numbers_of(place), *complete.get(route.name, ())]


def questions_about(place: Place) -> list[dict[str, Any]]:
    """What to put after the "?" of a page, one after the other.

    Alone as well as together: a page that refuses one name may believe another.
    """
    ids = {name: it for name, it in numbers_of(place).items() if name != "email"}
    single = ("administration", "administrations", "district", "school")
    return [
        ids,
        *({name: ids[name]} for name in single),
        {"administrations": place.things["shared"].pk, "district": ids["district"]},
        # The beginning of every place's mark, and of what is searched from
        # its beginning.
        {"q": "mark", "whose": "all"},
        {"q": "Robinson"},
        {"q": "School of"},
    ]
