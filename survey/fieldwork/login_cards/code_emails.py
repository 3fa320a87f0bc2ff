"""E-mail access codes to the people themselves, so that no staff see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.email_outbox import Facts, writes
from accounts.models import QueuedEmail
from accounts.time_zones import zone_of
from survey.fieldwork.emails.suppression import suppressed_among
from survey.fieldwork.login_cards.card_text import (
    CARD_WORDS,
    CardWords,
    card_language,
    card_languages,
    for_whom,
    group_of,
    window_in_words,
)
from survey.models import CardSet, Respondent
from survey.people import access_codes

KIND = "access code"
BATCH = 2000


def with_email(people: QuerySet[Respondent]) -> QuerySet[Respondent]:
    return people.filter(identity__email__gt="")


@transaction.atomic
def send_codes(card_set: CardSet, people: QuerySet[Respondent]) -> str:
    """Store an e-mail for each person who has an address, and say how many.

    Once, even if the job is repeated: the mark is part of the transaction.
    """
    unsent = CardSet.objects.filter(pk=card_set.pk, made_at=None)
    rows = with_email(people).values_list("pk", "identity__email").order_by("pk")
    addresses = dict(rows)
    # A person who opted out gets the code if somebody sends it to this person alone,
    # which the page confirms.
    unwanted: set[str] = set()
    if card_set.respondent_id is None:
        unwanted = suppressed_among(addresses.values())
    wanted = {pk: to for pk, to in addresses.items() if to not in unwanted}
    # Siblings may have one address: their e-mails are numbered.
    totals = Counter(address.casefold() for address in wanted.values())
    numbers: Counter[str] = Counter()
    emails = []
    for pk, address in wanted.items():
        key = address.casefold()
        numbers[key] += 1
        facts = {"respondent": pk, "number": numbers[key], "total": totals[key]}
        emails.append(QueuedEmail(kind=KIND, to=address, facts=facts))
    if unsent.update(made_at=timezone.now(), people=len(emails)):
        QueuedEmail.objects.bulk_create(emails, batch_size=BATCH)
    left_out = len(addresses) - len(emails)
    words = _("%(letters)s e-mails are on their way.") % {"letters": f"{len(emails):,}"}
    if left_out:
        also = _("Left out, as they get no e-mails: %(people)s.")
        words += " " + also % {"people": f"{left_out:,}"}
    return words


def _for_whom(
    respondent: Respondent, facts: Mapping[str, int], words: CardWords
) -> list[str]:
    """Say whose code it is: by name, where cards may have names."""
    administration = respondent.administration
    identity = getattr(respondent, "identity", None)
    name = ""
    if identity and not administration.is_completion_confidential:
        name = f"{identity.given_name} {identity.family_name}".strip()
    return for_whom(
        name=name,
        group=group_of(
            respondent,
            school=str(respondent.school),
            role=administration.role,
            words=words,
        ),
        number=facts["number"],
        total=facts["total"],
        words=words,
    )


@writes(KIND)
def write_code(email: QueuedEmail) -> Facts | None:
    """Return the words of an e-mail in the person's language. 1 statement.

    The code is derived on sending, so that none is ever stored.
    """
    people = Respondent.objects.select_related(
        "administration__published__survey", "identity", "school__district"
    )
    respondent = people.filter(pk=email.facts["respondent"], withdrawn_at=None).first()
    if respondent is None:
        return None
    administration = respondent.administration
    languages = card_languages(administration)
    preferred = card_language(respondent.language)
    language = preferred if preferred in languages else languages[0]
    words = CARD_WORDS[language]
    return {
        "for_whom": _for_whom(respondent, email.facts, words),
        "title": administration.published.survey.default_title,
        "words": words,
        "code": access_codes.format_code(access_codes.code_of(respondent)),
        "window": window_in_words(
            language,
            administration.opens_at,
            administration.closes_at,
            zone_of(respondent.school.district),
        ),
    }
