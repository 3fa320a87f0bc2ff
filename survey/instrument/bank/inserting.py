"""Put questions of the bank into a draft, unlock and restore them: commands.

`store.change_draft` runs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from django.utils.translation import gettext as _

from survey.instrument.bank.content import (
    LOCKED_CELLS,
    LOCKED_TEXTS,
    MARK,
    Content,
    options_by_list,
    texts_of,
)
from survey.instrument.bank.locks import locked_rows
from survey.instrument.definitions.schema import Texts
from survey.instrument.drafts.commands import (
    TABLE_LIST,
    CommandRefused,
    copy_option_set,
    languages_of,
    names_in,
    questions_using,
    text_column,
)
from survey.instrument.drafts.groups import can_be_grid, wrap_rows
from survey.instrument.drafts.measures import SHEET as MEASURES
from survey.instrument.drafts.measures import set_measure_of
from survey.instrument.drafts.names import free_name
from survey.instrument.drafts.renames import rename
from survey.instrument.drafts.workbook import DraftBook, Sheet
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.measures import (
    ESSENTIAL,
    FEWEST_ITEMS,
    MEASURE,
    REVERSED,
)
from survey.instrument.xlsform.types import parse_type
from survey.models import BankQuestion


def insert_questions(
    book: DraftBook,
    questions: Sequence[BankQuestion],
    *,
    after: str,
    is_locked: bool,
) -> list[str]:
    """Insert questions below a row, locked or as copies, and return their keys.

    Statements of one grid that follow each other are a grid again, outside of another.
    Texts in languages that the draft does not have are left out. Raises CommandRefused
    if the bank does not have the draft's first language, or a locked one's name is
    taken.
    """
    survey = book.sheet("survey")
    keys = []
    measured: dict[str, Content] = {}
    for question in questions:
        content: Content = question.content
        name = _name_for(book, content["name"], is_locked=is_locked)
        cells = {survey.column("name"): name, **_cells(book, survey, content)}
        if is_locked:
            cells[survey.column(MARK)] = question.mark
        [after] = book.insert(survey, after, [cells])
        keys.append(after)
        measured[name] = content["measure"]
    for key, question in locked_rows(book).questions.items():
        name = survey.value(survey.row(key), "name")
        measured.setdefault(name, question.content["measure"])
    _join_measures(book, measured)
    _join_grids(book, [*zip(keys, (row.content for row in questions), strict=True)])
    return keys


def _join_grids(book: DraftBook, inserted: Sequence[tuple[str, Content]]) -> None:
    survey = book.sheet("survey")

    def grid_of(row: tuple[str, Content]) -> tuple[dict[str, str], str]:
        key, content = row
        return content.get("stem") or {}, survey.value(survey.row(key), "type")

    for (stem, _type), rows in groupby(inserted, key=grid_of):
        keys = [key for key, _content in rows]
        if stem and can_be_grid(survey, keys[0]):
            grid = wrap_rows(book, keys, "grid", TABLE_LIST)
            book.set_cells(survey, grid, _texts(book, survey, "label", stem))


def unlock_question(book: DraftBook, key: str) -> str:
    """Make a locked question a copy to adapt, and return its new name.

    Trends would take it for the state's question under the same name.
    """
    survey = book.sheet("survey")
    row = survey.row(key)
    if not survey.value(row, MARK):
        raise CommandRefused(_("This question is not locked."))
    name = free_name(f"{survey.value(row, 'name')}_adapted", names_in(book))
    rename(book, key, name)
    book.set_cells(survey, key, {survey.column(MARK): ""})
    option_set = parse_type(survey.value(row, "type")).option_set
    if option_set and len(questions_using(book, option_set)) > 1:
        copy_option_set(book, key)
    return name


def restore_question(book: DraftBook, key: str, question: BankQuestion) -> None:
    """Make a row what the bank has, also another version of the same question.

    Its place, whether it is shown and required, and texts in languages that the bank
    does not have stay.
    """
    content: Content = question.content
    survey = book.sheet("survey")
    row = survey.row(key)
    if survey.value(row, "name") != content["name"]:
        rename(book, key, content["name"])
    blank = {
        number: ""
        for number, column in survey.known.known.items()
        if column.key in LOCKED_CELLS
        or (
            column.key in LOCKED_TEXTS and _has_language(book, column.language, content)
        )
    }
    cells = blank | _cells(book, survey, content)
    book.set_cells(survey, key, {**cells, survey.column(MARK): question.mark})


def left_out(book: DraftBook, questions: Iterable[BankQuestion]) -> list[str]:
    """Name the languages of questions that a draft does not have."""
    codes = {language.code for language in languages_of(book)}
    names = {
        row["code"]: row["name"]
        for question in questions
        for row in question.content["languages"]
    }
    return [name for code, name in names.items() if code not in codes]


def _has_language(book: DraftBook, language: Language | None, content: Content) -> bool:
    code = (language or languages_of(book)[0]).code
    return code in {known["code"] for known in content["languages"]}


def _name_for(book: DraftBook, name: str, *, is_locked: bool) -> str:
    survey = book.sheet("survey")
    taken = {survey.value(row, "name").casefold() for row in survey.rows}
    if not is_locked:
        return free_name(name, names_in(book))
    if name.casefold() in taken:
        raise CommandRefused(
            _(
                "The survey has a question with the name %(name)s already. Rename or"
                " delete that one, or insert a copy."
            )
            % {"name": name}
        )
    return name


def _cells(book: DraftBook, survey: Sheet, content: Content) -> dict[int, str]:
    """Return what the bank says of a row, but for its name."""
    languages = languages_of(book)
    known = [row["code"] for row in content["languages"]]
    first = languages[0]
    if first.code not in known:
        raise CommandRefused(
            _("The state’s question %(name)s has no text in %(language)s.")
            % {"name": content["name"], "language": first.name}
        )
    cells = {survey.column("type"): content["type"]}
    if content["options"]:
        kind, _blank, suffix = content["type"].partition(" ")
        option_set = _list_for(book, content)
        cells = {survey.column("type"): f"{kind} {option_set} {suffix}".strip()}
    for field, text in content["cells"].items():
        cells[survey.column(field)] = text
    for field in LOCKED_TEXTS:
        cells |= _texts(book, survey, field, content["texts"].get(field, {}))
    return cells


def _texts(
    book: DraftBook, sheet: Sheet, field: str, texts: Mapping[str, str]
) -> dict[int, str]:
    return {
        text_column(book, sheet, field, language): texts[language.code]
        for language in languages_of(book)
        if texts.get(language.code)
    }


def _list_for(book: DraftBook, content: Content) -> str:
    """Return a list with these options; a new one if the draft has none.

    Labels that a list does not have yet are written into it.
    """
    choices, languages = book.sheet("choices"), languages_of(book)
    codes = {language.code for language in languages}
    codes &= {row["code"] for row in content["languages"]}
    options = [
        (
            option["value"],
            {code: text for code, text in option["label"].items() if code in codes},
        )
        for option in content["options"]
    ]
    for name, rows in options_by_list(book).items():
        values = [choices.value(row, "name") for row in rows]
        if not name or values != [value for value, _labels in options]:
            continue
        here = [texts_of(choices, row, "label", languages) for row in rows]
        pairs = [*zip(here, [labels for _value, labels in options], strict=True)]
        if all(_fits(texts, labels, languages, codes) for texts, labels in pairs):
            for row, (_texts_here, labels) in zip(rows, pairs, strict=True):
                book.set_cells(choices, row.key, _texts(book, choices, "label", labels))
            return name
    name = free_name(f"{content['name']}_options", names_in(book))
    listed, valued = choices.column("list"), choices.column("name")
    made = [
        {listed: name, valued: value, **_texts(book, choices, "label", labels)}
        for value, labels in options
    ]
    book.insert(choices, choices.rows[-1].key if choices.rows else "", made)
    return name


def _fits(
    here: Texts, labels: Texts, languages: list[Language], codes: Collection[str]
) -> bool:
    """Return whether an option has no label that differs from the bank's."""
    first = languages[0].code
    return here.get(first) == labels.get(first) and all(
        here.get(code, "") in ("", labels.get(code, "")) for code in codes
    )


