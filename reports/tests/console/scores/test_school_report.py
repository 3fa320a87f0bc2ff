from __future__ import annotations

import html
import io
import re

import pypdfium2
import pytest
from django.conf import settings
from django.utils import timezone
from PIL import Image
from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE as IMAGE

from accounts.models import AuditEntry, Logo, PlaceSettings, School
from accounts.permissions import Permissions
from accounts.place_settings import Brands
from accounts.tests.logging_in import log_in
from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
    Scoring,
)
from reports.models.scores import FORMAT
from reports.school_report import pdf
from reports.school_report.report import SchoolReports
from reports.scores import scoring
from reports.scores.visible import visible_scores
from reports.scores.words import score_words
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed
from survey.fieldwork.login_cards import fonts
from survey.tests.login_cards.test_fonts import forget_fonts, make_font

pytestmark = pytest.mark.django_db


def report(client, administration, school, query=""):
    return client.get(
        f"/console/results/{administration.pk}/schools/{school.pk}/{query}"
    )


def text_of(response):
    assert response.status_code == 200, response.status_code
    bare = re.sub(r"<svg.*?</svg>|<[^>]+>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", bare)


def hide(administration, level, key, **fields):
    GroupResults.objects.filter(
        administration=administration, level=level, place_id=key, attribute=""
    ).update(**fields)


def test_a_report_compares_a_school_with_its_district_and_the_state(
    client, staff, fall
):
    log_in(client, staff.state)
    page = text_of(report(client, fall, staff.lincoln))
    places = [
        ("school", staff.lincoln.pk),
        ("district", staff.riverside.pk),
        ("state", 0),
    ]
    scores = visible_scores(fall, places)
    school, district, state = (scores[place] for place in places)
    assert "60 of 60 finished (100 %); a report needs 30." in page
    assert school["trust"].reliability > 0.6
    assert (
        f"{school['trust'].score} points of 99: {score_words(school['trust'])}."
        f" Riverside: {district['trust'].score}, All schools: {state['trust'].score}."
    ) in page
    assert f"±{1.96 * round(school['trust'].error, 1):.1f}" in page
    # Schools do not differ in noise, and so not surely in the theme.
    assert school["noise"].band == school["safe"].band == 0
    assert f"Safe school {school['safe'].score} Not rated: schools are too" in page
    assert "Question &lt;3&gt; (reversed)" in page
    assert "Lower scores are better." in page
    assert "50 is the average of “School climate" in page
    assert "How to read this report" in page
    assert "Change over time" not in page


def test_a_report_is_in_a_language_of_the_survey(client, staff, fall):
    log_in(client, staff.dana)
    page = report(client, fall, staff.lincoln, "?language=es")
    text = text_of(page)
    assert "Confianza" in text
    assert "Pregunta &lt;1&gt;" in text
    assert "How to read this report" not in text
    assert 'class="school-report" lang="es"' in page.content.decode()
    assert "Trust" in text_of(report(client, fall, staff.lincoln, "?language=en"))
    response = report(client, fall, staff.lincoln, "?language=fr")
    assert response.status_code == 404


def test_a_report_in_arabic_runs_from_right_to_left(client, staff, survey, fall):
    log_in(client, staff.state)
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=1.5)
    scored(spring)
    Calibration.objects.update(schools_deviation=1.0, people_deviation=0.01)
    page = report(client, spring, staff.lincoln, "?language=ar")
    content = page.content.decode()
    assert 'class="school-report" lang="ar" dir="rtl"' in content
    report_html = content[content.index('<div class="school-report"') :]
    report_html = report_html[: report_html.rindex("</section>")]
    assert "مدرسة آمنة" in report_html and "التغيّر عبر الزمن" in report_html
    title = r"<title>Lincoln: \d+"
    assert re.search(f"{title}، ", report_html)
    assert not re.search(f"{title}, ", report_html)
    # A sign stays before its number.
    assert re.search("\u200e(?:[+−]\\d|0)", report_html)
    # Nothing is left in English but names of places and the title of the survey.
    words = html.unescape(re.sub(r"<[^>]+>", " ", report_html, flags=re.S))
    names = {"Lincoln", "Riverside", "School", "climate"}
    assert set(re.findall(r"[A-Za-z]{2,}", words)) <= names
    english = report(client, spring, staff.lincoln, "?language=en").content.decode()
    assert 'class="school-report" lang="en" dir="ltr"' in english
    assert "\u200e" not in english


