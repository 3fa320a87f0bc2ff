"""Create objects in each district, and map routes' parameters to them.

A new route with a parameter needs a line in `ROUTE_PARAMETERS`. A new model that
belongs to a district or school needs an object in `create_place`, with the mark
in all its texts.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from fnmatch import fnmatch
from functools import cache
from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.utils import timezone

from accounts import audit
from accounts.models import (
    District,
    Invitation,
    Membership,
    PlaceSettings,
    QueuedEmail,
    School,
    User,
)
from reports.models import (
    Calibration,
    Export,
    ImportedBenchmark,
    PanelProject,
    ReportArchive,
    ResultsRollUp,
    ScoreRow,
    Scoring,
)
from survey.fieldwork.administrations import open_administration
from survey.fieldwork.emails.schedules import plan_emails, write_template
from survey.fieldwork.message_platforms.platforms import create_key, create_platform
from survey.fieldwork.open_codes.codes import code_of, create_open_code
from survey.instrument.definitions.corrections import publish_correction
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts.comments import add_comment
from survey.instrument.drafts.corrections import start_correction
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import (
    Administration,
    CardSet,
    DayOff,
    DestructionCertificate,
    EmailStep,
    Erasure,
    FeedScan,
    Identity,
    Job,
    LegalHold,
    ListedId,
    OpenCode,
    OpenCodeBatch,
    OpenCodeFile,
    OptOut,
    PersonFile,
    PlaceMerge,
    PublishedSurvey,
    RecordJoin,
    Respondent,
    Response,
    Retirement,
    RosterFeed,
    RosterMissing,
    RosterUpload,
    Survey,
    SurveyMeasures,
    SurveyUpload,
    Wave,
)
from survey.people.access_codes import (
    code_for,
    current_version,
    digest_for,
    format_code,
)
from survey.people.rosters.feeds.credentials import seal
from survey.tests.workbooks import form
from survey.work.files import new_name, path_of

if TYPE_CHECKING:
    from settings.tests.matrix.routes import Route

Role = Membership.Role
# As in `reports.scores.calibration.ItemResult`.
ANCHORED_ITEM = {
    "name": "safe",
    "options": ["1", "2"],
    "categories": [0, 1],
    "thresholds": [0.5],
    "standard_errors": [0.1],
    "infit": 1.0,
    "outfit": 1.0,
    "people": 20,
    "is_anchored": True,
    "displacement": 0.4,
}
FormData = dict[str, Any]


@dataclass
class PlaceObjects:
    """The objects of a district or school; their texts contain its mark.

    The state's objects are shared by both districts, and contain both marks.
    """

    mark: str
    district: District | None
    school: School | None
    administrator: User
    coordinator: User
    analyst: User
    administration: Administration
    objects: dict[str, Any] = field(default_factory=dict)
    # Access codes, which must not leak either.
    secrets: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["objects"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def marks(self) -> list[str]:
        return [self.mark, *self.secrets]


# A public key, to which nobody has the private one.
AGE_KEY = "age1f964pal4m88ram0xempmkc2j0n2qcmnkhxz0htg9v6dmwgw9m3gsz7kygr"


@dataclass(frozen=True)
class RouteParameter:
    """The value of a parameter of some routes.

    `pattern` is matched with "ROUTE PARAMETER" and may contain `*`; the first
    match is used.
    """

    pattern: str
    value: Callable[[PlaceObjects, Route], object]
    # False: the value belongs to no place.
    owned: bool = True
    # The state has such an object too, which both districts may see.
    shared: bool = False
    # The place's object within the state's shared object.
    value_within_shared: Callable[[PlaceObjects, Route], object] | None = None
    # The attribute of the place with the only user who may see the object.
    only_user: str = ""


def pk_of(name: str) -> Callable[[PlaceObjects, Route], object]:
    return lambda place, route: getattr(place, name).pk


# New routes go here, by the name with which they are reversed.
ROUTE_PARAMETERS = (
    # Pages of respondents: the content of a survey is the same for all.
    RouteParameter("survey_change_page n", lambda place, route: 1, owned=False),
    RouteParameter("survey_plain_page n", lambda place, route: 1, owned=False),
    RouteParameter(
        "survey_content digest",
        lambda place, route: place.published.digest,
        owned=False,
    ),
    RouteParameter("survey_content renderer", lambda place, route: "x", owned=False),
    RouteParameter("survey_content language", lambda place, route: "en", owned=False),
    RouteParameter("survey_content n", lambda place, route: 1, owned=False),
    # The link in an e-mail, which everybody may have been sent.
    RouteParameter("help_file path", lambda place, route: "en/", owned=False),
    # Public where the state allows it; survey/tests/console holds what it shows.
    RouteParameter("public_questions name", lambda place, route: "x", owned=False),
    RouteParameter(
        "settings_public_page kind", lambda place, route: "privacy", owned=False
    ),
    RouteParameter(
        "settings_public_page language", lambda place, route: "en", owned=False
    ),
    RouteParameter("unsubscribe token", lambda place, route: "1:x", owned=False),
    # A school's page is public; survey/tests/schools holds what it shows. Here it
    # only has to change nothing.
    RouteParameter("school_page pk", lambda place, route: 0, owned=False),
    # Imports are for administrators of the state, and no place has one.
    RouteParameter("school_import* pk", lambda place, route: 0, owned=False),
    # A platform's API key opens it; survey/tests/message_platforms holds what it
    # shows. Here there is none.
    RouteParameter("message_person platform", lambda place, route: 0, owned=False),
    RouteParameter("message_person person", lambda place, route: "x", owned=False),
    # The console.
    RouteParameter("job_* pk", pk_of("job"), shared=True, only_user="administrator"),
    RouteParameter(
        "session_end pk", pk_of("seat"), shared=True, only_user="administrator"
    ),
    RouteParameter(
        "* respondent",
        pk_of("respondent"),
        value_within_shared=pk_of("respondent_of_shared"),
    ),
    RouteParameter(
        "* card_set",
        pk_of("card_set"),
        shared=True,
        value_within_shared=pk_of("card_set_of_shared"),
    ),
    RouteParameter("open_code* pk", pk_of("parents")),
    RouteParameter("open_code* open_code", pk_of("open_code")),
    RouteParameter("open_code* code_file", pk_of("code_file")),
    RouteParameter(
        "open_codes_batch* batch", pk_of("batch"), only_user="administrator"
    ),
    # The state's round, in which each district sees its own questions.
    RouteParameter("administration_modules pk", pk_of("shared"), owned=False),
    RouteParameter("administration_* pk", pk_of("administration"), shared=True),
    RouteParameter(
        "administration_hold_lift hold",
        pk_of("hold"),
        value_within_shared=pk_of("hold_of_shared"),
    ),
    RouteParameter(
        "administration_destroy kind", lambda place, route: "answers", owned=False
    ),
    # A draft is in the session of the user who typed it. Here there is none.
    RouteParameter(
        "administration_open_step draft", lambda place, route: "x", owned=False
    ),
    RouteParameter(
        "administration_open_step step", lambda place, route: "people", owned=False
    ),
    RouteParameter("count_* pk", pk_of("parents")),
    RouteParameter("people_* pk", pk_of("administration"), shared=True),
    # Only administrators of the state publish; reports/tests holds what pages show.
    RouteParameter("publishing* pk", lambda place, route: 0, owned=False),
    RouteParameter("publishing* publication", lambda place, route: 0, owned=False),
    # Published results are for everybody. Here they only have to change nothing.
    RouteParameter("published_* *", lambda place, route: 0, owned=False),
    # For users who see all responses; a district sees some of a shared one.
    RouteParameter("results_comments pk", pk_of("administration")),
    RouteParameter("results_* pk", pk_of("administration"), shared=True),
    RouteParameter(
        "people_listed_remove listed",
        pk_of("listed_id"),
        value_within_shared=pk_of("listed_id_of_shared"),
    ),
    RouteParameter(
        "people_stored_file file",
        pk_of("person_file"),
        value_within_shared=pk_of("person_file_of_shared"),
        only_user="administrator",
    ),
    RouteParameter("erasure_detail erasure", pk_of("erasure")),
    RouteParameter("certificate_* certificate", pk_of("certificate")),
    RouteParameter("cards_* pk", pk_of("administration"), shared=True),
    RouteParameter("emails_* pk", pk_of("administration"), shared=True),
    RouteParameter("emails_* step", pk_of("email_step"), shared=True),
    RouteParameter("emails_* language", lambda place, route: "en", owned=False),
    RouteParameter("roster_upload pk", pk_of("administration"), shared=True),
    RouteParameter("roster_template_* pk", pk_of("administration"), shared=True),
    RouteParameter("roster_* pk", pk_of("roster"), shared=True),
    RouteParameter("merge_* pk", pk_of("merge")),
    RouteParameter(
        "scores_quality_item measure", lambda place, route: "safety", owned=False
    ),
    RouteParameter(
        "scores_quality_item item", lambda place, route: "safe", owned=False
    ),
    # For users who see all responses; a district sees some of a shared one.
    RouteParameter("scores_quality* pk", pk_of("administration")),
    RouteParameter("scores_benchmark* pk", pk_of("administration")),
    RouteParameter("scores_* pk", pk_of("administration"), shared=True),
    RouteParameter(
        "scores_reports_* archive",
        pk_of("report_archive"),
        shared=True,
        value_within_shared=pk_of("report_archive_of_shared"),
        only_user="administrator",
    ),
    RouteParameter("school_report* pk", pk_of("administration"), shared=True),
    RouteParameter("school_report* school", pk_of("school")),
    RouteParameter("rates_remind pk", pk_of("administration"), shared=True),
    RouteParameter("rates_school* pk", pk_of("school")),
    RouteParameter("rates_district* pk", pk_of("district")),
    RouteParameter("export_detail pk", pk_of("export"), shared=True),
    # Of the state, whatever its name says.
    RouteParameter("project_* pk", pk_of("project")),
    # State administrators see the export's page, but never the file.
    RouteParameter("export_* pk", pk_of("export"), shared=True, only_user="analyst"),
    RouteParameter("* school_id", pk_of("school")),
    RouteParameter("membership_resend pk", pk_of("invited")),
    RouteParameter("membership_withdraw pk", pk_of("invited")),
    RouteParameter("membership_* pk", pk_of("membership")),
    RouteParameter("feed_create_for district", pk_of("district")),
    RouteParameter("feed_create_for kind", lambda place, route: "zip", owned=False),
    RouteParameter("feed_scan* scan", pk_of("feed_scan")),
    RouteParameter("feed_* pk", pk_of("feed")),
    RouteParameter("survey_logo name", lambda place, route: "x", owned=False),
    RouteParameter("survey_accent digits", lambda place, route: "x", owned=False),
    *(
        RouteParameter(
            f"settings_{page} place", lambda place, route: f"schools/{place.school.pk}"
        )
        for page in ("contact", "rename", "close")
    ),
    RouteParameter(
        "settings_* place", lambda place, route: f"districts/{place.district.pk}"
    ),
    RouteParameter("calendar_remove pk", pk_of("holiday"), shared=True),
    RouteParameter("wave_* pk", pk_of("wave"), shared=True),
    RouteParameter("platform_key_revoke key", pk_of("platform_key")),
    RouteParameter(
        "platform_people administration", pk_of("administration"), shared=True
    ),
    RouteParameter("platform_* pk", pk_of("platform")),
    # Surveys of a district, and those of the state, which all may use.
    RouteParameter("survey_uploaded pk", pk_of("survey_upload"), shared=True),
    RouteParameter("survey_upload_without pk", pk_of("survey_upload"), shared=True),
    RouteParameter("survey_upload_problems pk", pk_of("survey_upload"), shared=True),
    RouteParameter("survey_upload_report pk", pk_of("survey_upload"), shared=True),
    RouteParameter("survey_upload_report_file pk", pk_of("survey_upload"), shared=True),
    # A signature opens it, and the district that it names is checked.
    RouteParameter(
        "survey_edit_presence seat", lambda place, route: "1:x", owned=False
    ),
    RouteParameter(
        "survey_edit_comments_at key", lambda place, route: "r2", owned=False
    ),
    RouteParameter(
        "survey_edit_comments_resolve comment", pk_of("draft_comment"), shared=True
    ),
    RouteParameter("survey_edit_texts_remove pk", pk_of("draft"), shared=True),
    RouteParameter("survey_edit_texts* pk", pk_of("text_draft"), shared=True),
    RouteParameter(
        "survey_edit_texts_remove language", lambda place, route: "es", owned=False
    ),
    RouteParameter("survey_edit* pk", pk_of("draft"), shared=True),
    RouteParameter("survey_edit_restore number", lambda place, route: 0, owned=False),
    RouteParameter("survey_check pk", pk_of("draft"), shared=True),
    RouteParameter("survey_publish pk", pk_of("draft"), shared=True),
    RouteParameter("survey_delete pk", pk_of("draft"), shared=True),
    RouteParameter("survey_bring_back pk", pk_of("retired"), shared=True),
    # The state's questions are for all; survey/tests/bank holds who may change them.
    RouteParameter("bank_* pk", lambda place, route: 0, owned=False),
    RouteParameter("survey_measure* pk", pk_of("draft"), shared=True),
    RouteParameter("survey_measure n", lambda place, route: 0, owned=False),
    RouteParameter("survey_essential pk", pk_of("draft"), shared=True),
    RouteParameter("survey_essential n", lambda place, route: 0, owned=False),
    RouteParameter("survey_correction pk", pk_of("correction"), shared=True),
    RouteParameter("survey_* pk", pk_of("survey"), shared=True),
    # A signature opens it, and it shows a survey alone.
    RouteParameter("trial_* token", lambda place, route: "1:x", owned=False),
    RouteParameter("trial_* language", lambda place, route: "en", owned=False),
    RouteParameter("trial_* n", lambda place, route: 1, owned=False),
    RouteParameter("survey_preview_* seed", lambda place, route: 7, owned=False),
    RouteParameter("survey_preview_* language", lambda place, route: "en", owned=False),
    RouteParameter("survey_preview_* n", lambda place, route: 1, owned=False),
    # django-allauth.
    RouteParameter("account_* key", lambda place, route: "nobodys-key", owned=False),
    # Django's admin, where engineers see everything.
    RouteParameter("admin:view_on_site object_id", lambda place, route: 1, owned=False),
    RouteParameter("admin:* id", lambda place, route: first_row(route), owned=False),
    RouteParameter(
        "admin:* object_id", lambda place, route: first_row(route), owned=False
    ),
    RouteParameter("admin:* app_label", lambda place, route: "survey", owned=False),
    RouteParameter("admin:* content_type_id", lambda place, route: 1, owned=False),
    RouteParameter("admin:* url", lambda place, route: "no/such/page", owned=False),
)


class UnknownParameter(Exception):
    """A parameter is not listed; the message says which line to add."""


def parameter_for(route: Route, parameter: str) -> RouteParameter:
    name = f"{route.name} {parameter}"
    for candidate in ROUTE_PARAMETERS:
        if fnmatch(name, candidate.pattern):
            return candidate
    raise UnknownParameter(
        f"the parameter <{parameter}> of the route “{route.name}” is unknown. Add"
        f' RouteParameter("{name}", lambda place, route: place.…) to ROUTE_PARAMETERS'
        " in settings/tests/matrix/fixtures.py, and create its object in"
        " create_place() there, with the mark in its texts."
    )


def first_row(route: Route) -> object:
    """Return the key of a row of the model that a page of Django's admin shows."""
    app, model = route.template.split("/")[1:3]
    row = apps.get_model(app, model).objects.first()
    return row.pk if row else 1


