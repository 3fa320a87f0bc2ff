"""Compare two districts or schools, and count what merging them would change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, Membership, School
from survey.models import Administration, OpenCode, Respondent, Survey
from survey.people.merging.people import people_in_batches, read_batch
from survey.people.merging.places import administrations_of
from survey.people.merging.references import refuse_two_feeds
from survey.people.rosters.place_names import PlaceDirectory, is_same_name
from survey.work.jobs import JobRefused

# Schools that a message or a report names.
MOST_NAMED = 5

SAME_CODE = gettext_noop(
    "These schools of the duplicate have the code of another school that has"
    " another name: {names}. Change one of the codes or names first."
)
UNCLEAR = gettext_noop(
    "These schools of the duplicate could be one of several schools of the"
    " district that stays: {names}. Merge the schools of that district first."
)
BOTH_OWN = gettext_noop(
    "Both districts own a survey with the same name and version: {names}."
    " Delete or rename one of them first."
)


@dataclass(slots=True)
class MergeReport:
    """What a merge would change."""

    # Records of people that go to the other place, in all administrations.
    people: int = 0
    # People with a record in both districts, and how many of these have been started.
    pairs: int = 0
    one_started: int = 0
    both_started: int = 0
    administrations: list[str] = field(default_factory=list)
    # Pairs of the duplicate's school and the school that it is merged into.
    merged_schools: list[tuple[int, int]] = field(default_factory=list)
    moved_schools: int = 0
    staff: int = 0
    open_codes: int = 0

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def check_schools(duplicate: School, target: School) -> MergeReport:
    """Count what merging two schools would change. 4 statements."""
    report = MergeReport()
    people = Respondent.objects.filter(school=duplicate)
    report.people = people.count()
    report.administrations = list(
        Administration.objects.filter(
            pk__in=people.order_by().values("administration").distinct()
        )
        .order_by("name")
        .values_list("name", flat=True)
    )
    report.merged_schools = [(duplicate.pk, target.pk)]
    _count_staff_and_codes(report, Q(school=duplicate), Q(school=duplicate))
    return report


def check_districts(
    duplicate: District,
    target: District,
    on_progress: Callable[[int], None] = lambda people: None,
) -> MergeReport:
    """Count what merging two districts would change.

    4 statements for each 500 people. Raises JobRefused if their schools or surveys
    cannot be told apart.
    """
    report = MergeReport()
    report.merged_schools = match_schools_of(duplicate, target)
    number = School.objects.filter(district=duplicate).count()
    report.moved_schools = number - len(report.merged_schools)
    surveys = set(Survey.objects.filter(district=target).values_list("name", "version"))
    moving = Survey.objects.filter(district=duplicate).values_list("name", "version")
    if same := sorted(surveys.intersection(moving)):
        names = ", ".join(f"{name} {version}" for name, version in same[:MOST_NAMED])
        raise JobRefused(_(BOTH_OWN).format(names=names))
    refuse_two_feeds(duplicate, target)
    for administration in administrations_of(duplicate):
        report.administrations.append(administration.name)
        for people in people_in_batches(administration, duplicate):
            batch = read_batch(administration, people, target, lock=False)
            report.people += len(batch.alone)
            report.pairs += len(batch.pairs)
            for pair in batch.pairs:
                report.both_started += pair.have_both_started
                report.one_started += pair.duplicate_started != pair.kept_started
            on_progress(report.people + report.pairs)
    schools = Q(school__district=duplicate)
    _count_staff_and_codes(report, Q(district=duplicate) | schools, schools)
    return report


def match_schools_of(duplicate: District, target: District) -> list[tuple[int, int]]:
    """Find the schools that both districts have. 2 statements. Raises JobRefused."""
    schools = School.objects.filter(district=target)
    directory = PlaceDirectory(schools.values_list("pk", "code", "name"))
    matched: list[tuple[int, int]] = []
    same_code, unclear = [], []
    for school in School.objects.filter(district=duplicate).order_by("pk"):
        match = directory.find(school.code, school.name)
        if len(match.keys) > 1:
            unclear.append(school.name)
        elif match.keys:
            [pk] = match.keys
            if is_same_name(school.name, directory.name_of[pk]):
                matched.append((school.pk, pk))
            elif directory.code_of[pk].casefold() == school.code.casefold():
                same_code.append(school.name)
    for message, names in ((SAME_CODE, same_code), (UNCLEAR, unclear)):
        if names:
            shown = ", ".join(sorted(names)[:MOST_NAMED])
            if len(names) > MOST_NAMED:
                shown = _("%(names)s and others") % {"names": shown}
            raise JobRefused(_(message).format(names=shown))
    return matched


def _count_staff_and_codes(report: MergeReport, staff: Q, schools: Q) -> None:
    report.staff = Membership.objects.current().filter(staff).count()
    report.open_codes = OpenCode.objects.filter(schools, revoked_at=None).count()
