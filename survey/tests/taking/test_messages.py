from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.template import Context, Template
from django.utils import timezone

from survey.fieldwork.login_cards.card_text import CARD_WORDS
from survey.models import Role
from survey.taking import messages
from survey.taking.rendering import PAGE_TEMPLATES
from survey.templatetags import respondent_words

ROOT = Path(__file__).parents[3]
PLACE = re.compile(r"\{\w+\}")
LANGUAGES = sorted(messages.MESSAGES)
# Words that say "tú" to the reader: pronouns, past and future forms by their
# endings, and the imperatives and present forms that a survey needs.
INFORMAL = re.compile(
    r"\b(tú|tus?|te|ti|contigo|tuy[oa]s?|has|\w{2,}[ai]ste|(?!at)\w+rás|estás"
    r"|(puede|quiere|tiene|cree|participa|cierre|necesita|ve|sabe|responde)s"
    r"|(escribe|elige|revisa|espera|responde|cambia|vuelve|muestra|intenta|haz"
    r"|activa|guarda|envía|permite|saca|apunta|pide|usa|toca)"
    r"|(escríbe|cámbia|inténta|ház|actíva|envía|guárda)(lo|la)s?"
    r"|abre (la|el|est[ae])|pregunta a)\b",
    re.IGNORECASE,
)


def test_messages_are_in_the_wanted_language():
    assert LANGUAGES == ["ar", "en", "es"]
    assert messages.messages_in("es-MX")["next"] == "Siguiente"
    assert messages.messages_in("ar")["next"] == "التالي"
    assert [entry["name"] for entry in messages.languages()] == [
        "English",
        "Español",
        "العربية",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys_and_places(language):
    english, translated = messages.MESSAGES["en"], messages.MESSAGES[language]
    assert list(translated) == list(english)
    assert all(text.strip() == text and text for text in translated.values())
    for key, text in translated.items():
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(english[key])), key


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_no_message_is_untranslated(language):
    english, translated = messages.MESSAGES["en"], messages.MESSAGES[language]
    same = {key for key, text in translated.items() if text == english[key]}
    assert same == {"app_name"}


@pytest.mark.parametrize(
    ("language", "teacher"),
    [("en", "teacher"), ("es", "docente|maestr|profesor"), ("ar", "معلم|مدرس(?!ة)")],
)
def test_no_message_speaks_of_a_teacher(language, teacher):
    """Nearly all messages are the same for students, parents and teachers.

    Public pages say whom surveys are for, and headings of login
    cards whose they are.
    """
    texts = [
        text
        for words in (
            messages.MESSAGES[language],
            messages.FOR_ADULTS.get(language, {}),
        )
        for key, text in words.items()
        if not key.startswith(("school", "card_", "about_"))
    ]
    assert [text for text in texts if re.search(teacher, text, re.IGNORECASE)] == []


def test_no_key_is_defined_twice():
    text = messages.SOURCE.read_text("utf-8")
    pairs: list[str] = []
    json.loads(text, object_pairs_hook=lambda entry: pairs.extend(k for k, _ in entry))
    assert len(pairs) == len(set(pairs))


def informal(texts: dict[str, str]) -> dict[str, str]:
    # "Se muestran" and "se vuelve" address nobody.
    plain = {key: re.sub(r"(?i)\bse \w+", "", text) for key, text in texts.items()}
    return {key: texts[key] for key in texts if INFORMAL.search(plain[key])}


@pytest.mark.parametrize("language", sorted(messages.FOR_ADULTS))
def test_messages_for_adults_replace_messages_of_the_language(language):
    usual, formal = messages.MESSAGES[language], messages.FOR_ADULTS[language]
    assert list(formal) == [key for key in usual if key in formal]
    for key, text in formal.items():
        assert text.strip() == text != usual[key], key
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(usual[key])), key


def test_spanish_messages_say_tu_to_students_and_usted_to_adults():
    students = messages.messages_in("es", Role.STUDENT)
    assert students["required"] == "Responde a esta pregunta, por favor."
    assert set(informal(students)) == set(messages.FOR_ADULTS["es"])
    for role in (Role.PARENT, Role.TEACHER):
        adults = messages.messages_in("es-MX", role)
        assert adults["required"] == "Responda a esta pregunta, por favor."
        assert list(adults) == list(students)
        assert not informal(adults)
        assert messages.messages_in("en", role) == messages.MESSAGES["en"]