def test_below_the_threshold_there_is_no_figure(client, staff, fall):
    log_in(client, staff.dana)
    page = text_of(report(client, fall, staff.washington))
    assert "There is no report for this school: 5 more students to reach 50 %." in page
    assert "points of 99" not in page
    response = report(client, fall, staff.washington, "report.pdf")
    assert response.status_code == 404
    # It is the threshold that hides them.
    SchoolRate.objects.filter(school=staff.washington).update(finished=20)
    assert "points of 99" in text_of(report(client, fall, staff.washington))


@pytest.fixture
def winter(staff, new_survey):
    """Washington, without a report, is far below both others."""
    winter = closed(new_survey, "winter")
    answered(winter, staff.lincoln, 60, 1, shift=0.5)
    answered(winter, staff.washington, 40, 2, finished=15, shift=-1.5)
    answered(winter, staff.roosevelt, 40, 3)
    return scored(winter)


def scores_of_trust(user, administration, schools):
    """Return the scores of the school, its district and the state in each report."""
    reader = SchoolReports(Permissions(user), administration, "en")
    by_school = {}
    for school_report in reader.of(schools):
        if school_report.has_figures:
            [(_essential, [trust, _noise])] = school_report.essentials
            by_school[school_report.school.name] = [
                line.score.score for line in trust.places
            ]
    return by_school


def calculated_mean(staff, fall):
    """Calculate Washington's score from all reports, as from a ZIP of them.

    Once from that of the district, once from that of the state, and at last from the
    50 that the benchmark's people have on average.
    """
    schools = [staff.lincoln, staff.washington, staff.roosevelt]
    by_school = scores_of_trust(staff.state, fall, schools)
    assert list(by_school) == ["Lincoln", "Roosevelt"]
    lincoln, district, state = by_school["Lincoln"]
    roosevelt = by_school["Roosevelt"][0]
    other_points = 60 * lincoln + 40 * roosevelt
    return [
        (100 * district - 60 * lincoln) / 40,
        (140 * state - other_points) / 40,
        (140 * 50 - other_points) / 40,
    ]


def score_of_washington(staff, fall):
    place = ("school", staff.washington.pk)
    return visible_scores(fall, [place])[place]["trust"].score


def test_reports_tell_nothing_of_a_school_without_one(staff, winter):
    hidden = score_of_washington(staff, winter)
    assert all(abs(mean - hidden) > 15 for mean in calculated_mean(staff, winter))


def test_with_its_people_in_the_means_its_score_could_be_calculated(
    staff, winter, monkeypatch
):
    schools = (staff.lincoln, staff.washington, staff.roosevelt)
    with_report = {school.pk: school.district_id for school in schools}
    monkeypatch.setattr(scoring, "summed_schools", lambda winter: with_report)
    scoring.score_administration(winter, recalculate=True)
    hidden = score_of_washington(staff, winter)
    # As far as rounding allows.
    assert all(abs(mean - hidden) < 3 for mean in calculated_mean(staff, winter))


def test_outdated_scores_are_not_shown(client, staff, fall):
    log_in(client, staff.dana)
    assert "points of 99" in text_of(report(client, fall, staff.lincoln))
    Scoring.objects.update(format=FORMAT - 1)
    page = text_of(report(client, fall, staff.lincoln))
    assert "points of 99" not in page
    assert "The scores have not been calculated yet." in page


def test_a_hidden_school_has_no_report(client, staff, fall):
    log_in(client, staff.dana)
    hide(fall, "school", staff.lincoln.pk, is_hidden=True)
    page = text_of(report(client, fall, staff.lincoln))
    assert "with so few answers" in page
    assert "points of 99" not in page
    response = report(client, fall, staff.lincoln, "report.pdf")
    assert response.status_code == 404


def test_a_hidden_item_hides_its_measure_alone(client, staff, fall):
    log_in(client, staff.dana)
    hide(fall, "school", staff.lincoln.pk, hidden_items=["q5"])
    visible = visible_scores(fall, [("school", staff.lincoln.pk)])
    [scores] = visible.values()
    page = text_of(report(client, fall, staff.lincoln))
    assert f"{scores['trust'].score} points of 99" in page
    assert page.count("points of 99") == 1
    # In the overview and with the figures, of the measure and of its theme.
    assert page.count("Hidden, because too few people answered.") == 4