def create_place(
    name: str,
    mark: str,
    published: PublishedSurvey,
    shared: Administration,
    district: District | None = None,
) -> PlaceObjects:
    """Create a district with a school and objects of each kind.

    With `district`, add a second school to it instead.
    """
    is_second_school = district is not None
    if district is None:
        district = create_district(name, mark, shared)
    school = district.schools.create(code=f"{mark}-s", name=f"School of {mark}")
    schools = [school] if is_second_school else []
    PlaceSettings.objects.create(school=school)
    staff = create_staff(mark, district, school)
    administrator, coordinator, _ = staff
    administration = create_rounds(mark, published, district, schools)
    if not is_second_school:
        create_module(mark, published, shared, district)
    respondent = create_respondent(administration, school, published, mark)
    respondent_of_shared = create_respondent(shared, school, published, mark)
    for scored in (administration, shared):
        create_scores(scored, school)
    create_join(mark, respondent, administrator)
    surveys = create_surveys(mark, administrator, district)
    parents = create_parents_objects(
        mark, surveys["published_own"], school, schools, administrator
    )
    code = code_of(parents["open_code"])
    return PlaceObjects(
        mark,
        district,
        school,
        *staff,
        administration,
        secrets=[
            *codes_of(respondent),
            *codes_of(respondent_of_shared),
            *(code, format_code(code)),
        ],
        objects={
            "published": published,
            "shared": shared,
            "respondent": respondent,
            "respondent_of_shared": respondent_of_shared,
            "membership": coordinator.memberships.get(),
            **surveys,
            **parents,
            **create_other_objects(mark, school, administration, shared, staff),
        },
    )


