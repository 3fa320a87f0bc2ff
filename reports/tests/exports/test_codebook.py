from __future__ import annotations

import html
import re

import pytest
from django.conf import settings
from django.utils import translation
from django.utils.formats import date_format

from reports.tests.exports.conftest import FIRST, HIDE, SKIP, answer, draft, made
from survey.instrument.definitions.corrections import publish_correction, use_correction
from survey.work.files import path_of

pytestmark = pytest.mark.django_db


def codebook_of(export) -> str:
    return path_of(export.codebook_name).read_text()


def section(text: str, name: str) -> str:
    """Return the text about one item, without tags."""
    [part_html] = [
        part
        for part in text.split('<section class="item"')[1:]
        if f"<code>{name}</code></h3>" in part
    ]
    plain = re.sub(r"<[^>]*>", " ", part_html.split("</section>")[0])
    return re.sub(r"\s+", " ", html.unescape(plain))


@pytest.fixture
def answered(staff, fall, spring, enrol):
    answer(enrol(fall, staff.lincoln), {"safe": "2", "pets": "cat dog", "age": SKIP})
    answer(enrol(fall, staff.lincoln), {"safe": "2", "pets": "dog", "age": "14"})
    answer(
        enrol(spring, staff.lincoln, attributes={"track": "b"}),
        {"safe": HIDE, "pets": SKIP, "age": "-99", "far": "far"},
    )
    return fall, spring


def test_items_have_their_labels_values_and_counts(staff, answered):
    text = codebook_of(made(staff.state, *answered))
    assert f"by Groundswell {settings.VERSION}: 3 rows" in text

    safe = section(text, "safe")
    assert "English: I am safe." in safe
    assert "Español: Estoy a salvo." in safe
    assert "One choice. Page 1, School. Versions 2, 1." in safe
    assert "Answered 2, skipped 0, not applicable 1, not reached 0." in safe
    assert "2 Agree De acuerdo 2" in safe
    pets = section(text, "pets")
    assert "cat pets_cat Cat Gato 1" in pets
    assert "dog pets_dog +Dog Perro 2" in pets
    assert "Answered 2, skipped 1" in pets
    assert "not reached 3." in section(text, "last")


def test_labels_of_options_name_the_question_that_they_quote(staff, helped, enrol):
    answer(enrol(helped, staff.lincoln), {"child": "Noor", "helper": "t"})
    text = codebook_of(made(staff.state, helped))
    assert "t ${child}’s teacher Docente de ${child} 1" in section(text, "helper")
    assert "Noor" not in text


def test_items_that_differ_between_versions_are_marked(staff, answered):
    text = codebook_of(made(staff.state, *answered))
    far = section(text, "far")
    assert "differs between versions" in far
    assert "How far?" in far
    assert "How far, in words?" in far
    assert "differs" not in section(text, "comment")


def test_measures_are_listed_with_their_items_and_named_at_each(staff, measured, enrol):
    answer(enrol(measured, staff.lincoln), {"safe": "2", "teen": "1", "hall": "1"})
    text = codebook_of(made(staff.state, measured))
    table = text.split("<h2>Measures</h2>")[1].split("</table>")[0]
    plain = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", table)).split())
    assert "calm Calm school: No pushing. Calma Safe school" in plain
    assert "safe , teen , hall (reversed) -1 3" in plain
    assert "Measure calm ." in section(text, "safe")
    assert "Measure calm , reversed" in section(text, "hall")
    assert "Measure" not in section(text, "age")


def test_a_survey_without_measures_has_no_such_section(staff, answered):
    assert "<h2>Measures</h2>" not in codebook_of(made(staff.state, *answered))


def test_corrected_texts_are_listed_with_both_wordings(staff, fall, answered):
    corrected = [*FIRST[:2], [*FIRST[2][:2], "I feel safe.", *FIRST[2][3:]], *FIRST[3:]]
    correction = publish_correction(
        survey=draft(corrected, "1.1"), corrects=fall.published, by=staff.state
    )
    use_correction(administration=fall, published=correction, by=staff.state)
    export = made(staff.state, *answered)
    text = codebook_of(export)
    assert "version 1 to 1.1" in text
    assert "I am safe." in text.split("Corrected during the survey")[1]
    # Answers before and after the correction have the same item.
    assert "Answered 2, skipped 0" in section(text, "safe")
    assert export.responses == 10


def test_codes_and_columns_are_those_of_the_data_file(staff, answered):
    export = made(staff.state, *answered)
    text = codebook_of(export)
    header = path_of(export.file_name).read_text().splitlines()[0].split(",")
    for name in header:
        assert f"<code>{name}</code>" in text
    # Someone answered -99.
    for code in ("-997", "-998", "-999"):
        assert f"<code>{code}</code>" in text
    assert "<code>-99</code>" not in text


def test_the_codebook_loads_nothing_from_elsewhere(staff, answered):
    text = codebook_of(made(staff.state, *answered))
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "<script" not in text


def test_the_chosen_language_comes_first(staff, answered):
    text = codebook_of(made(staff.state, *answered, language="es"))
    assert text.index("Estoy a salvo.") < text.index("I am safe.")
    assert "<h1>Codebook: Our school</h1>" in text


def test_it_is_in_english_whatever_language_the_user_reads(staff, answered, settings):
    settings.LANGUAGES = [("en", "English"), ("es", "Español")]
    staff.state.language = "es"
    staff.state.save()
    export = made(staff.state, *answered)
    spanish_date = r"\d de \w+ de 20\d\d"
    assert re.search(spanish_date, codebook_of(export)) is None
    with translation.override("es"):
        assert re.search(spanish_date, date_format(export.made_at, "DATE_FORMAT"))


def test_names_are_escaped(staff, fall, answered, enrol):
    answer(enrol(fall, staff.lincoln, attributes={"<b>x</b>": "1"}), {"age": "9"})
    assert "<b>x</b>" not in codebook_of(made(staff.state, fall))