def _join_measures(book: DraftBook, measured: Mapping[str, Content]) -> None:
    """Let questions count for their measures, if they count for none yet.

    A measure that the draft does not have is made when it has enough questions.
    """
    measures = book.sheet(MEASURES)
    taken = {
        word.removeprefix(REVERSED)
        for row in measures.rows
        for word in measures.value(row, "items").replace(",", " ").split()
    }
    by_measure: dict[str, dict[str, Content]] = {}
    for name, measure in measured.items():
        if measure and name not in taken:
            by_measure.setdefault(measure["name"], {})[name] = measure
    for measure_name, members in by_measure.items():
        names = {measures.value(row, "name") for row in measures.rows}
        if measure_name not in names and len(members) >= FEWEST_ITEMS:
            _add_measure(book, next(iter(members.values())), names)
        for name, measure in members.items():
            set_measure_of(book, name, measure_name, is_reversed=measure["reversed"])


def _add_measure(book: DraftBook, measure: Content, names: Collection[str]) -> None:
    measures = book.sheet(MEASURES)
    theme = measure["theme"]
    rows = []
    if theme and theme["name"] not in names:
        rows.append(_named(book, measures, ESSENTIAL, theme))
    rows.append(
        {
            **_named(book, measures, MEASURE, measure),
            measures.column("essential"): theme["name"] if theme else "",
            measures.column("direction"): measure["direction"],
            measures.column("items"): "",
            measures.column("missing"): measure["missing"],
        }
    )
    book.insert(measures, measures.rows[-1].key if measures.rows else "", rows)


def _named(book: DraftBook, sheet: Sheet, kind: str, entry: Content) -> dict[int, str]:
    return {
        sheet.column("type"): kind,
        sheet.column("name"): entry["name"],
        **_texts(book, sheet, "label", entry["label"]),
        **_texts(book, sheet, "description", entry["description"]),
    }
