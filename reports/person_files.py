"""Make the file with all that is stored about a person: every table, in plain words.

It has the person's answers, as files with names do, because parents may inspect and
copy them; so only who may export answers with names gets it. No page shows one of
them: see docs/decisions/0189-what-is-stored-about-a-person.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db.models import Field, Model
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import AuditEntry, School
from accounts.permissions import Permissions
from accounts.tables import Erasing
from reports.consent_texts import CONSENT, consent_texts
from reports.exports.offered_versions import offered_versions
from survey.database.replica.reports import reports_database
from survey.instrument.definitions.schema import SurveyDefinition, load_definition
from survey.models import (
    Administration,
    ListedId,
    PersonFile,
    Respondent,
    Response,
)
from survey.models.erasure import ERASES
from survey.people.erasing.erase import NOBODY
from survey.people.erasing.stored import (
    PersonRecords,
    records_of,
    rows_about,
    rows_by_id,
)
from survey.people.erasing.words import COLUMNS, TABLES
from survey.taking.review import text_in
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import keep_files, makes

NOT_PERMITTED = gettext_noop(
    "You may no longer see all that is stored about this person, so no file was made."
)
# Answers come first after what the roster says.
ORDER = ("survey_identity", "survey_respondent", "survey_response")
# Kinds of erasing whose rows are about one person.
SHOWN = (Erasing.DELETED, Erasing.RELEASED, Erasing.EMPTIED, Erasing.STAYS)
MULTIPLE = "select_multiple"


@dataclass(frozen=True, slots=True)
class StoredRow:
    """The columns of a row that say something: (label, value) each."""

    cells: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class StoredTable:
    title: str
    rows: list[StoredRow]


@dataclass(frozen=True, slots=True)
class StoredRound:
    """What is stored about one record, in one survey round."""

    title: str
    tables: list[StoredTable]


@makes(PersonFile, "by", "respondent__school__district")
def make_person_file(requested: PersonFile, folder: Path, progress: Progress) -> None:
    """Write the file. Raises JobRefused if the person is gone, or the permission."""
    person = records_of(requested.respondent)
    if person is None:
        raise JobRefused(_(NOBODY))
    if not Permissions(requested.by).places(*ERASES).has_district(person.district):
        raise JobRefused(_(NOT_PERMITTED))
    progress.begin_step(_("Reading what is stored"), total=len(person.records))
    rounds = []
    for respondent, administration in sorted(person.records.items()):
        rounds.append(stored_round(person, respondent, administration))
        progress.advance()
    path = folder / "person.html"
    context = {"requested": requested, "rounds": rounds, "now": timezone.now()}
    path.write_text(render_to_string("reports/person_file.html", context))
    keep_files(requested, {"file_name": (path, ".html")}, progress)


def stored_round(
    person: PersonRecords, respondent: int, administration_id: int
) -> StoredRound:
    """Read every table about one record: some 17 statements, and 1 on the replica."""
    rounds = Administration.objects.select_related("published__survey")
    administration = rounds.get(pk=administration_id)
    definition = load_definition(administration.published.definition)
    tables: dict[str, StoredTable] = {}
    for erasing in SHOWN:
        for model, rows in rows_about(respondent, administration_id, erasing):
            if model is Response:
                answers = Response.objects.using(reports_database()).filter(
                    administration_id=administration_id, respondent_id=respondent
                )
                content = list(_answers(administration, definition, answers))
            else:
                content = [_row(row) for row in rows.order_by("pk")]
            _add(tables, model._meta.db_table, content)
    listed = [_row(row) for row in rows_by_id(person, administration_id)]
    _add(tables, ListedId._meta.db_table, listed)
    entries = AuditEntry.objects.filter(
        kind="survey.respondent", subject_id=respondent
    ).order_by("at", "pk")
    _add(tables, AuditEntry._meta.db_table, [_row(entry) for entry in entries])
    first = [tables.pop(name) for name in ORDER if name in tables]
    return StoredRound(administration.title, [*first, *tables.values()])


def _add(tables: dict[str, StoredTable], name: str, rows: list[StoredRow]) -> None:
    if shown := [row for row in rows if row.cells]:
        tables[name] = StoredTable(str(TABLES[name]), shown)


def _row(row: Model) -> StoredRow:
    cells = []
    for field in row._meta.local_concrete_fields:
        label = COLUMNS.get(field.name)
        if label and (text := _text(row, field)):
            cells.append((str(label), text))
    return StoredRow(cells)


def _text(row: Model, field: Field) -> str:
    """Return the value of a column in words; blank if there is none."""
    value = getattr(row, field.attname)
    if value is None or value in ("", {}):
        return ""
    if field.name == "school":
        school = School.objects.filter(pk=value).first()
        return str(school or "")
    if field.choices:
        return str(getattr(row, f"get_{field.name}_display")())
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, dict):
        return "; ".join(f"{name}: {text}" for name, text in value.items())
    if isinstance(value, datetime):
        return date_format(timezone.localtime(value), "DATETIME_FORMAT")
    return str(value)


def _answers(
    administration: Administration,
    definition: SurveyDefinition,
    answers: Iterable[Response],
) -> Iterator[StoredRow]:
    """Yield question, answer and time, in the order of the survey.

    Of a box of consent the texts too that the person may have read: 3 statements more.
    """
    language = definition["languages"][0]["code"]
    by_item = {answer.item_id: answer for answer in answers}
    for name in definition["order"]:
        item = definition["items"][name]
        answer = by_item.pop(item["id"], None)
        if answer is None:
            continue
        words = {
            option["value"]: text_in(definition, option["label"], language)
            for option in definition["option_sets"].get(item.get("option_set", ""), ())
        }
        value = answer.value or ""
        values = value.split() if item["kind"] == MULTIPLE else [value]
        text = ", ".join(words.get(part, part) for part in values)
        question = text_in(definition, item.get("label", {}), language) or name
        cells = [
            (_("Question"), question),
            (_("Answer"), text or str(answer.get_state_display())),
            (
                _("Saved at"),
                date_format(timezone.localtime(answer.saved_at), "DATETIME_FORMAT"),
            ),
        ]
        if item["kind"] == CONSENT and answer.state == Response.State.ANSWERED:
            cells += _consent_cells(administration, answer, name)
        yield StoredRow(cells)
    # Items that a later version of the survey lacks.
    for answer in by_item.values():
        yield _row(answer)


def _consent_cells(
    administration: Administration, answer: Response, name: str
) -> Iterator[tuple[str, str]]:
    person = Respondent.objects.get(pk=answer.respondent_id)
    offered = offered_versions([administration])[administration.pk]
    for shown in consent_texts(person, answer, name, offered):
        label = _("Text that was shown: %(language)s, version %(version)s") % {
            "language": shown.language,
            "version": f"{shown.version} ({shown.digest[:12]})",
        }
        yield label, shown.text
