"""Texts leave for a translator as a file, and come back as one change."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook

from survey.instrument.drafts.commands import (
    CommandRefused,
    add_language,
    languages_of,
    remove_language,
)
from survey.instrument.drafts.drafting import refresh_rows
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import change_draft, load_book, undo
from survey.instrument.drafts.text_files import (
    TextFile,
    UnreadableTexts,
    apply_texts,
    as_csv,
    as_xlsx,
    check_texts,
    read_table,
    table_of,
)
from survey.instrument.drafts.texts import places_of, save_text, texts_in
from survey.instrument.drafts.workbook import ChangeConflict
from survey.instrument.drafts.xliff import as_xliff, is_xliff, read_xliff
from survey.instrument.xlsform.languages import ENGLISH, Language
from survey.tests.console.test_surveys import ROWS, draft_of

pytestmark = pytest.mark.django_db

SPANISH = Language("es", "Español")
KINDS = ("csv", "xlsx", "xliff-1.2", "xliff-2.0")
PIPED = "Is your ${pet} older than ${age}, ${pet} lover?"
PIPED_ES = "¿Tiene su ${age} años o más, ${pet}, ${pet}?"


@pytest.fixture
def draft(staff):
    rows = [[*row] for row in ROWS]
    rows.insert(4, ["text", "older", PIPED, PIPED_ES, None, None, None])
    return draft_of(rows=rows)


def reading_of(draft):
    draft.refresh_from_db(fields=["last_change"])
    return read_rows_of(draft)


def written(draft, kind, languages=(SPANISH,)) -> bytes:
    reading = reading_of(draft)
    if kind == "csv":
        return as_csv(table_of(reading, languages))
    if kind == "xlsx":
        return as_xlsx(table_of(reading, languages))
    return as_xliff(draft, reading, languages, kind.removeprefix("xliff-"))


def checked(draft, content: bytes):
    reading = reading_of(draft)
    read = read_xliff if is_xliff(content) else read_table
    return check_texts(reading.book, read(content, ENGLISH), places_of(reading))


def apply(draft, content: bytes, by) -> int:
    changes = checked(draft, content).changes
    texts = [(change.read, change.was) for change in changes]
    return apply_texts(survey=draft, texts=texts, by=by)


def text_of(draft, name, language=SPANISH):
    [text] = [row for row in texts_in(load_book(draft), language) if row.name == name]
    return text


def save(draft, name, text, by, code="en"):
    language = ENGLISH if code == "en" else SPANISH
    row = text_of(draft, name, language)
    save_text(
        survey=draft,
        sheet=row.sheet,
        key=row.key,
        field=row.field,
        code=code,
        text=text,
        seen=row.text,
        by=by,
    )


def replaced(content: bytes, old: str, new: str) -> bytes:
    """Translate in a file of any kind."""
    if not content.startswith(b"PK"):
        assert old.encode() in content
        return content.replace(old.encode(), new.encode())
    book = load_workbook(io.BytesIO(content))
    for row in book.active.iter_rows():
        for cell in row:
            if cell.value == old:
                cell.value = new
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_a_translated_file_becomes_one_change_that_can_be_undone(draft, staff, kind):
    content = written(draft, kind)
    content = replaced(content, "¿Qué mascota?", "¿Cuál mascota?")
    content = replaced(content, "Gato", "Gatito")
    check = checked(draft, content)
    assert check.problems == []
    assert [(change.was, change.read.text) for change in check.changes] == [
        ("¿Qué mascota?", "¿Cuál mascota?"),
        ("Gato", "Gatito"),
    ]
    assert check.changes[0].place == "Page 1: Which pet?"
    assert check.changes[1].place == "Page 1: Which pet?, option"

    assert apply(draft, content, staff.state) == 2
    assert text_of(draft, "pet").text == "¿Cuál mascota?"
    assert draft.changes.count() == 1
    refresh_rows(draft)
    assert draft.items.get(name="pet").label["es"] == "¿Cuál mascota?"

    undo(draft, by=staff.state)
    assert text_of(draft, "pet").text == "¿Qué mascota?"
    assert text_of(draft, "pets cat").text == "Gato"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_changes_changes_nothing(draft, staff, kind):
    check = checked(draft, written(draft, kind))
    assert (check.changes, check.problems) == ([], [])
    # All that are translated: the title is not.
    assert check.unchanged == 6
    assert apply(draft, written(draft, kind), staff.state) == 0
    assert not draft.changes.exists()


@pytest.mark.parametrize("kind", ["csv", "xlsx", "xliff-1.2"])
def test_all_languages_are_in_one_file(draft, staff, kind):
    french = change_draft(
        draft, lambda book: add_language(book, "fr"), action="language", by=staff.state
    )
    content = written(draft, kind, [SPANISH, french])
    check = checked(draft, content)
    assert (check.changes, check.problems) == ([], [])
    assert {row.code for row in languages_of(load_book(draft))} == {"en", "es", "fr"}
    content = replaced(content, "¿Qué mascota?", "¿Cuál mascota?")
    assert [change.language.code for change in checked(draft, content).changes] == [
        "es"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_file_says_of_another_original_is_refused(draft, staff, kind):
    content = replaced(written(draft, kind), "¿Qué mascota?", "¿Cuál mascota?")
    save(draft, "pet", "Which animal?", staff.state)
    check = checked(draft, content)
    assert check.changes == []
    [problem] = check.problems
    assert "changed since the download. It is now: Which animal?" in problem.reason


def test_a_draft_that_changes_after_the_check_is_left_alone(draft, staff):
    content = replaced(written(draft, "csv"), "¿Qué mascota?", "¿Cuál mascota?")
    changes = checked(draft, content).changes
    save(draft, "pet", "¿Y la mascota?", staff.state, code="es")
    with pytest.raises(ChangeConflict, match="meanwhile"):
        apply_texts(
            survey=draft,
            texts=[(change.read, change.was) for change in changes],
            by=staff.state,
        )
    assert text_of(draft, "pet").text == "¿Y la mascota?"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("¿Qué mascota?", "¿Qué ${age}?", "Remove ${age}"),
        (PIPED_ES, "¿Tiene su ${age} años o más?", "Add ${pet}"),
        ("¿Qué mascota?", "¿Qué\u200b?", "cannot be seen"),
        ("¿Qué mascota?", "¿${nobody}?", "There is no question ${nobody}"),
    ],
)
def test_wrong_translations_are_refused_and_the_others_taken(draft, old, new, reason):
    content = replaced(written(draft, "xlsx"), old, new)
    check = checked(draft, replaced(content, "Gato", "Gatito"))
    [problem] = check.problems
    assert reason in problem.reason and problem.row > 1
    assert [change.read.text for change in check.changes] == ["Gatito"]


def test_unknown_keys_and_languages_are_refused(draft):
    table = [
        [
            "key",
            "place",
            "original (en)",
            "Español (es)",
            "Deutsch (de)",
            "English (en)",
        ],
        ["survey-gone-label", "", "Gone", "Ido", "", ""],
        ["", "", "", "Perdido", "Katze", "Lost"],
    ]
    reasons = [problem.reason for problem in checked(draft, as_csv(table)).problems]
    assert reasons[0].startswith("There is no text with the key survey-gone-label")
    assert any("no texts in this language (de)" in reason for reason in reasons)
    assert any("English is the first language" in reason for reason in reasons)
    assert len(reasons) == 4


def test_a_column_without_a_language_is_named(draft):
    content = written(draft, "csv").replace(b"place", b"remarks")
    [problem] = checked(draft, content).problems
    assert "“remarks” names no language" in problem.reason


def test_a_text_that_is_there_twice_is_taken_once(draft):
    rows = list(table_of(reading_of(draft), [SPANISH]))
    check = checked(draft, as_csv([*rows, rows[2]]))
    assert [problem.reason for problem in check.problems] == [
        "This text is in the file twice."
    ]


def test_blanks_and_order_make_no_change(draft):
    header, *rows = table_of(reading_of(draft), [SPANISH])
    order = [3, 0, 2, 1]
    shuffled = [[row[n] for n in order] for row in [header, *reversed(rows)]]
    for row in shuffled[1:]:
        row[0] = f"  {row[0].replace(' ', '  ')} \r\n" if row[0] else ""
    text = "\r".join(";".join(f'"{cell}"' for cell in row) for row in shuffled)
    check = checked(draft, text.encode("utf-16"))
    assert (check.changes, check.problems, check.unchanged) == ([], [], 6)


def test_cells_that_look_like_formulas_come_back_as_they_were(draft, staff):
    save(draft, "pet", "=1+1", staff.state, code="es")
    for kind in ("csv", "xlsx"):
        content = written(draft, kind)
        assert kind == "xlsx" or b"'=1+1" in content
        assert checked(draft, content).changes == []


def test_blank_translations_delete_nothing(draft):
    check = checked(draft, replaced(written(draft, "xlsx"), "Gato", ""))
    assert (check.changes, check.problems) == ([], [])


def test_names_are_protected_as_tags(draft):
    text = written(draft, "xliff-1.2").decode()
    [unit] = [unit for unit in text.split("<trans-unit")[1:] if "older than" in unit]
    # In the translation they have another order, and the same numbers.
    assert re.findall(r'<x id="(\d)"[^>]*equiv-text="\${(\w+)}"', unit) == [
        *(("1", "pet"), ("2", "age"), ("3", "pet")),
        *(("2", "age"), ("1", "pet"), ("3", "pet")),
    ]
    unit = unit.partition("<note>")[0]
    assert "${" not in re.sub(r"<[^>]*>", "", unit)
    # Tools that drop attributes keep the numbers.
    target = text.index("<target", text.index("older than"))
    bare = text[:target] + re.sub(r' (ctype|equiv-text)="[^"]*"', "", text[target:])
    assert bare != text
    check = checked(draft, bare.encode())
    assert (check.changes, check.problems) == ([], [])


@pytest.mark.parametrize("kind", ["xliff-1.2", "xliff-2.0"])
def test_a_tag_that_was_lost_or_made_up_is_refused(draft, kind):
    text = written(draft, kind).decode()
    start = text.index("<target", text.index("older than"))
    end = text.index("</target>", start)
    target = text[start:end]
    lost = re.sub(r"<(x|ph) [^>]*/>", "", target, count=1)
    name = "x" if "<x " in target else "ph"
    for changed, reason in (
        (lost, "Add ${age}"),
        (f'{target}<{name} id="9"/>', "a tag that the original does not have"),
        (f"{target}<b>bold</b>", "a tag that the original does not have"),
    ):
        check = checked(draft, (text[:start] + changed + text[end:]).encode())
        assert [reason in problem.reason for problem in check.problems] == [True]
        assert check.changes == []


def omegat(text: str) -> str:
    """Write a file as OmegaT does: in lines, with tags around words."""
    text = re.sub(r"(<target[^>]*>)([^<]*)", r"\1\n      \2\n      ", text)
    return text.replace("mascota", '<g id="5">mascota</g>').replace("\n", "\r\n")


def weblate(text: str) -> str:
    """Write a file as Weblate does: another prefix, no notes, units in any order."""
    text = re.sub(r"<note>.*?</note>", "", text, flags=re.DOTALL)
    head, *units = re.split(r"(?=<trans-unit)", text)
    last, foot = units[-1].split("</body>")
    units = sorted([*units[:-1], last], reverse=True)
    text = head + "".join(units) + "</body>" + foot
    text = re.sub(r"<(/?)(?=[a-z])", r"<\1xlf:", text)
    return text.replace("xmlns=", "xmlns:xlf=")


@pytest.mark.parametrize("tool", [omegat, weblate])
def test_files_of_translators_tools_are_read(draft, staff, tool):
    content = tool(written(draft, "xliff-1.2").decode()).encode()
    check = checked(draft, content)
    assert (check.changes, check.problems, check.unchanged) == ([], [], 6)
    assert apply(draft, replaced(content, "Gato", "Gatito"), staff.state) == 1
    assert text_of(draft, "pets cat").text == "Gatito"


@pytest.mark.parametrize("version", ["1_2", "2_0"])
def test_files_that_the_translate_toolkit_wrote_are_read(draft, staff, version):
    """Translate Toolkit 3.20.4, the library of Weblate, read ours and wrote these."""
    name = f"translate_toolkit_{version}.xlf"
    content = (Path(__file__).parent / "translated" / name).read_bytes()
    check = checked(draft, content)
    [change] = check.changes
    assert (change.was, change.read.text, check.problems) == ("Gato", "Gatito", [])
    assert check.unchanged == 5
    apply(draft, content, staff.state)
    assert text_of(draft, "pets cat").text == "Gatito"
    assert text_of(draft, "older").text == PIPED_ES


def test_segments_of_a_divided_text_are_joined(draft):
    text = written(draft, "xliff-2.0").decode()
    divided = text.replace(
        "<source>Which pet?</source><target>¿Qué mascota?</target></segment>",
        "<source>Which</source><target>¿Qué</target></segment>"
        "<ignorable><source> </source></ignorable>"
        "<segment><source>pet?</source><target>animal?</target></segment>",
    )
    assert divided != text
    [change] = checked(draft, divided.encode()).changes
    assert change.read.text == "¿Qué animal?"
    half = divided.replace("<target>animal?</target>", "")
    [problem] = checked(draft, half.encode()).problems
    assert "Only a part" in problem.reason


def test_a_translator_confirms_a_text_whose_original_changed(draft, staff):
    save(draft, "pet", "Which pet now?", staff.state)
    assert text_of(draft, "pet").is_stale
    for kind in ("xliff-1.2", "xliff-2.0"):
        text = written(draft, kind).decode()
        assert checked(draft, text.encode()).changes == []
        state = "needs-review-translation" if kind == "xliff-1.2" else "initial"
        final = text.replace(f'state="{state}"', 'state="final"')
        assert [change.was for change in checked(draft, final.encode()).changes] == [
            "¿Qué mascota?"
        ]
    assert apply(draft, final.encode(), staff.state) == 1
    assert not text_of(draft, "pet").is_stale


BOMB = """<?xml version="1.0"?>
<!DOCTYPE xliff [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<xliff version="1.2"><file>&b;</file></xliff>"""
OUTSIDE = """<?xml version="1.0"?>
<!DOCTYPE xliff [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<xliff version="1.2"><file>&a;</file></xliff>"""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (BOMB, "document type or entities"),
        (OUTSIDE, "document type or entities"),
        ("<xliff", "damaged or cut off in line 1"),
        ('<xliff version="3.0"/>', "Only XLIFF 1.2 and 2.0"),
        ("<xliff version='1.2'>" + "<g>" * 40, "more elements"),
        ("<a><xliff version='1.2'/></a>", "not an XLIFF"),
        ('<?xml version="1.0" encoding="klingon"?><xliff/>', "encoding"),
        ("name,text\na,b\n", "needs the columns"),
        ("", "needs the columns"),
        ('key,original,es\n"a,b', "The CSV file is damaged"),
        ("%PDF-1.7", "This is a PDF."),
        ("{}", "JSON"),
        ("key,original,es,Spanish\n", "Two columns are in"),
    ],
)
def test_files_that_cannot_be_read_are_refused_with_a_reason(content, reason, draft):
    with pytest.raises(UnreadableTexts, match=reason):
        checked(draft, content.encode())


def test_a_file_in_another_language_is_refused(draft):
    text = written(draft, "xliff-1.2").decode()
    for changed, reason in (
        (text.replace('source-language="en"', 'source-language="fr"'), "(fr)"),
        (text.replace(' target-language="es"', ""), "does not name the language"),
        (text.replace('target-language="es"', 'target-language="de"'), "(de)"),
    ):
        check = checked(draft, changed.encode())
        assert [reason in problem.reason for problem in check.problems] == [True]
        assert check.changes == []


def test_a_workbook_of_a_person_is_read_whatever_its_first_sheet(draft):
    book = Workbook()
    book.active.title = "Remarks"
    book.active.append(["Please be quick"])
    sheet = book.create_sheet("Texts")
    for row in table_of(reading_of(draft), [SPANISH]):
        sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    assert checked(draft, file.getvalue()).unchanged == 6


def test_a_language_is_removed_and_brought_back(draft, staff):
    before = load_book(draft)
    change_draft(
        draft,
        lambda book: remove_language(book, "es"),
        action="remove_language",
        by=staff.state,
    )
    book = load_book(draft)
    assert [language.code for language in languages_of(book)] == ["en"]
    assert "Gato" not in str(book.sheets)
    undo(draft, by=staff.state)
    assert load_book(draft).sheets == before.sheets


def test_the_first_language_stays(draft):
    with pytest.raises(CommandRefused, match="can’t be removed"):
        remove_language(load_book(draft), "en")
    with pytest.raises(CommandRefused, match="no longer"):
        remove_language(load_book(draft), "de")


def test_an_added_language_is_undone_unless_it_has_texts(draft, staff):
    def add():
        change_draft(
            draft,
            lambda book: add_language(book, "fr"),
            action="language",
            by=staff.state,
        )

    add()
    assert len(languages_of(load_book(draft))) == 3
    undo(draft, by=staff.state)
    assert len(languages_of(load_book(draft))) == 2
    add()
    row = text_of(draft, "pet", Language("fr", "français"))
    save_text(
        survey=draft,
        sheet=row.sheet,
        key=row.key,
        field=row.field,
        code="fr",
        text="Quel animal ?",
        seen="",
        by=staff.dana,
    )
    with pytest.raises(ChangeConflict):
        undo(draft, by=staff.state)
    assert text_of(draft, "pet", Language("fr", "français")).text == "Quel animal ?"


def test_an_empty_file_of_texts_changes_nothing(draft):
    reading = reading_of(draft)
    check = check_texts(reading.book, TextFile(), places_of(reading))
    assert (check.changes, check.problems, check.unchanged) == ([], [], 0)


def test_letters_of_another_code_page_do_not_become_other_letters(draft):
    """Excel writes a CSV file in the code page of its computer."""
    rows = "key,original (en),Español (es),العربية (ar)\nr3,Which pet?,¿Qué?,أي حيوان\n"
    for encoding, languages in (("utf-8", {"es", "ar"}), ("cp1256", set())):
        text = rows if encoding == "utf-8" else rows.replace("ñ", "n").replace("¿", "")
        file = read_table(text.encode(encoding), ENGLISH)
        known = {row.code for row in file.texts}
        assert languages <= known and ("ar" in known) == (encoding == "utf-8")
    assert "Save it as “CSV UTF-8”" in file.refused[0]
    # Spanish is in the code page that Excel uses in the Americas.
    latin = "key,original (en),Español (es)\nr3,Which pet?,¿Qué mascota?\n"
    assert read_table(latin.encode("cp1252"), ENGLISH).texts[0].text == "¿Qué mascota?"


def test_the_answers_of_a_grid_stand_above_its_statements(staff):
    head = ["type", "name", "label::English (en)", "label::Español (es)", "appearance"]
    rows = [
        head,
        ["begin group", "grid", "How much?", "", "table-list"],
        ["select_one much", "first", "First?", "", ""],
        ["select_one much", "second", "Second?", "", ""],
        ["end group", "", "", "", ""],
        ["select_one much", "third", "Third?", "", ""],
    ]
    choices = [["list_name", "name", "label::English (en)"], ["much", "1", "A lot"]]
    draft = draft_of(rows=rows, choices=choices)
    reading = reading_of(draft)
    texts = texts_in(reading.book, SPANISH, places_of(reading))
    assert [text.original for text in texts if text.sheet != "settings"] == [
        *("How much?", "A lot", "First?", "Second?", "Third?")
    ]
    [answer] = [text for text in texts if text.sheet == "choices"]
    assert answer.place == "Page 1: How much?, option"