def test_texts_that_all_roles_see_address_nobody_as_tu():
    """The login, what nginx caches for everyone, error pages, and login cards."""
    folder = ROOT / "templates/survey"
    shared = [*PAGE_TEMPLATES, "survey/survey_login.html", "survey/_base.html"]
    shared += ["survey/_brand.html", "survey/survey_other_person.html"]
    keys = {"closed_title", "closed_help", "next_person", "page_n", "acknowledge"}
    for name in shared:
        keys |= keys_in(folder, Path(name).name, r"(?<= )words\.(\w+)")
    keys |= keys_in(ROOT / "survey/taking", "*.py", r'LoginRefused\("(\w+)"')
    assert {"login_title", "withdrawn", "choose", "grid_scale"} <= keys
    assert keys.isdisjoint(messages.FOR_ADULTS["es"])

    pages = {
        path.name: path.read_text() for path in (ROOT / "templates").glob("*.html")
    }
    spanish = {
        name: part.split("{% endblock")[0]
        for name, text in pages.items()
        for part in text.split("{% block es %}")[1:]
    }
    assert "404.html" in spanish
    assert not informal(spanish)
    assert not informal(dataclasses.asdict(CARD_WORDS["es"]))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["es"], "es"),
        (["ES-mx"], "es"),
        (["es_MX"], "es"),
        (["so", "ar-EG", "es"], "ar"),
        (["so"], "en"),
        ([""], "en"),
        ([], "en"),
    ],
)
def test_a_language_falls_back_to_its_base_code_then_english(wanted, expected):
    assert messages.language_for(*wanted) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("so;q=0.9, es-US;q=0.8, en;q=0.5", "es"),
        ("ar, en", "ar"),
        ("*", "en"),
        ("", "en"),
        ("x" * 10_000, "en"),
        (";;;,,,q=", "en"),
    ],
)
def test_the_language_follows_the_accept_language_header(header, expected):
    assert messages.language_accepted(header) == expected


@pytest.mark.parametrize(
    ("language", "direction"),
    [
        ("ar", "rtl"),
        ("ar-EG", "rtl"),
        ("FA", "rtl"),
        ("ku-Arab", "rtl"),
        ("ur", "rtl"),
        ("ku", "ltr"),
        ("en", "ltr"),
        ("arn", "ltr"),
        ("", "ltr"),
    ],
)
def test_direction_follows_the_language_or_its_script(language, direction):
    assert messages.direction(language) == direction


def test_messages_are_a_copy_for_each_caller():
    messages.messages_in("en")["next"] = "changed"
    assert messages.messages_in("en")["next"] == "Next"


def test_values_filled_into_a_message_are_escaped():
    template = Template(
        "{% load respondent_words %}{% fill text n=n time=moment extra=1 %}"
    )
    context = Context({"text": "All {n} <pages> at {time} {left}", "n": "<b>"})
    context["moment"] = "10:42"
    assert template.render(context) == "All &lt;b&gt; &lt;pages&gt; at 10:42 {left}"


def test_a_time_element_has_iso_time_and_text():
    moment = datetime(2026, 11, 21, 16, 42, 7, tzinfo=UTC)
    with timezone.override("America/Chicago"):
        assert respondent_words.time_element(moment) == (
            '<time datetime="2026-11-21T10:42:07-06:00">10:42</time>'
        )


def keys_in(folder: Path, ending: str, pattern: str) -> set[str]:
    sources = (path.read_text("utf-8") for path in sorted(folder.glob(ending)))
    return {key for source in sources for key in re.findall(pattern, source)}


def test_every_message_used_in_a_template_exists():
    asked = keys_in(ROOT / "templates/survey", "*.html", r"(?<= )words\.(\w+)")
    assert {"start", "next", "clear_answer", "answers_hidden"} <= asked
    assert asked <= set(messages.MESSAGES["en"])


def test_every_message_used_in_a_script_exists():
    scripts = ROOT / "static/js"
    asked = keys_in(scripts, "*.js", r"""\bmessages\.text\(\s*["'`](\w+)""")
    asked |= keys_in(scripts, "*.js", r"""\b(?:key|title|text): ["'](\w+)["']""")
    counted = keys_in(scripts, "*.js", r"""\bplural\(\s*["'`](\w+)""")
    asked |= counted | {f"{key}_one" for key in counted}
    assert {"page_of", "saving", "session_over_help", "waiting_saves_one"} <= asked
    assert asked <= set(messages.MESSAGES["en"])


def test_every_reason_of_the_server_has_a_message():
    reasons = keys_in(ROOT / "survey/taking", "*.py", r'BadAnswer\("(\w+)"\)')
    reasons |= keys_in(ROOT / "survey/taking", "*.py", r'LoginRefused\("(\w+)"')
    assert {"not_a_number", "code_wrong"} <= reasons
    assert reasons <= set(messages.MESSAGES["en"])
