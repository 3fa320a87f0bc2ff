"""Texts of a running survey are corrected while people answer it."""

from __future__ import annotations

import copy
import json

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils import translation

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.console.surveys import corrections
from survey.instrument.definitions.comparison import compare, moved_names
from survey.instrument.definitions.corrections import (
    NotACorrection,
    WrongSurvey,
    administrations_to_correct,
    corrected_definition,
    publish_correction,
    root_of,
    use_correction,
)
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts.corrections import start_correction
from survey.models import (
    Administration,
    PublishedSurvey,
    Response,
    Survey,
    SurveyMeasures,
)
from survey.taking import resume_cookie
from survey.taking.published import build_published
from survey.tests.conftest import enrol
from survey.tests.console.test_survey_measures import draft_with
from survey.tests.console.test_survey_upload import send
from survey.tests.console.test_surveys import CHOICES, ROWS, book, draft_of, offered
from survey.tests.xlsform.test_measures import SAFE, TRUST

pytestmark = pytest.mark.django_db


def changed(rows, *changes):
    """Replace cells of the rows: (row, column, text)."""
    rows = copy.deepcopy(rows)
    for row, column, text in changes:
        rows[row][column] = text
    return rows


CORRECTED_ROWS = changed(ROWS, (2, 2, "Which animal?"))


@pytest.fixture
def running(staff):
    """Publish a survey and offer it to students."""
    published = publish_survey(survey=draft_of())
    return published, offered(published)


def correction_of(published, rows=CORRECTED_ROWS, version="1.1", by="test", **fields):
    draft = draft_of(rows=rows, version=version, corrects=published, **fields)
    return publish_correction(survey=draft, corrects=published, by=by)


def with_measures(published_or_survey, label="Trust", items=("pet", "age")):
    """Give a draft a measure; its items are not checked again here."""
    measure = {"name": "trust", "label": {"en": label}, "description": {}}
    measure |= {"essential": "", "direction": "positive", "missing": []}
    measure["items"] = [{"name": name, "reversed": False} for name in items]
    SurveyMeasures.objects.create(
        survey=published_or_survey, content={"essentials": [], "measures": [measure]}
    )
    return published_or_survey


def test_a_correction_may_change_the_texts_of_measures_but_not_their_items(staff):
    first = publish_survey(survey=with_measures(draft_of()))
    same_rows = {"rows": ROWS, "corrects": first}
    second = with_measures(draft_of(version="1.1", **same_rows), items=("pet",))
    with pytest.raises(
        NotACorrection, match="measure trust, items: was|measure trust: was there"
    ):
        publish_correction(survey=second, corrects=first, by="test")
    without = draft_of(version="1.2", **same_rows)
    with pytest.raises(
        NotACorrection, match="measure trust, items: was|measure trust: was there"
    ):
        publish_correction(survey=without, corrects=first, by="test")
    spelled = with_measures(draft_of(version="1.3", **same_rows), label="Trust!")
    corrected = publish_correction(survey=spelled, corrects=first, by="test")
    assert measures_of(corrected.survey)["measures"][0]["label"] == {"en": "Trust!"}


def test_texts_corrected_in_the_console_keep_the_measures(staff):
    first = publish_survey(survey=draft_with(SAFE, TRUST))
    copy_ = start_correction(corrects=first, by=staff.state)
    assert measures_of(copy_) == measures_of(first.survey) is not None


def names_of(published) -> dict[int, str]:
    return dict(build_published("", json.loads(published.definition)).names)


def rows_of(administration) -> dict[tuple[int, str], str]:
    """Read the answers as an export does: by item of the version offered now."""
    administration.refresh_from_db()
    names = names_of(administration.published)
    rows = Response.objects.filter(administration_id=administration.pk)
    return {(row.respondent_id, names[row.item_id]): row.value for row in rows}


def read_by(browser, shell, n=1) -> str:
    address = shell["urls"]["content"].replace("{language}", "en")
    response = browser.get(address.replace("{n}", str(n)))
    return response.content.decode()


