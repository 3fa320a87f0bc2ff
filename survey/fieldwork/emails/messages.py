"""Write the e-mail of one step to one person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import translation
from django.utils.crypto import salted_hmac
from django.utils.formats import date_format

from accounts.place_settings import Brands
from accounts.time_zones import zone_named
from survey.fieldwork.emails.claims import Recipient
from survey.fieldwork.emails.default_texts import EMAIL_WORDS, Text
from survey.fieldwork.emails.shared_addresses import SharedAddress
from survey.fieldwork.emails.templates import (
    choose_language,
    fill_in,
    fill_in_subject,
    split_before_code,
    words_for,
)
from survey.fieldwork.emails.unsubscribe import unsubscribe_headers, unsubscribe_link
from survey.fieldwork.login_cards.card_text import (
    CARD_WORDS,
    card_language,
    for_whom,
    group_of,
)
from survey.instrument.definitions.schema import load_definition
from survey.models import Administration, EmailStep
from survey.people import access_codes

# In previews and test e-mails: no code of a person is shown to anybody else.
SAMPLE_CODE = "ABCD-EFGH-KLMN"


class Texts(NamedTuple):
    """The texts of a step, and what they are filled in with for everybody."""

    by_language: Mapping[str, Text]
    titles: Mapping[str, str]
    first_language: str
    default_title: str
    opens_at: datetime
    closes_at: datetime
    role: str
    has_code: bool
    has_names: bool
    # Who asks, and whom to ask for help; may be empty.
    signature: str = ""

    def in_language(self, wanted: str) -> str:
        return choose_language(wanted, self.by_language, self.first_language)


def texts_of(step: EmailStep, administration: Administration) -> Texts:
    """Read the texts of a step. 2 statements."""
    brand = Brands().of(administration.district_id)
    definition = load_definition(administration.published.definition)
    languages = [language["code"] for language in definition["languages"]]
    has_code = step.kind != EmailStep.Kind.THANKS
    return Texts(
        by_language={
            template.language: Text(template.subject, template.body)
            for template in step.templates.all()
        },
        titles=definition["title"],
        first_language=languages[0] if languages else "",
        default_title=administration.published.survey.default_title,
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
        role=administration.role,
        has_code=has_code,
        # As on login cards: where progress is confidential, no code is next to a name.
        has_names=not (has_code and administration.is_completion_confidential),
        signature="\n".join(filter(None, (brand.name, brand.contact))),
    )


def write_text(texts: Texts, person: Recipient, code: str) -> tuple[str, Text]:
    """Fill in a person's text; return its language too."""
    language = texts.in_language(person.language)
    text = texts.by_language[language]
    # An administration that closes at midnight is last open the day before.
    last = texts.closes_at - timedelta(seconds=1)
    values = {
        "name": person.name if texts.has_names else "",
        "survey": texts.titles.get(language) or texts.default_title,
        "school": person.school,
        "opens": _day(texts.opens_at, language, person.time_zone),
        "closes": _day(last, language, person.time_zone),
        # In the fragment, which browsers send to no server.
        "link": f"{settings.PUBLIC_ADDRESS}/#{code}",
        "code": code,
    }
    before, after = split_before_code(text.body)
    lines = ""
    is_named = values["name"] and "{name}" in text.subject + text.body
    if texts.has_code and person.shared_address and not is_named:
        lines = _for_whom(person, person.shared_address, texts, language)
    body = fill_in(before, values) + lines + fill_in(after, values)
    return language, Text(fill_in_subject(text.subject, values), body)


def _for_whom(
    person: Recipient, shared: SharedAddress, texts: Texts, language: str
) -> str:
    """Return a paragraph that tells the e-mails to one address apart."""
    words = CARD_WORDS[card_language(language) or "en"]
    group = group_of(
        shared.respondent, school=person.school, role=texts.role, words=words
    )
    lines = for_whom(
        name=person.name if texts.has_names else "",
        group=group,
        number=shared.number,
        total=shared.total,
        words=words,
    )
    return "\n".join([*lines, "", ""])


def write_message(
    texts: Texts, step: EmailStep, person: Recipient, delivery_id: int
) -> EmailMessage:
    """Return the e-mail of a claimed row, with the person's code and links."""
    code = access_codes.code_for(person.pk, person.issue, person.code_key_version)
    language, text = write_text(texts, person, access_codes.format_code(code))
    link = unsubscribe_link(delivery_id)
    footer = EMAIL_WORDS[words_for(language)].footer
    # The same if it has to be sent again: many mailboxes then show one e-mail.
    key = f"{step.pk}/{person.pk}"
    digest = salted_hmac("survey.reminders.message", key, algorithm="sha256")
    host = urlsplit(settings.PUBLIC_ADDRESS).hostname or "localhost"
    return EmailMessage(
        text.subject,
        with_footer(text.body, footer, link, texts.signature),
        to=[person.address],
        headers={
            "Message-ID": f"<{digest.hexdigest()[:32]}@{host}>",
            "Content-Language": language,
            "Auto-Submitted": "auto-generated",
            **unsubscribe_headers(link),
        },
    )


def with_footer(body: str, footer: str, link: str, signature: str) -> str:
    lines = f"{signature}\n\n" if signature else ""
    return f"{body.rstrip()}\n\n-- \n{lines}{footer}\n{link}\n"


# The same two days for everybody of a zone: formatting them took half of the time of
# a text.
@lru_cache(maxsize=256)
def _day(moment: datetime, language: str, time_zone: str) -> str:
    local = moment.astimezone(zone_named(time_zone))
    with translation.override(language):
        return date_format(local, "DATE_FORMAT")