def create_rounds(
    mark: str, published: PublishedSurvey, district: District, schools: list[School]
) -> Administration:
    """Create the place's own round, which is returned, and one of the state there."""
    administration = create_administration(
        f"{mark}-students",
        published,
        wave=Wave.objects.create(name=f"Spring 2027 {mark}", district=district),
        district=district,
        schools=schools,
    )
    # Owned by the state, but offered only in this place.
    create_administration(
        f"{mark}-from-the-state",
        published,
        role="teacher",
        **({"schools": schools} if schools else {"districts": [district]}),
    )
    return administration


def create_district(name: str, mark: str, shared: Administration) -> District:
    district = District.objects.create(code=f"{mark}-d", name=f"{name} {mark}")
    shared.districts.add(district)
    contact = {"name": mark, "contact_name": f"Office of {mark}"}
    PlaceSettings.objects.create(district=district, **contact)
    return district


def create_parents_objects(
    mark: str,
    published: PublishedSurvey,
    school: School,
    schools: list[School],
    administrator: User,
) -> dict[str, Any]:
    """Create a round of parents, who begin with an open code of the school."""
    parents = create_administration(
        f"{mark}-own-survey",
        published,
        role="parent",
        district=school.district,
        schools=schools,
        denominator="count",
    )
    open_code = create_open_code(
        administration=parents, school=school, by=administrator, label=mark, limit=1
    )
    return {
        "parents": parents,
        "open_code": open_code,
        **create_open_code_jobs(mark, open_code, administrator),
    }