def test_answers_before_and_after_a_correction_have_the_same_item_ids(
    staff, running, browser, client
):
    published, administration = running
    maya, noor = (
        enrol(administration, school, language="en")
        for school in (staff.lincoln, staff.roosevelt)
    )
    before = browser.log_in(maya).bootstrap()
    assert "Which pet?" in read_by(browser, before)

    correction = correction_of(published)
    use_correction(administration=administration, published=correction, by=staff.state)
    assert correction.digest != published.digest
    assert names_of(correction) == names_of(published)

    # In the middle of it: the old text, until the next login.
    assert browser.bootstrap()["digest"] == published.digest
    saved = browser.save(1, {"pet": "cat", "age": "3"}, before["revision"])
    assert saved.status_code == 200

    second = type(browser)()
    after = second.log_in(noor).bootstrap()
    assert after["digest"] == correction.digest
    assert "Which animal?" in read_by(second, after)
    assert "Which pet?" not in read_by(second, after)
    saved = second.save(1, {"pet": "dog", "age": None}, after["revision"])
    assert saved.status_code == 200

    assert rows_of(administration) == {
        (maya.pk, "pet"): "cat",
        (maya.pk, "age"): "3",
        (noor.pk, "pet"): "dog",
        (noor.pk, "age"): None,
    }
    reloaded = browser.log_in(maya).bootstrap()
    assert reloaded["digest"] == correction.digest
    assert reloaded["answers"] == {"pet": "cat", "age": "3"}


def test_resume_cookie_leads_to_the_corrected_text(staff, running, browser):
    published, administration = running
    maya = enrol(administration, staff.lincoln, language="en")
    shell = browser.log_in(maya).bootstrap()
    browser.save(1, {"pet": "cat", "age": "3"}, shell["revision"])
    correction = correction_of(published)
    use_correction(administration=administration, published=correction, by=staff.state)
    resume_cookie.forget_digests()

    tag = shell["tag"]
    del browser.cookies["sessionid"]
    resumed = browser.bootstrap()
    assert resumed["digest"] == correction.digest
    assert resumed["answers"] == {"pet": "cat", "age": "3"}
    saved = browser.save(1, {"pet": "dog", "age": None}, resumed["revision"], tag=tag)
    assert saved.status_code == 200
    assert rows_of(administration)[maya.pk, "pet"] == "dog"
    # A tab still open with the old text saves as well, under the same ids.
    saved = browser.save(
        1, {"pet": "cat", "age": "5"}, resumed["revision"] + 9, tag=tag
    )
    assert saved.status_code == 200
    assert len(rows_of(administration)) == 2


def test_new_item_ids_would_orphan_the_answers(staff, running, browser):
    # The twin: the same workbook, published as a survey of its own.
    published, administration = running
    maya = enrol(administration, staff.lincoln, language="en")
    shell = browser.log_in(maya).bootstrap()
    browser.save(1, {"pet": "cat", "age": "3"}, shell["revision"])
    second = publish_survey(survey=draft_of(rows=CORRECTED_ROWS, version="1.1"))
    Administration.objects.update(published=second)
    with pytest.raises(KeyError):
        rows_of(administration)
    assert browser.log_in(maya).bootstrap()["answers"] == {}


def test_answers_queued_in_a_browser_survive_a_correction(staff, running, browser):
    published, administration = running
    maya = enrol(administration, staff.lincoln, language="en")
    before = browser.log_in(maya).bootstrap()
    correction = correction_of(published)
    use_correction(administration=administration, published=correction, by=staff.state)
    after = browser.log_in(maya).bootstrap()
    # By these the browser finds what it kept.
    assert after["digest"] != before["digest"]
    assert after["answersOf"] == before["answersOf"] == published.digest
    assert after["queueKey"] == before["queueKey"]


