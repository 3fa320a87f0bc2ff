"""Carry out what a user does in the editor: save fields, add, move, delete, paste.

A request saves the fields that it has, and then does one thing, such as
`delete:k3`. Each field comes with the text that its user saw: if another one is
stored, nothing is written over, and both are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.http import QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from survey.console.surveys.editor import bank
from survey.console.surveys.editor.fields import (
    GRID_KIND,
    KINDS,
    LONG_TEXT,
    Address,
    Fields,
    value_of,
    write_kind,
)
from survey.console.surveys.editor.new_places import (
    EMPTY_KIND,
    grid_around,
    last_row,
    place_for,
    untouched_question,
    unwritten_question,
)
from survey.console.surveys.editor.outcome import (
    Outcome,
    group_of,
    readers_of,
    row_after_undo,
    say_moved,
)
from survey.console.surveys.editor.pasted_form import insert_pasted
from survey.console.surveys.editor.pastes import (
    paste_into_grid,
    paste_into_options,
)
from survey.console.surveys.editor.saving import FIELD, save_fields, save_rules
from survey.instrument.drafts import moves
from survey.instrument.drafts.commands import (
    CommandRefused,
    add_grid,
    add_language,
    add_page,
    add_question,
    copy_option_set,
    delete_rows,
    dependents_of,
    duplicate_rows,
    groups_around,
    keys_of,
    kind_of,
    set_kind,
    span_of,
)
from survey.instrument.drafts.groups import (
    begin_section,
    unwrap,
    wrap_in_grid,
    wrap_in_heading,
    wrap_page,
)
from survey.instrument.drafts.option_rows import (
    add_options,
    move_option,
    options_of,
    place_option,
)
from survey.instrument.drafts.ready_options import fill_ready
from survey.instrument.drafts.store import (
    change_draft,
    load_book,
    redo,
    refuse_twice,
    undo,
)
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform.languages import Language, language_of
from survey.instrument.xlsform.types import parse_type
from survey.models import Survey

LONGEST_TOKEN = 64


def carry_out(survey: Survey, data: QueryDict, *, by: User) -> Outcome:
    """Save fields, and do what the request asks for.

    Raises FieldsChanged, ChangeConflict, CommandRefused, LimitReached and AlreadyDone.
    """
    outcome = Outcome(data.get("at", ""))
    token = data.get("token", "")[:LONGEST_TOKEN]
    refuse_twice(survey, token)
    save_fields(survey, data, by=by)
    save_rules(survey, data, outcome, by=by)
    if data.get(FIELD + str(Address("survey", outcome.at, "kind"))) == GRID_KIND:
        # It was one choice when it was shown, so it is a statement by now.
        sheet = load_book(survey).sheet("survey")
        outcome.at = grid_around(sheet, outcome.at) or outcome.at
        outcome.focus = "label"
    verb, _colon, argument = data.get("act", "").partition(":")
    if not verb:
        return outcome
    if verb in ("undo", "redo"):
        if verb == "redo":
            change = redo(survey, by=by, token=token)
        else:
            # A message offers to undo the change that it is about, and no other one.
            number = int(argument) if argument.isdecimal() else None
            change = undo(survey, by=by, token=token, number=number)
        outcome.message = UNDONE[verb](change is not None)
        if change is not None:
            outcome.at = row_after_undo(survey, change, outcome.at)
        return outcome
    act = ACTS.get(verb)
    if act is None:
        raise CommandRefused(_("This can’t be done."))

    about = {"key": argument or outcome.at, "token": token}

    def command(book: DraftBook) -> None:
        act(book, argument, data, outcome)
        # For the reply to a request that comes twice.
        about.update(at=outcome.at, focus=outcome.focus)

    change_draft(survey, command, action=verb, by=by, about=about)
    return outcome


UNDONE: Mapping[str, Callable[[bool], str]] = {
    "undo": lambda done: _("Undone.") if done else _("There is nothing to undo."),
    "redo": lambda done: _("Done again.") if done else _("There is nothing to redo."),
}


# Acts. Each gets the part after its colon, which is the key of a row as a rule.

Act = Callable[[DraftBook, str, QueryDict, Outcome], None]


def _add(book: DraftBook, kind: str, data: QueryDict, outcome: Outcome) -> None:
    after = data.get("after") or outcome.at
    # What is selected may be deleted meanwhile.
    if after not in {row.key for row in book.sheet("survey").rows}:
        after = last_row(book)
    empty = "" if kind in ("page", EMPTY_KIND) else untouched_question(book, after)
    after = empty or after
    if kind == "page":
        question = add_page(book, after=after)
        # The title of the page is written first.
        outcome.at = groups_around(book.sheet("survey"), question)[-1].key
    elif kind == "grid":
        inner = add_grid(book, after=place_for(book, after))
        outcome.at = groups_around(book.sheet("survey"), inner)[-1].key
    else:
        if kind not in KINDS:
            raise CommandRefused(_("Choose a type from the list."))
        text = "text" if kind == LONG_TEXT else kind
        outcome.at = add_question(book, after=place_for(book, after), kind=text)
        if kind == LONG_TEXT:
            row = book.sheet("survey").row(outcome.at)
            write_kind(book, row, LONG_TEXT)
    if empty:
        book.delete(book.sheet("survey"), [empty])
    outcome.focus = "label"


def _delete(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    sheet = book.sheet("survey")
    span = span_of(sheet, key)
    rows = sheet.rows[span.start : span.end + 1]
    questions = [row for row in rows if kind_of(sheet, row) not in ("begin", "end")]
    names = {sheet.value(row, "name") for row in rows} - {""}
    readers = dependents_of(book, names) if names else []
    neighbour = _neighbour(book, key)
    if outcome.at in {row.key for row in rows}:
        outcome.at = neighbour
    delete_rows(book, key)
    outcome.message = ngettext(
        "%(count)s question is deleted.",
        "%(count)s questions are deleted.",
        len(questions),
    ) % {"count": len(questions)}
    outcome.offers_undo = True
    outcome.readers = readers_of(book, readers)
    outcome.readers_reason = _("These questions read it in their rules or texts:")


def _neighbour(book: DraftBook, key: str) -> str:
    """Return the row to select when this one is gone."""
    sheet = book.sheet("survey")
    span = span_of(sheet, key)
    rows = [*sheet.rows[span.end + 1 :], *reversed(sheet.rows[: span.start])]
    for row in rows:
        if row.cells and kind_of(sheet, row) not in ("begin", "end", "metadata"):
            return row.key
    return ""


def _duplicate(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    outcome.at = duplicate_rows(book, key)
    outcome.focus = "label"
    outcome.message = _("Copied.")


def _step(move: Callable[[DraftBook, str], bool], at_end: Callable[[], str]) -> Act:
    def act(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
        before = group_of(book, key)
        if move(book, key):
            say_moved(book, key, before, outcome)
        else:
            outcome.message = at_end()

    return act


def _place(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    after = data.get("after", "")
    into = after.startswith("into:")
    before = group_of(book, key)
    moves.place_below(book, key, after.removeprefix("into:"), into=into)
    say_moved(book, key, before, outcome)


def _wrap(book: DraftBook, keys: str, data: QueryDict, outcome: Outcome) -> None:
    rows = [key for key in keys.split(",") if key]
    if not rows:
        raise CommandRefused(_("This can’t be done."))
    outcome.at = wrap_page(book, rows)
    outcome.focus = "label"


def _group(wrap: Callable[[DraftBook, str], str]) -> Act:
    """Return an act that makes a group, whose text is written next."""

    def act(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
        outcome.at = wrap(book, key)
        outcome.focus = "label"

    return act


def _section(book: DraftBook, page: str, data: QueryDict, outcome: Outcome) -> None:
    section = begin_section(book, page)
    # A section has no panel of its own: its title is among the page's settings.
    outcome.at = page
    outcome.focus = f"survey:{section}:label"


def _unwrap(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    inner = unwrap(book, key)
    if outcome.at == key:
        outcome.at = inner
    outcome.message = _("What was in it is still there.")
    outcome.offers_undo = True


def _paste_questions(
    book: DraftBook, argument: str, data: QueryDict, outcome: Outcome
) -> None:
    """Insert a pasted text as questions, in the place of an empty question."""
    sheet = book.sheet("survey")
    after = outcome.at
    if after not in {row.key for row in sheet.rows}:
        after = last_row(book)
    empty = untouched_question(book, after) or unwritten_question(book, after)
    place = place_for(book, empty or after)
    inserted = insert_pasted(book, data, after=place)
    if empty:
        delete_rows(book, empty)
    outcome.at = inserted.key
    outcome.message = ngettext(
        "%(count)s question is inserted.",
        "%(count)s questions are inserted.",
        inserted.questions,
    ) % {"count": inserted.questions}
    outcome.offers_undo = True


# Options


def _option_add(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    """Add an option below one, or to the list of a question (`in:` and its key)."""
    choices = book.sheet("choices")
    languages = Fields(book).languages[:1]
    if key.startswith("in:"):
        option_set = _list_of(book, key.removeprefix("in:"))
        [made] = add_options(book, option_set, languages=languages)
    else:
        option_set = choices.value(choices.row(key), "list")
        [made] = add_options(book, option_set, after=key, languages=languages)
    outcome.focus = f"choices:{made}:label"


def _list_of(book: DraftBook, key: str) -> str:
    sheet = book.sheet("survey")
    row = sheet.row(key)
    if kind_of(sheet, row) == "begin":
        row = sheet.rows[sheet.index(key) + 1]
    return parse_type(sheet.value(row, "type")).option_set


def _option_delete(
    book: DraftBook, key: str, data: QueryDict, outcome: Outcome
) -> None:
    choices = book.sheet("choices")
    keys = [
        row.key for row in options_of(book, choices.value(choices.row(key), "list"))
    ]
    place = keys.index(key)
    if len(keys) == 1:
        raise CommandRefused(_("A question needs at least one option."))
    neighbour = keys[place - 1] if place else keys[1]
    book.delete(choices, [key])
    outcome.focus = f"choices:{neighbour}:label"
    outcome.message = _("The option is deleted.")
    outcome.offers_undo = True


def _option_step(step: int) -> Act:
    def act(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
        if move_option(book, key, step):
            outcome.message = _("Moved.")
        outcome.focus = f"choices:{key}:label"

    return act


def _option_place(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    place_option(book, key, data.get("after", ""))
    outcome.message = _("Moved.")


def _options_paste(
    book: DraftBook, key: str, data: QueryDict, outcome: Outcome
) -> None:
    outcome.focus, outcome.message = paste_into_options(
        book,
        key,
        data.get("text", ""),
        languages=_pasted_languages(book, data),
        replaces="replaces" in data,
    )
    outcome.offers_undo = True


def _pasted_languages(book: DraftBook, data: QueryDict) -> list[Language]:
    """Return the language of the field that is pasted into, and that beside it."""
    known = {language.code: language for language in Fields(book).languages}
    first = data.get("language", "") or next(iter(known))
    shown = [*dict.fromkeys((first, data.get("second", "")))]
    pasted = data.get("pasted", "")
    codes = shown[shown.index(pasted) :] if pasted in shown else shown
    return [known[code] for code in codes if code in known] or [*known.values()][:1]


def _own_options(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    """Give a question, or all rows of a grid, a list of their own."""
    sheet = book.sheet("survey")
    key = grid_around(sheet, key) or key
    if kind_of(sheet, sheet.row(key)) != "begin":
        copy_option_set(book, key)
    else:
        first, *rest = keys_of(sheet, span_of(sheet, key))[1:-1]
        name = copy_option_set(book, first)
        for row in rest:
            kind = parse_type(value_of(book, sheet.row(row), "type")).kind
            set_kind(book, row, kind, option_set=name)
    outcome.message = _("These options are now of this question only.")


def _use_options(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    """Let a question, or all rows of a grid, use a list that is there."""
    sheet = book.sheet("survey")
    option_set = data.get("list", "")
    if not options_of(book, option_set):
        raise CommandRefused(_("Choose a list of options."))
    key = grid_around(sheet, key) or key
    keys = [key]
    if kind_of(sheet, sheet.row(key)) == "begin":
        keys = keys_of(sheet, span_of(sheet, key))[1:-1]
    for row in keys:
        kind = parse_type(value_of(book, sheet.row(row), "type")).kind
        set_kind(book, row, kind, option_set=option_set)


def _ready_options(
    book: DraftBook, ready: str, data: QueryDict, outcome: Outcome
) -> None:
    fill_ready(book, _list_of(book, outcome.at), ready)


# Rows of a grid


def _row_add(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    """Add a statement below one, or at the end of a grid, like the one before."""
    sheet = book.sheet("survey")
    if kind_of(sheet, sheet.row(key)) == "begin":
        key = keys_of(sheet, span_of(sheet, key))[-2]
    type_ = parse_type(value_of(book, sheet.row(key), "type"))
    made = add_question(book, after=key, kind=type_.kind, option_set=type_.option_set)
    outcome.focus = f"survey:{made}:label"


def _row_delete(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    neighbour = _neighbour(book, key)
    at = outcome.at
    _delete(book, key, data, outcome)
    outcome.at = (
        at if at in {row.key for row in book.sheet("survey").rows} else neighbour
    )
    outcome.focus = f"survey:{neighbour}:label"


def _row_step(move: Callable[[DraftBook, str], bool]) -> Act:
    def act(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
        sheet = book.sheet("survey")
        siblings, _parent = moves.siblings_of(sheet, key)
        place = [row.key for row in siblings].index(key)
        edge = 0 if move is moves.move_up else len(siblings) - 1
        if place != edge and move(book, key):
            outcome.message = _("Moved.")
        outcome.focus = f"survey:{key}:label"

    return act


def _rows_paste(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
    outcome.focus, outcome.message = paste_into_grid(
        book, key, data.get("text", ""), languages=_pasted_languages(book, data)
    )
    outcome.offers_undo = bool(outcome.message)


def _still_right(
    book: DraftBook, address: str, data: QueryDict, outcome: Outcome
) -> None:
    """Say of a translation that it fits the new original as it is."""
    fields, parsed = Fields(book), Address.parse(address)
    fields.write(parsed, fields.read(parsed))
    outcome.focus = address.rpartition(":")[0]


def _language(book: DraftBook, token: str, data: QueryDict, outcome: Outcome) -> None:
    token = token or data.get("new_language", "")
    known = language_of(token)
    # Under its own name, as respondents look for it, unless another one is given.
    if known and "(" not in token and (native := language_of(known.code)):
        token = f"{capfirst(native.name)} ({native.code})"
    language = add_language(book, token)
    outcome.message = _("%(language)s is added.") % {"language": language.name}


# The question bank


def _bank_insert(book: DraftBook, how: str, data: QueryDict, outcome: Outcome) -> None:
    after = place_for(book, data.get("after") or outcome.at or last_row(book))
    outcome.at, outcome.message = bank.insert_from_bank(
        book, data.getlist("question"), after=after, is_locked=how == "locked"
    )


def _bank_row(change: Callable[[DraftBook, str], str]) -> Act:
    def act(book: DraftBook, key: str, data: QueryDict, outcome: Outcome) -> None:
        outcome.message = change(book, key)
        outcome.offers_undo = True

    return act


ACTS: Mapping[str, Act] = {
    "add": _add,
    "delete": _delete,
    "duplicate": _duplicate,
    "up": _step(moves.move_up, lambda: _("It is the first already.")),
    "down": _step(moves.move_down, lambda: _("It is the last already.")),
    "place": _place,
    "wrap": _wrap,
    "heading": _group(wrap_in_heading),
    "grid": _group(wrap_in_grid),
    "section": _section,
    "unwrap": _unwrap,
    "option-add": _option_add,
    "option-delete": _option_delete,
    "option-up": _option_step(-1),
    "option-down": _option_step(1),
    "option-place": _option_place,
    "options-paste": _options_paste,
    "own-options": _own_options,
    "use-options": _use_options,
    "ready-options": _ready_options,
    "row-add": _row_add,
    "row-delete": _row_delete,
    "row-up": _row_step(moves.move_up),
    "row-down": _row_step(moves.move_down),
    "rows-paste": _rows_paste,
    "language": _language,
    "paste-questions": _paste_questions,
    "still-right": _still_right,
    "bank-insert": _bank_insert,
    "unlock": _bank_row(bank.unlock),
    "restore-bank": _bank_row(bank.restore),
    "bank-version": _bank_row(lambda book, key: bank.restore(book, key, is_last=True)),
}