def create_other_objects(
    mark: str,
    school: School,
    administration: Administration,
    shared: Administration,
    staff: tuple[User, User, User],
) -> dict[str, Any]:
    """Create an object of each further kind that belongs to the place."""
    administrator, district = staff[0], school.district
    return {
        "wave": administration.wave,
        "holiday": create_holiday(mark, district),
        **create_erasure(mark, district, administrator),
        "hold": create_hold(mark, administration, administrator, district),
        "hold_of_shared": create_hold(mark, shared, administrator, district),
        "email_step": create_email_step(mark, administration, administrator),
        "listed_id": create_listed_id(mark, administration, school, administrator),
        "listed_id_of_shared": create_listed_id(mark, shared, school, administrator),
        "invited": create_invited_member(mark, school),
        **create_files(mark, administration, shared, staff),
        **create_message_platform(mark, district, administrator),
        **create_feed(mark, district, administrator, administration),
        **create_personal_objects(mark, administrator),
    }


def create_module(
    mark: str, published: PublishedSurvey, shared: Administration, district: District
) -> None:
    """Create what a district asks after the state's round, for itself alone."""
    Administration.objects.filter(pk=shared.pk).update(district_pages_limit=2)
    create_administration(
        f"{mark}-module",
        published,
        district=district,
        module_of=shared,
        requires_consent=False,
    )


def create_holiday(mark: str, district: District) -> DayOff:
    days = {"first": date(2027, 3, 15), "last": date(2027, 3, 19)}
    return DayOff.objects.create(name=f"Break {mark}", district=district, **days)


