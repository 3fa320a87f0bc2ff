"""Save the fields and the rules of a request, unless somebody else has changed them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.http import QueryDict

from accounts.models import User
from survey.console.surveys.editor.fields import Address, Fields
from survey.console.surveys.editor.outcome import Outcome
from survey.console.surveys.editor.rules import address_of, posted_rules, rule_form
from survey.instrument.drafts.kinds import restore_kind
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.renames import rename_from_text
from survey.instrument.drafts.store import FINISHES, change_draft
from survey.instrument.drafts.workbook import DraftBook, cleaned
from survey.models import DraftChange, Survey

# The changes that are searched for the author of a text, or for an earlier type.
SEARCHED_CHANGES = 200
FIELD, SEEN = "f:", "seen:"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that somebody else has changed since it was shown."""

    address: str
    theirs: str
    mine: str
    by: str = ""
    at: datetime | None = None
    # By the same user, in another window.
    is_own: bool = False


class FieldsChanged(Exception):
    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__("conflict")
        self.conflicts = conflicts


def save_fields(survey: Survey, data: QueryDict, *, by: User) -> None:
    wanted = []
    for name in data:
        if name.startswith(SEEN):
            address = name.removeprefix(SEEN)
            seen, text = data.get(name, ""), data.get(FIELD + address, "")
            if cleaned(seen) != cleaned(text):
                wanted.append((Address.parse(address), seen, text))
    left = data.get("left", "")
    if not wanted and not left:
        return

    changes = DraftChange.objects.filter(survey=survey)[:SEARCHED_CHANGES]

    def command(book: DraftBook) -> None:
        fields = Fields(book)
        conflicts = []
        for address, seen, text in wanted:
            stored = fields.read(address)
            if stored not in (cleaned(seen), cleaned(text)):
                conflicts.append(Conflict(str(address), stored, text))
        if conflicts:
            raise FieldsChanged(conflicts)
        for address, _seen, text in wanted:
            is_kind = (address.sheet, address.field) == ("survey", "kind")
            if not is_kind or not restore_kind(book, changes, address.key, text):
                fields.write(address, text)
        if left:
            name_after_text(book, Address.parse(left))

    about = {"key": wanted[0][0].key if wanted else ""}
    if left and not wanted:
        about[FINISHES] = Address.parse(left).key
    if wanted and wanted[0][0].language:
        about |= {"field": wanted[0][0].field, "text": wanted[0][2][:80]}
    try:
        change_draft(survey, command, action="set", by=by, about=about)
    except FieldsChanged as changed:
        raise FieldsChanged(
            [with_author(survey, row, by) for row in changed.conflicts]
        ) from None


def save_rules(survey: Survey, data: QueryDict, outcome: Outcome, *, by: User) -> None:
    """Store the rules whose forms are complete."""
    for rule in posted_rules(data):
        # Another row may be selected since the form was filled in.
        key = data.get(f"rule-{rule}-key") or outcome.at
        survey.refresh_from_db(fields=["last_change"])
        reading = read_rows_of(survey, with_pyxform=False)
        address = address_of(key, rule)
        stored = Fields(reading.book).read(address)
        form = rule_form(
            reading,
            key,
            rule,
            stored,
            language=data.get("language", ""),
            data={name: data.get(name, "") for name in data},
        )
        if form is None:
            continue
        if key == outcome.at:
            outcome.rules[rule] = form
        outcome.has_unsaved_rule |= form.is_unfinished
        outcome.rule_state = outcome.rule_state or form.state
        if not form.is_complete or form.expression == form.seen:
            continue
        expression, seen = form.expression, form.seen

        def command(
            book: DraftBook,
            address: Address = address,
            expression: str = expression,
            seen: str = seen,
        ) -> None:
            fields = Fields(book)
            stored = fields.read(address)
            if stored not in (cleaned(seen), cleaned(expression)):
                raise FieldsChanged([Conflict(str(address), stored, expression)])
            fields.write(address, expression)

        try:
            change_draft(survey, command, action="set_rule", by=by, about={"key": key})
        except FieldsChanged as changed:
            raise FieldsChanged(
                [with_author(survey, row, by) for row in changed.conflicts]
            ) from None


def name_after_text(book: DraftBook, address: Address) -> None:
    """Name a question after its text when its author leaves the field."""
    fields = Fields(book)
    if (address.sheet, address.field, address.language) == (
        *("survey", "label"),
        fields.languages[0].code,
    ):
        rename_from_text(book, address.key, fields.read(address))


def with_author(survey: Survey, conflict: Conflict, reader: User) -> Conflict:
    """Find who changed a field last. 1 statement."""
    address = Address.parse(conflict.address)
    changes = DraftChange.objects.filter(survey=survey).select_related("by")
    for change in changes[:SEARCHED_CHANGES]:
        for operation in change.operations:
            if operation["sheet"] == address.sheet and (
                operation.get("key") == address.key or address.sheet == "settings"
            ):
                name = str(change.by) if change.by else ""
                is_own = change.by_id == reader.pk
                return replace(conflict, by=name, at=change.at, is_own=is_own)
    return conflict