def test_a_measure_without_scores_is_not_called_hidden(client, staff, fall):
    Calibration.objects.filter(measure="noise").update(scale_deviation=None)
    ScoreRow.objects.update(essentials={})
    log_in(client, staff.dana)
    page = text_of(report(client, fall, staff.lincoln))
    assert "No score, because one of the measures has none." in page
    assert "Hidden, because too few" not in page


def test_a_hidden_district_is_not_compared(client, staff, fall):
    log_in(client, staff.dana)
    hide(fall, "district", staff.riverside.pk, is_hidden=True)
    page = text_of(report(client, fall, staff.lincoln))
    assert "Riverside:" not in page
    assert "Riverside *" in page
    assert 'class="place-0"' not in report(client, fall, staff.lincoln).text


def test_waves_are_compared(client, staff, survey, fall):
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=1.5)
    answered(spring, staff.washington, 40, 8)
    scored(spring)
    log_in(client, staff.dana)
    place = ("school", staff.lincoln.pk)
    before = visible_scores(fall, [place])[place]["trust"].score
    now = visible_scores(spring, [place])[place]["trust"].score
    page = text_of(report(client, spring, staff.lincoln))
    assert "Change over time" in page
    assert f"+{now - before}, more than chance" in page
    # Washington had no report in fall.
    assert "Change over time" not in text_of(report(client, spring, staff.washington))
    hide(fall, "school", staff.lincoln.pk, is_hidden=True)
    page = text_of(report(client, spring, staff.lincoln))
    assert f"+{now - before}" not in page


def test_reports_of_other_places_are_not_found(client, staff, fall):
    log_in(client, staff.dana)
    for suffix in ("", "report.pdf"):
        assert report(client, fall, staff.roosevelt, suffix).status_code == 404
    log_in(client, staff.state)
    assert report(client, fall, staff.roosevelt).status_code == 200
    for person in ("chen", "sam"):
        log_in(client, getattr(staff, person))
        assert report(client, fall, staff.lincoln).status_code == 404


def test_a_coordinator_sees_the_shared_report_of_the_own_school(client, staff, fall):
    log_in(client, staff.dana)
    # The state's scores are for those who see the state, until they are shared.
    assert "All schools" not in text_of(report(client, fall, staff.lincoln))
    ResultsRollUp.objects.update(shared_at=timezone.now())
    assert "All schools" in text_of(report(client, fall, staff.lincoln))
    log_in(client, staff.chen)
    page = text_of(report(client, fall, staff.lincoln))
    for text in ("points of 99", "Riverside", "All schools"):
        assert text in page
    for school in (staff.washington, staff.roosevelt):
        assert report(client, fall, school).status_code == 404


def test_a_trend_has_only_waves_that_the_user_may_see(client, staff, survey, fall):
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=1.5)
    scored(spring)
    ResultsRollUp.objects.filter(pk=spring.pk).update(shared_at=timezone.now())
    log_in(client, staff.chen)
    assert "Change over time" not in text_of(report(client, spring, staff.lincoln))
    ResultsRollUp.objects.update(shared_at=timezone.now())
    assert "Change over time" in text_of(report(client, spring, staff.lincoln))


def test_a_report_takes_as_many_statements(
    client, staff, fall, django_assert_num_queries
):
    log_in(client, staff.dana)
    report(client, fall, staff.lincoln)
    with django_assert_num_queries(14):
        report(client, fall, staff.lincoln)


STAND_OUT = "Questions that stand out"


def test_a_report_names_questions_with_the_figures_of_the_results(client, staff, fall):
    log_in(client, staff.dana)
    page = text_of(report(client, fall, staff.lincoln))
    address = f"/console/results/{fall.pk}/?school={staff.lincoln.pk}"
    results = text_of(client.get(address))
    section = rf"{STAND_OUT}.*?chance can explain\."
    [shown] = re.findall(section, page)
    assert shown in re.findall(section, results)
    assert "7 questions on a scale are compared; 55 to 60 people answered" in shown