def create_open_code_jobs(
    mark: str, open_code: OpenCode, administrator: User
) -> dict[str, Model]:
    """Create a batch of open codes, and a file of one."""
    return {
        "code_file": OpenCodeFile.objects.create(
            administration=open_code.administration,
            school=open_code.school,
            open_code=open_code,
            format="csv",
            file_name=write_file("open-codes", ".csv", f"open codes of {mark}"),
            made_at=timezone.now(),
            codes=1,
            by=administrator,
            job=create_finished_job("open_codes.file", mark, administrator),
        ),
        "batch": OpenCodeBatch.objects.create(
            administration=open_code.administration,
            label=mark,
            by=administrator,
            job=create_finished_job("open_codes.create", mark, administrator),
        ),
    }


def create_message_platform(
    mark: str, district: District, administrator: User
) -> dict[str, Model]:
    """Create a message platform with an API key."""
    platform = create_platform(name=mark, district=district, by=administrator)
    key, _ = create_key(platform=platform, by=administrator)
    return {"platform": platform, "platform_key": key}


def create_feed(
    mark: str, district: District, by: User, administration: Administration
) -> dict[str, Model]:
    """Create a feed with credentials, and a scan of it that failed."""
    feed = RosterFeed.objects.create(
        district=district,
        by=by,
        kind="zip",
        name=mark,
        address=f"https://{mark}.example/oneroster.zip",
        credentials=seal({"token": mark}),
    )
    feed.administrations.add(administration)
    scan = FeedScan.objects.create(
        feed=feed,
        district=district,
        reason="now",
        by=by,
        state="failed",
        message=f"{mark} does not answer.",
        ended_at=timezone.now(),
    )
    scan.stages.create(stage="download", message=f"{mark} does not answer.")
    return {"feed": feed, "feed_scan": scan}


def create_files(
    mark: str,
    administration: Administration,
    shared: Administration,
    staff: tuple[User, User, User],
) -> dict[str, Model]:
    """Create login cards, a roster upload and an export, each with its file."""
    administrator, coordinator, analyst = staff
    school = coordinator.memberships.get().school
    district = school.district
    return {
        "person_file": create_person_file(mark, administration, administrator, school),
        "person_file_of_shared": create_person_file(
            mark, shared, administrator, school
        ),
        "imported_benchmark": ImportedBenchmark.objects.create(
            administration=administration,
            measures={},
            by=administrator,
            because=f"Published in {mark}",
        ),
        "card_set": create_card_set(mark, administration, administrator, school=school),
        "card_set_of_shared": create_card_set(
            mark, shared, administrator, district=district, format="csv"
        ),
        "roster": create_roster_upload(
            mark, administration, coordinator, school=school
        ),
        "export": create_export(
            mark, administration, analyst, {"districts": [district.pk]}
        ),
        "project": PanelProject.objects.create(
            name=f"Project {mark}",
            purpose=f"Research about {mark}",
            people=f"Researchers of {mark}",
            ends_on=timezone.localdate() + timedelta(days=30),
            by=administrator,
        ),
        "report_archive": create_report_archive(
            mark, administration, administrator, district
        ),
        "report_archive_of_shared": create_report_archive(
            mark, shared, administrator, district
        ),
        "merge": PlaceMerge.objects.create(
            kind="schools",
            district=district,
            kept_id=school.pk,
            kept_name=f"Kept {mark}",
            duplicate_id=0,
            duplicate_name=f"Duplicate {mark}",
            duplicate_code=mark,
            state="checked",
            by=administrator,
            message=f"About {mark}",
            report={"people": 1, "staff": 0, "open_codes": 0},
        ),
    }


def create_staff(
    mark: str, district: District, school: School
) -> tuple[User, User, User]:
    """Create an administrator, a coordinator and an analyst, and an audit entry."""
    administrator = create_member(
        f"admin@{mark}.example", Role.DISTRICT, district=district
    )
    coordinator = create_member(
        f"chief@{mark}.example", Role.COORDINATOR, school=school
    )
    analyst = create_member(f"reads@{mark}.example", Role.ANALYST, district=district)
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
    return administrator, coordinator, analyst


def create_state(marks: str, published: PublishedSurvey, head: User) -> PlaceObjects:
    """Create the state's objects, which both districts share."""
    administration = create_administration("statewide-students", published)
    everything = {"state": True}
    return PlaceObjects(
        mark="both",
        district=None,
        school=None,
        administrator=head,
        coordinator=head,
        analyst=head,
        administration=administration,
        objects={
            # Texts of the state's wave and surveys are visible to all districts.
            "wave": Wave.objects.create(name="Statewide"),
            "holiday": DayOff.objects.create(
                name="Statewide break", first=date(2026, 12, 24), last=date(2027, 1, 1)
            ),
            **create_surveys("statewide", head, None),
            "survey_upload": create_survey_upload(marks, head, None),
            "email_step": create_email_step(marks, administration, head),
            "card_set": create_card_set(marks, administration, head, format="csv"),
            "roster": create_roster_upload(marks, administration, head),
            "export": create_export(marks, administration, head, everything),
            "report_archive": create_report_archive(marks, administration, head, None),
            **create_personal_objects(marks, head),
        },
    )


