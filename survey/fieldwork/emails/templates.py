"""Check and fill in the texts of e-mails: "Hello {name}, ..."."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.fieldwork.emails.default_texts import DEFAULT_TEXTS, EMAIL_WORDS
from survey.models import EmailStep, EmailTemplate

# Each with what it stands for.
VARIABLES = {
    "name": gettext_lazy("the person's given name"),
    "survey": gettext_lazy("the title of the survey"),
    "school": gettext_lazy("the name of the person's school"),
    "opens": gettext_lazy("the first day of the survey"),
    "closes": gettext_lazy("the last day of the survey"),
    "link": gettext_lazy("the person's own link to the survey"),
    "code": gettext_lazy("the person's access code"),
}
# Mail servers log subjects, and telephones show them to everybody.
SECRET = frozenset({"link", "code"})
LONGEST_SUBJECT = 150
LONGEST_BODY = 10_000

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def check_template(*, kind: str, subject: str, body: str) -> None:
    """Raise ValidationError, with messages for "subject" and "body"."""
    errors = {
        "subject": [*_wrong_variables(subject), *_wrong_subject(subject)],
        "body": [*_wrong_variables(body), *_wrong_body(kind, body)],
    }
    if problems := {name: messages for name, messages in errors.items() if messages}:
        raise ValidationError(problems)


def _wrong_variables(text: str) -> list[str]:
    names = list(dict.fromkeys(_VARIABLE.findall(text)))
    known = ", ".join(f"{{{name}}}" for name in VARIABLES)
    wrong = [
        _("{%(name)s} is not a variable. Use these: %(known)s.")
        % {"name": name[:40], "known": known}
        for name in names
        if name not in VARIABLES
    ]
    if set(_VARIABLE.sub("", text)) & {"{", "}"}:
        wrong.append(_("Use { and } only around variables, such as {name}."))
    if "\0" in text:
        wrong.append(_("Remove the invisible characters."))
    return wrong


def _wrong_subject(subject: str) -> list[str]:
    wrong = []
    if not subject.strip():
        wrong.append(_("Write a subject."))
    # Every line break that Python or a mail server knows.
    if len(subject.splitlines()) > 1 or subject != subject.rstrip("\r\n"):
        wrong.append(_("Write the subject in one line."))
    if len(subject) > LONGEST_SUBJECT:
        wrong.append(
            _("Use at most %(longest_subject)s characters.")
            % {"longest_subject": LONGEST_SUBJECT}
        )
    if SECRET & set(_VARIABLE.findall(subject)):
        wrong.append(_("Put {link} and {code} in the text: others can see a subject."))
    return wrong


def _wrong_body(kind: str, body: str) -> list[str]:
    wrong = []
    used = set(_VARIABLE.findall(body))
    if not body.strip():
        wrong.append(_("Write a text."))
    elif kind == EmailStep.Kind.THANKS and SECRET & used:
        wrong.append(_("The survey is closed by then: remove {link} and {code}."))
    elif kind != EmailStep.Kind.THANKS and "link" not in used:
        wrong.append(_("Add {link}, so that people can open the survey."))
    if len(body) > LONGEST_BODY:
        wrong.append(
            _("Use at most %(longest_body)s characters.")
            % {"longest_body": f"{LONGEST_BODY:,}"}
        )
    return wrong


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Replace the variables of a checked text. Values are not looked into."""
    if not values["name"]:
        text = re.sub(r"^\{name\}[,:،] *", "", text, flags=re.MULTILINE)
    filled = _VARIABLE.sub(lambda match: values[match[1]], text)
    if not values["name"]:
        # "Hello ," reads badly.
        filled = re.sub(r",? +(?=[,.:،])", "", filled)
    return filled


def split_before_code(text: str) -> tuple[str, str]:
    """Split a text before the paragraph that has the person's link or code."""
    places = [match.start() for match in _VARIABLE.finditer(text) if match[1] in SECRET]
    blank_line = text.rfind("\n\n", 0, places[0]) if places else -1
    start = blank_line + 2 if blank_line >= 0 else 0
    return text[:start], text[start:]


def fill_in_subject(subject: str, values: Mapping[str, str]) -> str:
    """Fill in a subject, in one line whatever the values hold."""
    return " ".join(fill_in(subject, values).split())


def add_default_templates(step: EmailStep, languages: Collection[str]) -> None:
    """Write the texts to begin with, in those of a survey's languages that have any."""
    offered = {language.replace("_", "-").lower() for language in languages}
    offered |= {language.split("-")[0] for language in offered}
    chosen = [language for language in DEFAULT_TEXTS if language in offered] or ["en"]
    EmailTemplate.objects.bulk_create(
        EmailTemplate(
            step=step,
            language=language,
            subject=DEFAULT_TEXTS[language][step.kind].subject,
            body=DEFAULT_TEXTS[language][step.kind].body,
        )
        for language in chosen
    )


def choose_language(wanted: str, available: Mapping[str, object], first: str) -> str:
    """Return the person's language, the survey's first, English, or any there is.

    "es-MX" is also Spanish.
    """
    for language in (wanted, first, "en"):
        exact = language.replace("_", "-").lower()
        for candidate in (exact, exact.split("-")[0]):
            if candidate in available:
                return candidate
    return next(iter(available))


def words_for(language: str) -> str:
    """Return the language of `EMAIL_WORDS` to put around a text."""
    return choose_language(language, EMAIL_WORDS, "en")