def test_correction_of_a_correction_keeps_the_item_ids(staff, running):
    published, administration = running
    second = correction_of(published)
    third = correction_of(
        second, changed(CORRECTED_ROWS, (3, 2, "Age?")), version="1.2"
    )
    assert names_of(third) == names_of(second) == names_of(published)
    assert root_of(third) == root_of(second) == root_of(published) == published.digest
    assert third.survey.corrects == second
    # To any version with these ids, forwards and back.
    for version in (third, published, second):
        use_correction(administration=administration, published=version, by=staff.state)
        administration.refresh_from_db()
        assert administration.published == version
    # People who have the administration open for changing are warned.
    assert administration.changes == 3
    assert (
        AuditEntry.objects.filter(action="correct texts of administration").count() == 3
    )


def test_publishing_a_correction_again_changes_nothing(running):
    published, _ = running
    correction = correction_of(published)
    twice = publish_correction(survey=correction.survey, corrects=published, by="test")
    assert twice == correction
    assert PublishedSurvey.objects.count() == 2


def test_published_survey_cannot_become_a_correction(running):
    published, _ = running
    draft = draft_of(rows=CORRECTED_ROWS, version="2", corrects=published)
    publish_survey(survey=draft)
    draft.refresh_from_db()
    assert draft.corrects is None
    with pytest.raises(NotACorrection, match="of its own"):
        publish_correction(survey=draft, corrects=published, by="test")


def test_correction_without_changes_is_refused(running):
    published, _ = running
    with pytest.raises(NotACorrection, match="No text differs"):
        correction_of(published, ROWS)
    assert PublishedSurvey.objects.count() == 1


def test_correction_by_another_owner_is_refused(staff, running):
    published, _ = running
    with pytest.raises(NotACorrection, match="same owner"):
        correction_of(published, district=staff.riverside)


NOT_CORRECTIONS = [
    (
        "an item is gone",
        [*ROWS[:3], ROWS[4]],
        CHOICES,
        ["question age: was there, is missing"],
    ),
    (
        "an item is new",
        [*ROWS[:4], ["text", "why", "Why?", "¿Por qué?", None, None, None], ROWS[4]],
        CHOICES,
        ["question why: was missing, is there"],
    ),
    (
        "another order",
        [*ROWS[:2], changed(ROWS, (3, 5, None))[3], ROWS[2], ROWS[4]],
        CHOICES,
        ["question age: was after pet, is after the beginning"],
    ),
    (
        "another page",
        [
            *ROWS[:3],
            ROWS[4],
            ["begin group", "second", "More", "Más", None, None, None],
            *ROWS[3:],
        ],
        CHOICES,
        [
            "page second: was missing, is there",
            "age, page: was pets_page, is second",
        ],
    ),
    (
        "another kind",
        changed(ROWS, (3, 0, "decimal")),
        CHOICES,
        ["age, type: was integer, is decimal"],
    ),
    (
        "required",
        changed(ROWS, (2, 4, None), (3, 4, "yes")),
        CHOICES,
        ["pet, required: was true(), is –", "age, required: was –, is true()"],
    ),
    (
        "a rule",
        changed(ROWS, (3, 5, "${pet} = 'dog'"), (3, 6, ". < 40")),
        CHOICES,
        [
            "age, relevant: was ${pet} = 'cat', is ${pet} = 'dog'",
            "age, constraint: was ${age} < 30, is ${age} < 40",
        ],
    ),
    (
        "an option is gone",
        ROWS,
        CHOICES[:2],
        ["options pets, option dog: was there, is missing"],
    ),
    (
        "an option is renamed",
        ROWS,
        changed(CHOICES, (2, 1, "hound")),
        [
            "options pets, option dog: was there, is missing",
            "options pets, option hound: was missing, is there",
        ],
    ),
    (
        "options in another order",
        ROWS,
        [CHOICES[0], CHOICES[2], CHOICES[1]],
        ["options pets, option dog: was after cat, is after the beginning"],
    ),
    (
        "another list",
        changed(ROWS, (2, 0, "select_one beasts")),
        [CHOICES[0], *[["beasts", *row[1:]] for row in CHOICES[1:]]],
        ["pet, options: was pets, is beasts"],
    ),
    (
        "a language is gone",
        [[*row[:3], *row[4:]] for row in ROWS],
        [row[:3] for row in CHOICES],
        ["language es: was there, is missing"],
    ),
    (
        "an item of another name",
        [[cell if cell != "pet" else "animal" for cell in row] for row in ROWS[:3]]
        + changed(ROWS, (3, 5, "${animal} = 'cat'"))[3:],
        CHOICES,
        [
            "question pet: was there, is missing",
            "question animal: was missing, is there",
            "age, relevant: was ${pet} = 'cat', is ${animal} = 'cat'",
        ],
    ),
]