def write_file(folder: str, ending: str, text: str) -> str:
    """Write a private file and return its name."""
    name = new_name(folder, ending)
    path_of(name).write_text(text)
    return name


def create_card_set(
    mark: str, administration: Administration, by: User, **fields: Any
) -> CardSet:
    return CardSet.objects.create(
        administration=administration,
        file_name=write_file("cards", ".pdf", f"cards of {mark}"),
        made_at=timezone.now(),
        people=1,
        # With names it could not be downloaded.
        anonymous=True,
        by=by,
        job=create_finished_job("cards.make", mark, by),
        **fields,
    )


def create_person_file(
    mark: str, administration: Administration, by: User, school: School
) -> PersonFile:
    now = timezone.now()
    return PersonFile.objects.create(
        respondent=administration.respondents.filter(school=school).earliest("pk"),
        requested_by=OptOut.RequestedBy.PARENT,
        requested_on=now.date(),
        file_name=write_file(PersonFile.FOLDER, ".html", f"what is stored of {mark}"),
        made_at=now,
        expires_at=now + timedelta(days=7),
        size=20,
        sha256="0" * 64,
        by=by,
        job=create_finished_job(PersonFile.JOB, mark, by),
    )


def create_email_step(mark: str, administration: Administration, by: User) -> EmailStep:
    """Plan the e-mails of an administration, and write the invitation."""
    schedule = plan_emails(
        administration=administration,
        reminder_days=[3],
        thanks=True,
        rate_per_minute=600,
        by=by,
    )
    step = schedule.steps.get(kind=EmailStep.Kind.INVITATION)
    write_template(
        step=step, language="en", subject=mark, body=f"{mark} {{link}}", by=by
    )
    return step


def create_roster_upload(
    mark: str, administration: Administration, by: User, **fields: Any
) -> RosterUpload:
    """Create a checked upload with one rejected row, ready to be applied."""
    upload = RosterUpload.objects.create(
        administration=administration,
        by=by,
        file=write_file("rosters", ".roster", f"roster of {mark}"),
        name=f"{mark}.csv",
        size=30,
        state="checked",
        report={"rows": 2, "columns": {"external_id": f"ID of {mark}"}},
        samples={
            "header": [f"ID of {mark}"],
            "values": {f"ID of {mark}": [f"Sample of {mark}"]},
        },
        message=f"About {mark}",
        rejected=1,
        rejected_file=write_file("rosters", ".csv", f"rejected {mark}"),
        **fields,
    )
    upload.rejections.create(row=2, column="grade", reason="is no grade", text=mark)
    upload.schools.create(
        school=fields.get("school"),
        name=f"School of {mark}",
        district_name=mark,
        withdrawn=1,
    )
    for person in Respondent.objects.filter(administration=administration):
        RosterMissing.objects.create(upload=upload, respondent=person, has_left=False)
    return upload


def create_export(
    mark: str, administration: Administration, by: User, places: dict[str, Any]
) -> Export:
    now = timezone.now()
    export = Export.objects.create(
        by=by,
        job=create_finished_job("export.make", mark, by),
        format="wide",
        language="en",
        places=places,
        made_at=now,
        expires_at=now + timedelta(days=7),
        file_name=write_file("exports", ".csv", f"answers of {mark}"),
        codebook_name=write_file("exports", ".html", f"codebook of {mark}"),
        codebook_table_name=write_file("exports", ".csv", f"table of {mark}"),
        documents_name=write_file("exports", ".zip", f"documents of {mark}"),
        size=20,
        rows=1,
        respondents=1,
        responses=1,
        sha256="0" * 64,
    )
    export.administrations.add(administration)
    return export


def create_report_archive(
    mark: str, administration: Administration, by: User, district: District | None
) -> ReportArchive:
    now = timezone.now()
    return ReportArchive.objects.create(
        by=by,
        job=create_finished_job("school_reports.make", mark, by),
        administration=administration,
        district=district,
        language="en",
        waves=[administration.pk],
        made_at=now,
        expires_at=now + timedelta(days=7),
        file_name=write_file("school-reports", ".zip", f"reports of {mark}"),
        size=20,
        sha256="0" * 64,
        schools=1,
        reports=1,
    )


def create_personal_objects(mark: str, user: User) -> dict[str, Any]:
    """Create objects that only their user may see."""
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


def create_finished_job(kind: str, mark: str, by: User) -> Job:
    return Job.objects.create(
        kind=kind, by=by, state="done", message=mark, ended_at=timezone.now()
    )


def create_invited_member(mark: str, school: School) -> Membership:
    """Create an invited coordinator and the invitation's e-mail."""
    user = create_member(f"new@{mark}.example", Role.COORDINATOR, school=school)
    User.objects.filter(pk=user.pk).update(first_name="New", last_name=mark)
    Invitation.objects.create(user=user)
    QueuedEmail.objects.create(kind="invitation", to=user.email, facts={"place": mark})
    return user.memberships.get()