@pytest.mark.parametrize("is_protected", [True, False])
def test_hidden_answers_are_not_among_the_questions(client, staff, fall, is_protected):
    log_in(client, staff.dana)
    compared = r"(\d+) questions on a scale are compared"
    before = re.search(compared, text_of(report(client, fall, staff.lincoln)))
    if is_protected:
        hide(fall, "school", staff.lincoln.pk, hidden_items=["q5"])
    page = text_of(report(client, fall, staff.lincoln))
    after = re.search(compared, page)
    assert int(before[1]) - int(after[1]) == is_protected
    assert ("1 more is not, because its figures are hidden." in page) is is_protected


@pytest.mark.parametrize("is_seen", [True, False])
def test_questions_are_compared_with_a_wave_that_the_user_sees(
    client, staff, survey, fall, is_seen
):
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=2.5)
    scored(spring)
    ResultsRollUp.objects.filter(administration=spring).update(shared_at=timezone.now())
    if is_seen:
        ResultsRollUp.objects.update(shared_at=timezone.now())
    log_in(client, staff.chen)
    page = text_of(report(client, spring, staff.lincoln))
    assert STAND_OUT in page
    assert ("Percentage points since" in page) is is_seen


def test_the_file_is_the_same_report_and_recorded(client, staff, fall):
    log_in(client, staff.dana)
    response = report(client, fall, staff.lincoln, "report.pdf?language=es")
    assert response["Content-Type"] == "application/pdf"
    name = "report-fall-2026-lincoln-es.pdf"
    assert name in response["Content-Disposition"]
    assert response.content.startswith(b"%PDF-1.7")
    document = pypdfium2.PdfDocument(response.content)
    assert document.get_metadata_value("Creator") == f"Groundswell {settings.VERSION}"
    document.close()
    entry = AuditEntry.objects.get(action="download school report")
    assert entry.user_id == staff.dana.pk


def test_the_file_has_two_pages_with_the_brand_of_the_district(client, staff, fall):
    content = io.BytesIO()
    Image.new("RGB", (240, 64)).save(content, "PNG")
    logo = Logo.objects.create(name="abc-240x64", content=content.getvalue())
    PlaceSettings.objects.create(name="State of Ohio", logo=logo)
    log_in(client, staff.dana)
    response = report(client, fall, staff.lincoln, "report.pdf")
    document = pypdfium2.PdfDocument(response.content)
    first, second = (page.get_textpage().get_text_bounded() for page in document)
    for text in ("State of Ohio", "Lincoln", "100 %", "No measure", "How to read"):
        assert text in first
    assert "Question <1>" in second and "Question <1>" not in first
    assert [item.type for item in document[0].get_objects()].count(IMAGE) == 1
    # What the district has set comes first.
    PlaceSettings.objects.create(district=staff.riverside, name="Riverside Schools")
    brands = Brands()
    assert brands.of(staff.riverside.pk).name == "Riverside Schools"
    assert brands.of(staff.lakeside.pk).name == "State of Ohio"
    assert brands.of(staff.riverside.pk).size == (120, 32)


def test_a_file_with_letters_without_a_font_says_so(
    client, staff, fall, monkeypatch, tmp_path, caplog
):
    note = "Some letters may be printed as boxes"
    documents = []

    def keep(htmls, seconds=None):
        documents.extend(htmls.values())
        return dict.fromkeys(htmls, b"%PDF")

    monkeypatch.setattr("reports.console.scores.views.pdf_files", keep)
    monkeypatch.setattr(fonts, "SYSTEM_FOLDERS", (tmp_path,))
    forget_fonts()
    log_in(client, staff.state)
    report(client, fall, staff.lincoln, "report.pdf")
    School.objects.filter(pk=staff.lincoln.pk).update(name="林肯 Lincoln")
    report(client, fall, staff.lincoln, "report.pdf")
    make_font(tmp_path / "NotoSansCJK-Bold.ttf", "林肯")
    forget_fonts()
    report(client, fall, staff.lincoln, "report.pdf")
    forget_fonts()
    assert [note in document for document in documents] == [False, True, False]
    # For the person who runs the server.
    assert "without a font: 林肯" in caplog.text


def test_without_the_program_a_page_says_so(client, staff, fall, monkeypatch):
    def fail(*arguments):
        raise pdf.NoPdf

    monkeypatch.setattr("reports.console.scores.views.pdf_files", fail)
    log_in(client, staff.dana)
    response = report(client, fall, staff.lincoln, "report.pdf")
    assert response.status_code == 503
    assert "The PDF could not be made" in response.content.decode()
