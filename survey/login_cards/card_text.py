"""What a login card says, in the languages that there are words for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone, translation
from django.utils.formats import date_format


@dataclass(frozen=True, slots=True)
class Words:
    """Each is one line of a card: shorter than 60 letters."""

    code: str
    open: str
    type: str
    # With {opens} and {closes}; a window of one day has {day}.
    window: str
    one_day: str
    # By what cards are handed out: with {name}, and for teachers.
    room: str
    grade: str
    teachers: str


WORDS = {
    "en": Words(
        code="Your access code",
        open="Open the address above, or point a camera at the square.",
        type="Type your code. It is yours alone, like a password.",
        window="Open from {opens} to {closes}.",
        one_day="Open on {day} only.",
        room="Class {name}",
        grade="Grade {name}",
        teachers="Teachers",
    ),
    "es": Words(
        code="Tu código de acceso",
        open="Abre la dirección de arriba o apunta una cámara al cuadro.",
        type="Escribe tu código. Es solo tuyo, como una contraseña.",
        window="Abierto del {opens} al {closes}.",
        one_day="Abierto solo el {day}.",
        room="Clase {name}",
        grade="Grado {name}",
        teachers="Docentes",
    ),
    "ar": Words(
        code="رمز الدخول الخاص بك",
        open="افتح العنوان المكتوب أعلاه، أو وجّه الكاميرا إلى المربع.",
        type="اكتب رمزك. هو لك وحدك، مثل كلمة السر.",
        window="متاح من {opens} إلى {closes}.",
        one_day="متاح يوم {day} فقط.",
        room="الفصل {name}",
        grade="الصف {name}",
        teachers="المعلمون",
    ),
}
RIGHT_TO_LEFT = frozenset(("ar",))


def card_language(*wanted: str) -> str:
    """The first of the wanted codes that there are words for, or none.

    "es-MX" is Spanish.
    """
    for language in wanted:
        base = language.replace("_", "-").split("-")[0].lower()
        if base in WORDS:
            return base
    return ""


def window_in_words(language: str, opens_at: datetime, closes_at: datetime) -> str:
    first = timezone.localtime(opens_at).date()
    # What closes at midnight is open on the day before.
    last = timezone.localtime(closes_at - timedelta(seconds=1)).date()
    words = WORDS[language]
    with translation.override(language):
        if first == last:
            return words.one_day.format(day=date_format(first, "DATE_FORMAT"))
        return words.window.format(
            opens=date_format(first, "DATE_FORMAT"),
            closes=date_format(last, "DATE_FORMAT"),
        )
