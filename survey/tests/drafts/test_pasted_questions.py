"""Pasted questionnaires become the questions that their authors mean."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from survey.instrument.drafts import pasted_lines
from survey.instrument.drafts.pasted_lines import (
    MOST_BYTES,
    MOST_LINES,
    TextTooLong,
    answers_in,
    read_lines,
)
from survey.instrument.drafts.pasted_questions import (
    Block,
    build_blocks,
)
from survey.instrument.drafts.pasted_roles import Role, guess_roles
from survey.instrument.drafts.pasted_translations import translate
from survey.instrument.xlsform.workbook import MAX_TEXT

DOCUMENTS = Path(__file__).parent / "pasted"


def document(name: str) -> str:
    return (DOCUMENTS / f"{name}.txt").read_text(encoding="utf-8")


def read(text: str, **changed: Role) -> list[Block]:
    lines = read_lines(text)
    roles = guess_roles(lines)
    roles |= {int(number.strip("_")): role for number, role in changed.items()}
    return build_blocks(lines, roles)


def outline(blocks: list[Block]) -> list[str]:
    """Return a line for each block: its kind, its text, and what is below."""
    rows = []
    for block in blocks:
        star = "*" if block.is_required else ""
        row = f"{block.kind}{star}: {block.label.text}"
        if block.statements:
            row += " [" + "; ".join(piece.text for piece in block.statements) + "]"
        if block.options:
            row += " (" + " / ".join(piece.text for piece in block.options) + ")"
        rows.append(row)
    return rows


WANTED = {
    "climate_word": [
        "page: Lincoln Middle School – Student Climate Survey",
        "note: Thank you for taking this survey. Your answers are private, and nobody"
        " at school will see them.",
        "page: About you",
        "select_one: What grade are you in? (6th grade / 7th grade / 8th grade)",
        "select_multiple: How do you usually get to school? (Choose all that apply)"
        " (Walk / School bus / Family car / Other:)",
        "page: Feeling safe",
        "select_one*: I feel safe at school."
        " (Strongly disagree / Disagree / Agree / Strongly agree)",
        "long_text: If you do not feel safe, please explain why.",
        "text: How many days were you absent last month?",
    ],
    "boxes_paper": [
        "page: STUDENT SURVEY",
        "text: Name (optional):",
        "select_one: Are you new to this school? (Yes / No)",
        "select_multiple: What do you do after school? Check all that apply."
        " (Sports / Homework / Help at home / Other (please specify))",
        "select_one: How often do you eat breakfast?"
        " (Every day / Some days / Never (skip to question 5))",
        "text: What do you usually eat?",
        "select_one: Is there an adult at school you can talk to?"
        " (Yes / No / Not sure)",
    ],
    "grid_table": [
        "page: Teaching and learning",
        "grid: How much do you agree with each statement?"
        " [My teachers explain things clearly.; My teachers listen to me.;"
        " I get help when I need it.]"
        " (Strongly disagree / Disagree / Agree / Strongly agree)",
        "page: Families",
        "grid: For each item, mark how often it happens."
        " [My family asks about school.; My family reads with me.]"
        " (Never / Sometimes / Often)",
    ],
    "grid_scale_line": [
        "grid: Please say how much you agree."
        " [The building is clean.; The cafeteria food is good.; Rules are fair.]"
        " (Strongly disagree / Disagree / Neutral / Agree / Strongly agree)",
        "integer: How many books did you read this year? (number)",
        "select_one: Do you like reading? (Yes / No)",
        "long_text: Tell us more about your favorite book.",
    ],
    "email_spaced": [
        "note: Hi Dana, here are the questions for the families, please put them"
        " online.",
        "select_one: How satisfied are you with the school's communication?"
        " (Very satisfied / Satisfied / Dissatisfied / Very dissatisfied)",
        "select_one: Which language do you speak at home?"
        " (English / Spanish / Arabic / Other)",
        # One that is for its author to change: a remark says so.
        "select_one: What could we do better? (Thanks, Pat)",
    ],
    "plain_blocks": [
        "note: Staff survey",
        "page: About you",
        "select_one: What is your role? (Teacher / Counselor / Administrator)",
        "select_one: Years at this school (0-2 / 3-5 / 6-10 / More than 10)",
        "long_text: Do you have any comments for the principal?",
        "select_one*: I feel supported by my colleagues (Always / Often / Rarely)",
    ],
    "numbered_statements": [
        "grid: Please circle one number for each statement."
        " [I like coming to school.; I have friends here.; I feel tired in class.]"
        " (Never / Sometimes / Always)",
        "text: What would make school better for you?",
    ],
    "padres_es": [
        "page: Sobre su familia",
        "select_one: ¿En qué grado está su hijo o hija? (Kínder / Primero / Segundo)",
        "select_multiple: ¿Cómo prefiere recibir información? (Marque todas las que"
        " correspondan) (Correo electrónico / Mensaje de texto / Llamada)",
        "select_one*: ¿Se siente bienvenido en la escuela? (Sí / No)",
        "long_text: Si contestó que no, explique por qué.",
        "text: ¿Cuántos hijos tiene en esta escuela?",
        "page: Comentarios",
        "long_text: ¿Algún comentario?",
    ],
    "families_en": [
        "page: About your family",
        "select_one: What grade is your child in? (Kindergarten / First / Second)",
        "select_multiple: How do you prefer to get information? (Check all that apply)"
        " (E-mail / Text message / Phone call)",
        "select_one*: Do you feel welcome at school? (Yes / No)",
        "long_text: If you answered no, please explain why.",
        "text: How many children do you have at this school?",
        "page: Comments",
        "long_text: Any comments?",
    ],
    "students_ar": [
        "page: عن المدرسة",
        "select_one: هل تشعر بالأمان في المدرسة؟ (دائماً / أحياناً / أبداً)",
        "select_multiple: كيف تصل إلى المدرسة؟ (اختر كل ما ينطبق)"
        " (مشياً / بالحافلة / بالسيارة)",
        "text: كم عدد إخوتك في هذه المدرسة؟",
        "select_one: هل تحب المدرسة؟ (نعم / لا)",
        "long_text: اشرح كيف يمكن أن تصبح المدرسة أفضل.",
    ],
    "markdown_docs": [
        "page: Lunch and recess",
        "select_one*: How would you rate the cafeteria food? (1 / 2 / 3 / 4 / 5)",
        "select_one*: How long is your lunch break?"
        " (Less than 20 minutes / 20 - 30 minutes / More than 30 minutes)",
        "select_multiple: Which of these would you like? Select up to two."
        " (A salad bar / Longer lines open / Quieter tables)",
        "page: Anything else",
        "long_text: Describe your perfect recess.",
        "select_one: Do you play sports? (Yes / No)",
        "out: ",
        "text: What is your age?",
    ],
    "printed_form": [
        "select_one*: How old are you? (10 / 11 / 12 or more)",
        "select_multiple*: What do you like? (Math / Art / Other:)",
        "text: Your suggestions",
    ],
    "word_export": [
        "select_one: How are you today? (Good (1) / Bad (2))",
        "select_multiple: Which apply to you? Select all that apply."
        " (I ride the bus (1) / I walk (2))",
        "text: Anything else?",
        "page: ",
        "text: Display This Question:",
        "text: Why good?",
    ],
    "starred": [
        "select_one*: What is your role at the school?"
        " (Student / Teacher / Parent/Guardian / Other (please specify))",
        "select_one: How likely are you to recommend us? (0 / 1 / 2 / 3)",
        "grid*: Please rate each of the following. [Clean; Safe] (Poor / Fair / Good)",
    ],
    "marque_es": [
        "grid: Encuesta de clima escolar"
        " [Me gusta mi escuela.; Mis maestros me ayudan.] (Nunca / A veces / Siempre)",
        "text: ¿Qué cambiarías?",
    ],
    "wrapped_mail": [
        "select_one: Thinking about the last thirty days of school, how often did you"
        " feel that the adults here cared about you?"
        " (Almost never / Once in a while / Sometimes / Almost always)",
        "select_one: Thinking about the bathrooms at school, how clean are they on"
        " most days of the week? (Not clean / Clean)",
        "select_one: Gender: (Girl / Boy / Another / I would rather not say)",
    ],
}


@pytest.mark.parametrize("name", WANTED)
def test_a_document_is_read_as_its_author_means_it(name):
    assert outline(read(document(name))) == WANTED[name]


def test_each_document_has_an_expectation():
    assert {path.stem for path in DOCUMENTS.glob("*.txt")} == WANTED.keys()


@pytest.mark.parametrize("name", WANTED)
def test_every_line_is_in_a_block(name):
    lines = read_lines(document(name))
    blocks = build_blocks(lines, guess_roles(lines))
    assert [line for block in blocks for line in block.lines] == lines


@pytest.mark.parametrize("end", ["\r\n", "\r", "\v", "\u2028"])
def test_all_ends_of_lines_are_read(end):
    text = document("boxes_paper")
    assert outline(read(text.replace("\n", end))) == WANTED["boxes_paper"]


def test_invisible_signs_make_no_difference():
    text = document("students_ar")
    marked = "\u202b" + text.replace("\n", "\u200f\n\u202b").replace(" ", "\xa0")
    assert outline(read(marked)) == WANTED["students_ar"]
    soft = document("climate_word").replace("Feeling", "Feel\xading")
    assert outline(read(soft)) == WANTED["climate_word"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("Yes / No", ("Yes", "No")),
        ("Yes/No", ("Yes", "No")),
        ("1 = Never, 2 = Often", ("Never", "Often")),
        ("5 = Always, 1 = Never", ("5 = Always", "1 = Never")),
        ("Never    Often    Always", ("Never", "Often", "Always")),
        ("☐ Yes ☐ No", ("Yes", "No")),
        ("Yes ☐ No ☐", ("Yes", "No")),
        ("1 2 3 4", ("1", "2", "3", "4")),
        ("a. 0–1   b. 2–3   c. 4 or more", ("0–1", "2–3", "4 or more")),
        ("1 2 4", ()),
        ("He / she is my favorite teacher", ()),
        ("Parent / guardian name:", ()),
        ("Name ______    Date ______", ()),
        ("Yes, often", ()),
    ],
)
def test_answers_in_one_line(line, parts):
    assert answers_in(line) == parts


def test_an_author_may_say_that_a_line_has_several_answers():
    assert answers_in("Yes, often; no", is_certain=True) == ("Yes, often", "no")
    assert answers_in("red, green, blue", is_certain=True) == ("red", "green", "blue")


def test_values_and_numbers_that_do_not_count_up_stay():
    [block] = read("How often?\n7. Always\n9. Never")[:1]
    assert [piece.text for piece in block.options] == ["7. Always", "9. Never"]
    [block] = read("How often?\na) Always\nb) Never")
    assert [piece.text for piece in block.options] == ["Always", "Never"]


def test_an_if_stays_a_text_and_is_named():
    blocks = read(
        "1. Do you ride the bus?\nYes\nNo\nIf no, skip to question 3.\n2. Why?"
    )
    assert [hint.text for hint in blocks[0].hints] == ["If no, skip to question 3."]
    assert "Make a rule of it" in blocks[0].remarks[0]
    assert not blocks[1].remarks


def test_a_role_that_is_changed_changes_the_blocks():
    text = document("email_spaced")
    last = read_lines(text)[-1].number
    blocks = read(text, **{f"_{last}": Role.OUT})
    assert outline(blocks)[-2:] == ["text: What could we do better?", "out: "]
    blocks = read(text, _1=Role.PAGE, _2=Role.OUT)
    assert outline(blocks)[:2] == ["page: Hi Dana,", "out: "]


def test_a_line_goes_on_with_the_one_above():
    text = "1. Which?\n- The first one, which is\nquite long\n- The second one"
    [block] = read(text, _3=Role.MORE)
    assert [piece.text for piece in block.options] == [
        "The first one, which is quite long",
        "The second one",
    ]
    [block] = read(text, _2=Role.MORE, _3=Role.HINT)
    assert block.label.text == "Which? - The first one, which is"
    assert [hint.text for hint in block.hints] == ["quite long"]


def test_a_type_that_is_chosen_goes_before_the_guess():
    lines = read_lines("1. Why?\n2. Which?\nThis\nThat")
    blocks = build_blocks(
        lines, guess_roles(lines), {1: "long_text", 2: "date"}, {1: True}
    )
    assert [block.kind for block in blocks] == ["long_text", "date"]
    assert blocks[0].is_required
    assert not blocks[1].used_options
    assert "not inserted" in blocks[1].remarks[0]


# A second language -----------------------------------------------------------------


def translated(first: str, second: str) -> list[Block]:
    lines = read_lines(first)
    roles = guess_roles(lines)
    blocks = build_blocks(lines, roles)
    return translate(blocks, lines, roles, read_lines(second), "Español")


def test_two_texts_are_paired_line_by_line():
    blocks = translated(document("families_en"), document("padres_es"))
    pairs = {
        piece.text: piece.translation for block in blocks for piece in block.pieces()
    }
    assert pairs["Do you feel welcome at school?"] == (
        "¿Se siente bienvenido en la escuela?"
    )
    assert pairs["Kindergarten"] == "Kínder"
    assert all(pairs.values())
    assert not any("Español" in text for block in blocks for text in block.remarks)


def test_what_has_no_partner_is_named():
    spanish = document("padres_es").replace("2. ¿Cómo", "¿Cómo")
    spanish = spanish.replace("☐ Llamada\n", "☐ Llamada\n☐ Carta\n")
    spanish = spanish.replace("5. ¿Cuántos hijos tiene en esta escuela?\n", "")
    blocks = translated(document("families_en"), spanish + "7. ¿Y su correo?\n")
    by_text = {block.label.text: block for block in blocks}
    several = by_text["How do you prefer to get information? (Check all that apply)"]
    assert several.options[2].translation == "Llamada"
    assert any("“Carta”" in remark for remark in several.remarks)
    missing = by_text["How many children do you have at this school?"]
    assert "Not there in Español." in missing.remarks
    assert by_text["Any comments?"].label.translation == "¿Algún comentario?"
    assert by_text["¿Y su correo?"].is_only_translation


# Hostile texts -----------------------------------------------------------------------


def test_markup_formulas_and_emoji_are_texts():
    text = "1. <b>Bold</b>?\n- =1+1\n- 🙂🏽 yes\n- <script>alert(1)</script>\x00\x1b[0m"
    [block] = read(text)
    assert outline([block]) == [
        "select_one: <b>Bold</b>? (=1+1 / 🙂🏽 yes / <script>alert(1)</script>[0m)"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x" * (MOST_BYTES + 1), "at most 200 KB"),
        ("س" * (MOST_BYTES // 2 + 1), "at most 200 KB"),
        ("x" * (MAX_TEXT + 1), "Line 1 has more than 32,767 characters"),
        ("1. A?\n" + "x\n" * 10_000, "3,000 lines at a time. This text has 10,001"),
    ],
)
def test_too_much_is_said(text, words):
    with pytest.raises(TextTooLong, match=words):
        read_lines(text)


def test_the_longest_text_is_read():
    assert len(read_lines("x" * 60 + "\n" + "a?\n" * (MOST_LINES - 1))) == MOST_LINES


@pytest.mark.parametrize(
    "unit",
    ["_", " ", "? ", "1 = ", "☐", "(", "[ ", "1.", "\t", "a\t", "/ ", ".", "*", "#"]
    + ["x ☐ ", "(?", ") ", "- ", "Q1", "__ ", "Page 1 of ", "all that ", "(number "],
)
def test_a_long_line_is_read_in_linear_time(unit, monkeypatch):
    for limit in ("MOST_BYTES", "MAX_TEXT"):
        monkeypatch.setattr(pasted_lines, limit, 10**6)
    text = "1. " + unit * (150_000 // len(unit)) + "x\n- y"
    start = time.process_time()
    assert read(text)
    # Quadratic time would be minutes.
    assert time.process_time() - start < 20
