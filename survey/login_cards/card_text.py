"""The words on login cards, in English, Spanish and Arabic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone, translation
from django.utils.formats import date_format

from survey.definitions.schema import load_definition
from survey.models import Administration


@dataclass(frozen=True, slots=True)
class CardWords:
    """Each is one line of a card: shorter than 60 letters."""

    code: str
    open: str
    type: str
    # On cards without a name.
    drawn: str
    # In e-mails, above the link.
    link: str
    # With {opens} and {closes}; a window of one day has {day}.
    window: str
    one_day: str
    # The group that gets these cards, with {name}.
    room: str
    grade: str
    teachers: str


CARD_WORDS = {
    "en": CardWords(
        code="Your access code",
        open="Open the address above, or point a camera at the square.",
        type="Type your code. It is yours alone, like a password.",
        drawn="Draw any card: no one can tell which is yours.",
        link="Open this link to take the survey:",
        window="Open from {opens} to {closes}.",
        one_day="Open on {day} only.",
        room="Class {name}",
        grade="Grade {name}",
        teachers="Teachers",
    ),
    # Without imperatives: they would say "tú" to pupils and "usted" to parents
    # and teachers, who get the same cards.
    "es": CardWords(
        code="Código de acceso",
        open="Abrir la dirección de arriba o apuntar la cámara al cuadro.",
        type="Escribir este código. Es personal, como una contraseña.",
        drawn="Sacar cualquier tarjeta: nadie sabrá quién la tiene.",
        link="Enlace para responder la encuesta:",
        window="Abierto del {opens} al {closes}.",
        one_day="Abierto solo el {day}.",
        room="Clase {name}",
        grade="Grado {name}",
        teachers="Docentes",
    ),
    "ar": CardWords(
        code="رمز الدخول الخاص بك",
        open="افتح العنوان المكتوب أعلاه، أو وجّه الكاميرا إلى المربع.",
        type="اكتب رمزك. هو لك وحدك، مثل كلمة السر.",
        drawn="اسحب أي بطاقة: لن يعرف أحد أيها بطاقتك.",
        link="افتح هذا الرابط للإجابة عن الاستبيان:",
        window="متاح من {opens} إلى {closes}.",
        one_day="متاح يوم {day} فقط.",
        room="الفصل {name}",
        grade="الصف {name}",
        teachers="المعلمون",
    ),
}
RIGHT_TO_LEFT = frozenset(("ar",))


def card_language(*wanted: str) -> str:
    """Return the first of these languages that has words, or "".

    "es-MX" is Spanish.
    """
    for language in wanted:
        base = language.replace("_", "-").split("-")[0].lower()
        if base in CARD_WORDS:
            return base
    return ""


def first_card_language(administration: Administration) -> str:
    """Return the survey's own language, or English if it has no card words."""
    definition = load_definition(administration.published.definition)
    codes = [language["code"] for language in definition["languages"]]
    return card_language(*codes) or "en"


def window_in_words(language: str, opens_at: datetime, closes_at: datetime) -> str:
    first = timezone.localtime(opens_at).date()
    # An administration that closes at midnight is last open the day before.
    last = timezone.localtime(closes_at - timedelta(seconds=1)).date()
    words = CARD_WORDS[language]
    with translation.override(language):
        if first == last:
            return words.one_day.format(day=date_format(first, "DATE_FORMAT"))
        return words.window.format(
            opens=date_format(first, "DATE_FORMAT"),
            closes=date_format(last, "DATE_FORMAT"),
        )