@pytest.mark.parametrize(
    ("rows", "choices", "expected"),
    [text[1:] for text in NOT_CORRECTIONS],
    ids=[text[0] for text in NOT_CORRECTIONS],
)
def test_difference_beyond_texts_refuses_the_correction(
    running, rows, choices, expected
):
    published, _ = running
    with pytest.raises(NotACorrection) as refused:
        correction_of(published, rows, choices=choices)
    differences = [str(text) for text in refused.value.differences]
    assert [text for text in differences if text in expected] == expected, differences
    assert not Survey.objects.filter(version="1.1", published_at__isnull=False).exists()


def test_changed_form_id_refuses_the_correction(running):
    published, _ = running
    with pytest.raises(NotACorrection, match="form_id"):
        correction_of(published, name="beasts")


def test_changed_texts_are_listed_in_every_language(running):
    published, _ = running
    rows = changed(
        ROWS, (1, 3, "Animales"), (2, 2, "Which animal?"), (3, 3, "¿Cuántos años?")
    )
    choices = changed(CHOICES, (1, 2, "A cat"))
    draft = draft_of(rows=rows, choices=choices, version="1.1")
    earlier = json.loads(published.definition)
    diffs = compare(earlier, corrected_definition(draft, earlier, published.digest))
    assert not diffs.differences
    assert [
        (change.place, change.language, change.was, change.now)
        for change in diffs.texts
    ] == [
        ("Page 1, title", "es", "Mascotas", "Animales"),
        ("Question 1", "en", "Which pet?", "Which animal?"),
        ("Question 2", "es", "¿Su edad?", "¿Cuántos años?"),
        ("Question 1, answer “Cat”", "en", "Cat", "A cat"),
    ]


def test_correction_may_add_a_language(running):
    published, _ = running
    head = "label::Français (fr)"
    rows = [[*row, head if row is ROWS[0] else "Quoi ?"] for row in ROWS]
    rows[-1][-1] = None
    choices = [[*row, head if row is CHOICES[0] else "Oui"] for row in CHOICES]
    correction = correction_of(published, rows, choices=choices)
    assert '"fr"' in correction.definition


def test_correction_may_quote_an_answer_in_the_label_of_an_option(running):
    published, _ = running
    choices = changed(CHOICES, (1, 2, "A cat of ${age}"))
    correction = correction_of(published, ROWS, choices=choices)
    assert "A cat of ${age}" in correction.definition
    assert names_of(correction) == names_of(published)


def test_changed_label_that_a_rule_reads_refuses_the_correction(running):
    rows = changed(ROWS, (3, 5, "jr:choice-name(${pet}, '${pet}') = 'Cat'"))
    published = publish_survey(survey=draft_of(rows=rows, version="5"))
    with pytest.raises(NotACorrection) as refused:
        correction_of(
            published, rows, version="6", choices=changed(CHOICES, (1, 2, "A cat"))
        )
    [difference] = refused.value.differences
    assert difference.place == (
        "options pets, cat, which is read by the relevant of age"
    )


@pytest.mark.parametrize(
    ("was", "now", "moved"),
    [
        ("abcd", "abcd", ""),
        ("abcd", "dabc", "d"),
        ("abcd", "bcda", "a"),
        ("abcde", "abdce", "d"),
        ("", "", ""),
    ],
)
def test_moved_names_are_as_few_as_possible(was, now, moved):
    assert moved_names(list(was), list(now)) == list(moved)


def test_difference_in_an_unknown_part_is_noticed(running):
    # A later release may add a part that the comparison does not know.
    published, _ = running
    was = json.loads(published.definition)
    now = copy.deepcopy(was)
    now["items"]["pet"]["id"] += 1
    assert [change.place for change in compare(was, now).differences] == ["the whole"]