def create_survey_upload(
    mark: str, by: User, district: District | None
) -> SurveyUpload:
    """Create the upload of a workbook that could not be read."""
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
        report=[
            {
                "place": "q1",
                "text": mark,
                "outcome": "refused",
                "reason": "is no question",
                "part": "question",
            }
        ],
    )


def create_surveys(mark: str, by: User, district: District | None) -> dict[str, Any]:
    """Create a draft, a published survey, its corrections and a retired survey."""

    def imported(name: str, version: str, label: str, **more: Any) -> Survey:
        source = create_workbook(f"{mark}-{name}", version, f"{label} {mark}")
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
    corrected = imported("own", "2", "First", corrects=published)
    publish_correction(survey=corrected, corrects=published, by=by)
    retired = publish_survey(survey=imported("old", "1", "Old")).survey
    Retirement.objects.create(survey=retired, by=by)
    draft = imported("draft", "1", "Draft")
    comment = add_comment(survey=draft, key="r2", text=f"Shorter, {mark}?", by=by)
    return {
        "published_own": published,
        "survey": published.survey,
        "draft": draft,
        "draft_comment": comment,
        "correction": imported("own", "3", "The first", corrects=published),
        "text_draft": start_correction(corrects=published, by=by),
        "corrected": corrected,
        "retired": retired,
        "survey_upload": create_survey_upload(mark, by, district),
    }


# Each of about 1,800 submitted forms needs one; creating it takes 10 ms.
@cache
def create_workbook(name: str, version: str, label: str) -> bytes:
    return form(
        [
            ["type", "name", "label", "label::Español (es)"],
            ["select_one agree", "safe", label, label],
            ["text", "comment", "Anything else?", "¿Algo más?"],
        ],
        settings=[
            ["form_id", "version", "default_language", "form_title"],
            [name, version, "en", name],
        ],
    )


def create_member(email: str, role: str, **place: object) -> User:
    user = User.objects.create_user(email)
    Membership.objects.create(user=user, role=role, **place)
    return user


def create_administration(
    name: str, published: PublishedSurvey, role: str = "student", **more: Any
) -> Administration:
    now = timezone.now()
    administration = open_administration(
        name=name,
        published=published,
        role=role,
        opens_at=now - timedelta(days=2),
        closes_at=now + timedelta(days=30),
        # The files of this small district are about permissions.
        minimum_group=1,
        # So that its pages are there.
        **{"requires_consent": more.get("denominator") != "count", **more},
    )
    # So that its results are there.
    ResultsRollUp.objects.create(
        administration=administration,
        as_of=now,
        written_at=now,
        hidden_as_of=now,
        layout={"items": [], "widths": {}, "columns": [], "attributes": []},
        shared_at=now,
    )
    return administration


def create_scores(administration: Administration, school: School) -> None:
    """Create a school's score on one measure."""
    now = timezone.now()
    Scoring.objects.get_or_create(
        administration=administration,
        defaults={"as_of": now, "calculated_at": now, "people": 20},
    )
    Calibration.objects.get_or_create(
        administration=administration,
        measure="safety",
        defaults={
            "items": [ANCHORED_ITEM],
            "people": 20,
            "scale_deviation": 1.0,
            "calculated_at": now,
        },
    )
    group = {"administration": administration, "level": "school", "place_id": school.pk}
    ScoreRow.objects.create(**group, measures={"safety": [20, 0.1, 0.2, 52]})


def create_respondent(
    administration: Administration,
    school: School,
    published: PublishedSurvey,
    mark: str,
) -> Respondent:
    """Create a respondent with one saved answer."""
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


def create_join(mark: str, person: Respondent, by: User) -> RecordJoin:
    """Join a withdrawn record of the same person with `person`."""
    now = timezone.now()
    duplicate = Respondent.objects.create(
        administration=person.administration,
        school=person.school,
        code_digest=f"joined {mark}".encode(),
        code_key_version=current_version(),
        withdrawn_at=now,
    )
    return RecordJoin.objects.create(
        administration=person.administration,
        kept=person,
        other=duplicate,
        state="joined",
        district=person.school.district,
        external_id=f"{mark}-2",
        by=by,
        ended_at=now,
    )


def create_listed_id(
    mark: str, administration: Administration, school: School, by: User
) -> ListedId:
    """Keep an opt-out of an ID that is not on the roster."""
    return ListedId.objects.create(
        administration=administration,
        district=school.district,
        school=school,
        external_id=f"{mark}-9",
        requested_on=date(2026, 9, 1),
        requested_by="parent",
        by=by,
    )


def create_hold(
    mark: str, administration: Administration, by: User, district: District
) -> LegalHold:
    """Place a hold that was lifted, so that it stops nothing."""
    return LegalHold.objects.create(
        administration=administration,
        district=district,
        holder=f"Counsel of {mark}",
        reason=f"Case of {mark}",
        placed_by=by,
        lifted_by=by,
        lifted_at=timezone.now(),
        lifted_reason=f"Settled by {mark}",
    )