def test_options_that_were_copied_for_one_question_are_compared(running):
    published, _ = running
    was = json.loads(published.definition)
    now = copy.deepcopy(was)
    [name] = now["option_sets"]
    now["option_sets"]["pet_options"] = copy.deepcopy(now["option_sets"][name])
    now["option_sets"]["pet_options"][0]["label"]["en"] = "A kitten"
    now["items"]["pet"]["option_set"] = "pet_options"
    comparison = compare(was, now)
    assert [change.now for change in comparison.texts] == ["A kitten"]
    assert "answer “Cat”" in comparison.texts[0].place


def test_places_and_differences_are_named_in_the_users_language(running):
    published, _ = running
    was = json.loads(published.definition)
    now = copy.deepcopy(was)
    now["pages"][0]["title"] = {"en": "Another title"}
    [options] = now["option_sets"]
    now["option_sets"][options] = now["option_sets"][options][1:]
    with translation.override("es"):
        comparison = compare(was, now)
        [text] = {change.place for change in comparison.texts}
        [difference] = map(str, comparison.differences)
    assert text == "Página 1, título"
    assert difference == f"opciones {options}, opción cat: era está, es falta"


# Permissions


def test_correction_is_refused_in_an_administration_with_other_questions(
    staff, running
):
    published, _ = running
    second = offered(publish_survey(survey=draft_of(name="other")), "other")
    with pytest.raises(WrongSurvey, match="whose questions are not those"):
        use_correction(
            administration=second, published=correction_of(published), by=staff.state
        )
    second.refresh_from_db()
    assert second.published.survey.name == "other"


def test_district_cannot_correct_an_administration_of_the_state(staff, running):
    published, administration = running
    with pytest.raises(PermissionDenied):
        use_correction(
            administration=administration,
            published=correction_of(published),
            by=staff.dana,
        )
    administration.refresh_from_db()
    assert administration.published == published


def test_administrations_to_correct_are_those_the_user_may_change(staff, running):
    from accounts.permissions import Permissions

    published, administration = running
    of_riverside = offered(published, "riverside", district=staff.riverside)
    correction = correction_of(published)
    already = offered(correction, "already")
    offered(publish_survey(survey=draft_of(name="other")), "other")

    def correctable(user):
        return set(administrations_to_correct(Permissions(user), published))

    assert correctable(staff.state) == {administration, of_riverside, already}
    assert correctable(staff.dana) == {of_riverside}
    assert correctable(staff.chen) == set()


# The console


def test_spelling_mistake_is_corrected_in_the_console(staff, client, running):
    published, administration = running
    waiting = offered(published, "later")
    log_in(client, staff.state)
    address = reverse("survey_correct", args=[published.survey_id])
    assert "Correct a text" in client.get(address).content.decode()

    response = send(client, book(CORRECTED_ROWS, version="1.1"), address=address)
    draft = Survey.objects.get(version="1.1")
    page = reverse("survey_correction", args=[draft.pk])
    assert response.redirect_chain[-1][0] == page
    text = response.content.decode()
    assert "Which pet?" in text and "<del>pet</del><ins>animal</ins>?" in text
    assert "spring" in text and "later" in text
    assert draft.published_at is None

    done = client.post(
        page, {"seen": "0", "administrations": [administration.pk]}, follow=True
    )
    text = done.content.decode()
    assert f"is published and used in {administration.title} (spring)" in text
    administration.refresh_from_db()
    waiting.refresh_from_db()
    assert administration.published.survey == draft
    assert waiting.published == published
    [entry] = AuditEntry.objects.filter(action="correct texts of administration")
    assert (entry.by, entry.subject) == ("state@example.org", "spring")
    assert entry.before["digest"] == published.digest

    # Later, for the other one.
    text = client.get(page).content.decode()
    assert "Use the correction" in text and "later" in text
    client.post(page, {"seen": "0", "administrations": [waiting.pk]})
    waiting.refresh_from_db()
    assert waiting.published.survey == draft
    assert "use this correction already" in client.get(page).content.decode()


def test_correction_is_used_in_all_chosen_administrations_or_none(
    staff, client, running, monkeypatch
):
    published, administration = running
    waiting = offered(published, "later")
    log_in(client, staff.state)
    address = reverse("survey_correct", args=[published.survey_id])
    send(client, book(CORRECTED_ROWS, version="1.1"), address=address)
    draft = Survey.objects.get(version="1.1")
    use = corrections.use_correction

    def refused_for_the_second(*, administration, **options):
        if administration == waiting:
            raise WrongSurvey("Later offers something else by now.")
        use(administration=administration, **options)

    monkeypatch.setattr(corrections, "use_correction", refused_for_the_second)
    page = reverse("survey_correction", args=[draft.pk])
    chosen = {"seen": "0", "administrations": [administration.pk, waiting.pk]}
    response = client.post(page, chosen)
    assert response.status_code == 409
    assert "something else by now" in response.content.decode()
    for using in (administration, draft):
        using.refresh_from_db()
    assert (administration.published, draft.published_at) == (published, None)
    assert not AuditEntry.objects.filter(action__startswith="correct texts").exists()


def test_correction_needs_a_new_version(staff, client, running):
    published, _ = running
    log_in(client, staff.state)
    address = reverse("survey_correct", args=[published.survey_id])
    text = send(client, book(CORRECTED_ROWS), address=address).content.decode()
    assert "give the file a new version" in text
    assert address in text


def test_differences_beyond_texts_are_listed_and_not_published(staff, client, running):
    published, administration = running
    log_in(client, staff.state)
    address = reverse("survey_correct", args=[published.survey_id])
    rows = changed(CORRECTED_ROWS, (3, 0, "decimal"))
    response = send(client, book(rows, version="1.1"), address=address)
    text = response.content.decode()
    assert "This workbook changes more than texts" in text
    assert "age, type" in text and "integer" in text and "decimal" in text
    page = response.redirect_chain[-1][0]
    client.post(page, {"seen": "0", "administrations": [administration.pk]})
    administration.refresh_from_db()
    assert administration.published == published
    assert PublishedSurvey.objects.count() == 1


def test_invalid_draft_cannot_be_published_as_a_correction(staff, client, running):
    published, _ = running
    draft = draft_of(rows=CORRECTED_ROWS, version="1.1", corrects=published)
    draft.items.filter(name="pet").update(rules={"required": ["$", "gone"]})
    log_in(client, staff.state)
    page = reverse("survey_correction", args=[draft.pk])
    assert "reads gone" in client.get(page).content.decode()
    assert client.post(page, {"seen": "0"}).status_code == 409
    assert PublishedSurvey.objects.count() == 1


@pytest.mark.parametrize("chosen", ["0", "nonsense", "-1", "9" * 30, "\x00"])
def test_invalid_administration_is_not_corrected(staff, client, running, chosen):
    published, administration = running
    draft = draft_of(rows=CORRECTED_ROWS, version="1.1", corrects=published)
    log_in(client, staff.state)
    page = reverse("survey_correction", args=[draft.pk])
    assert (
        client.post(page, {"seen": "0", "administrations": [chosen]}).status_code == 200
    )
    assert PublishedSurvey.objects.count() == 1


def test_district_corrects_its_own_survey_in_its_own_administrations(staff, client):
    published = publish_survey(survey=draft_of(district=staff.riverside))
    of_riverside = offered(published, "own", district=staff.riverside)
    states = offered(published, "states")
    draft = draft_of(
        rows=CORRECTED_ROWS, version="1.1", corrects=published, district=staff.riverside
    )
    log_in(client, staff.dana)
    page = reverse("survey_correction", args=[draft.pk])
    text = client.get(page).content.decode()
    assert "own" in text and "states" not in text
    client.post(page, {"seen": "0", "administrations": [of_riverside.pk, states.pk]})
    states.refresh_from_db()
    assert states.published == published
    client.post(page, {"seen": "0", "administrations": [of_riverside.pk]})
    of_riverside.refresh_from_db()
    assert of_riverside.published.survey == draft