def create_erasure(mark: str, district: District, by: User) -> dict[str, Any]:
    """Order the erasing of a person who is no longer there, and certify it."""
    erasure = Erasure.objects.create(
        district=district,
        by=by,
        requested_on=date(2026, 9, 1),
        requested_by="parent",
        reason="request",
        people=1,
    )
    certificate = DestructionCertificate.objects.create(
        kind="people",
        district=district,
        erasure=erasure,
        issued_at=timezone.now(),
        document=mark.encode(),
        pdf=mark.encode(),
        public_key=bytes(32),
    )
    return {"erasure": erasure, "certificate": certificate}


def codes_of(respondent: Respondent) -> list[str]:
    """Return the access code without and with hyphens."""
    code = code_for(respondent.pk, respondent.issue, respondent.code_key_version)
    return [code, format_code(code)]


def create_published_survey() -> PublishedSurvey:
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
    measure = {
        "name": "safety",
        "label": {"en": "Safety"},
        "description": {},
        "essential": "",
        "direction": "positive",
        "items": [{"name": "safe", "reversed": False}],
        "missing": [],
    }
    SurveyMeasures.objects.create(
        survey=survey, content={"essentials": [], "measures": [measure]}
    )
    return publish_survey(survey=survey)


def rows_of(
    place: PlaceObjects, *, with_district: bool = True
) -> dict[type[Model], int]:
    """Return the rows of a place to which other rows refer."""
    owned: list[Model] = [
        place.school,
        place.administration,
        place.respondent,
        place.wave,
        place.coordinator,
        place.job,
        place.survey,
        place.card_set,
        place.email_step,
        place.open_code,
        place.code_file,
        place.batch,
        place.roster,
        place.feed,
        place.feed_scan,
        place.export,
        place.survey_upload,
    ]
    if with_district:
        owned.append(place.district)
    return {type(row): row.pk for row in owned}


def form_values_of(place: PlaceObjects) -> dict[str, Any]:
    """Return a place's ids under all names that a filter or form may have."""
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
        "step": place.email_step.pk,
        "open_code": place.open_code.pk,
        "batch": place.batch.pk,
        "code_file": place.code_file.pk,
        "export": place.export.pk,
        "archive": place.report_archive.pk,
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


def forms_for(route: Route, place: PlaceObjects) -> list[FormData]:
    """Return forms to submit: all ids of a place, and valid forms of some routes.

    Only a form that is otherwise valid reaches the check of the place.
    """
    school, district = place.school.pk, place.district.pk
    # With names: those without need results, which open surveys have not.
    names = {"identities": "on", "reason": "Consent has to be checked."}
    export = {"administrations": place.objects["shared"].pk, "format": "wide", **names}
    invitation = {"email": "somebody@new.example", "district": district}
    workbook = create_workbook("new", "1", "New")
    people = f"district,school,id\n{place.district.code},{place.school.code},1\n"
    valid_forms: dict[str, list[FormData]] = {
        "export_new": [
            {**export, "school": school},
            {**export, "district": district},
        ],
        "export_return": [
            {
                "administrations": place.objects["shared"].pk,
                "district": district,
                "reason": names["reason"],
                "encryption": "key",
                "public_key": AGE_KEY,
            }
        ],
        "staff_invite": [
            {**invitation, "role": "coordinator", "school": school},
            {**invitation, "role": "analyst"},
        ],
        "emails_plan": [{"reminder_days": "5", "rate_per_minute": "60"}],
        "emails_text": [{"subject": "New", "body": "{link}"}],
        "survey_upload": [
            {
                "owner": district,
                "file": SimpleUploadedFile("new.xlsx", workbook),
            }
        ],
        "roster_upload": [
            {
                "place": f"school-{school}",
                "complete_for": "schools",
                "file": SimpleUploadedFile("new.csv", people.encode()),
            }
        ],
        "people_add": [{"external_id": "new-1"}],
        "open_codes_new": [{"label": "new"}],
        "open_codes_all": [{"label": "new"}],
        "open_code_replace": [{"seen": "1"}],
        "open_code_files": [
            {"format": "csv"},
            {"format": "csv", "place": f"school-{school}"},
            {"format": "csv", "place": f"district-{district}"},
        ],
        "administration_open": [round_form(place)],
    }
    return [form_values_of(place), *valid_forms.get(route.name, ())]


def round_form(place: PlaceObjects) -> FormData:
    now = timezone.now()
    return {
        "name": "new-one",
        "second": "on",
        "owner": place.district.pk,
        "published": place.published_own.pk,
        "role": "student",
        "wave": place.wave.pk,
        "districts": place.district.pk,
        "schools": place.school.pk,
        "opens_at": f"{now:%Y-%m-%dT%H:%M}",
        "closes_at": f"{now + timedelta(days=9):%Y-%m-%dT%H:%M}",
    }


def queries_for(place: PlaceObjects) -> list[FormData]:
    """Return query strings with ids of a place.

    The ids are sent one by one too, because a page may check one parameter and
    trust another.
    """
    ids = form_values_of(place)
    del ids["email"]
    single = ("administration", "administrations", "district", "school")
    return [
        ids,
        *({name: ids[name]} for name in single),
        {"administrations": place.objects["shared"].pk, "district": ids["district"]},
        # All marks begin like this, also where a search matches only beginnings.
        {"q": "mark", "whose": "all"},
        {"q": "Robinson"},
        {"q": "School of"},
    ]
