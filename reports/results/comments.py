"""Read free-text answers for a reviewer, who releases single sentences.

Results never show what somebody wrote, except for sentences that were released. Those
are stored without their author, school or group.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts import audit
from accounts.models import User
from accounts.permissions import Capability, Permissions
from reports.models import ReleasedSentence
from reports.models.comments import LONGEST_SENTENCE
from survey.definitions.schema import SurveyDefinition
from survey.models import Administration, Identity, Item, Respondent, Response

# Read at a time, in the order of the roster, and shown in that of the alphabet.
COMMENTS_ON_A_PAGE = 100
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\s*\n\s*")
WORD = re.compile(r"\w+", re.UNICODE)
WORD_OR_ADDRESS = re.compile(r"\S+@\S+|https?:\S+|www\.\S+|\w+", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a comment; `html` marks names, numbers and addresses."""

    text: str
    html: SafeString
    is_released: bool

    @property
    def is_too_long(self) -> bool:
        return len(self.text) > LONGEST_SENTENCE


@dataclass(frozen=True, slots=True)
class CommentPage:
    # Each comment as its sentences.
    comments: Sequence[Sequence[Sentence]]
    # Where the next page begins; "" at the end.
    following: str


def may_review(permissions: Permissions, administration: Administration) -> bool:
    """Return whether the user sees all responses of the administration."""
    seen = permissions.places(Capability.SEE_RESPONSES)
    district = administration.district_id
    return seen.state if district is None else seen.has_district(district)


def text_items(definition: SurveyDefinition) -> list[str]:
    """Return the names of the questions with free text, in their order."""
    items = definition["items"].items()
    return [name for name, item in items if item["kind"] == Item.Kind.TEXT]


def read_comments(
    administration: Administration, name: str, item_id: int, start: str
) -> CommentPage:
    """Return different comments of people who count, from `start` on. 4 statements.

    `start` is `following` of another page, or "". Raises ValueError for others.
    """
    rows = list(
        Response.objects.filter(
            administration_id=administration.pk,
            item_id=item_id,
            state=Response.State.ANSWERED,
            respondent_id__gt=_unseal(start) if start else 0,
        )
        .order_by("respondent_id")
        .values_list("respondent_id", "value")[: COMMENTS_ON_A_PAGE + 1]
    )
    page = rows[:COMMENTS_ON_A_PAGE]
    people = dict(
        Respondent.objects.filter(
            pk__in=[person for person, _text in page],
            administration=administration,
            opted_out_at=None,
            withdrawn_at=None,
        ).values_list("pk", "school")
    )
    texts = sorted({text for person, text in page if person in people and text})
    names = _names_in(texts, administration, set(people.values()))
    released = set(
        administration.released_sentences.filter(item=name).values_list(
            "text", flat=True
        )
    )
    return CommentPage(
        [
            [
                Sentence(text, highlight(text, names), text in released)
                for text in sentences_of(comment)
            ]
            for comment in texts
        ],
        _seal(page[-1][0]) if len(rows) > COMMENTS_ON_A_PAGE else "",
    )


def sentences_of(comment: str) -> list[str]:
    """Split a comment into its sentences."""
    parts = (" ".join(part.split()) for part in SENTENCE_END.split(comment))
    return [part for part in parts if part]


def highlight(text: str, names: set[str]) -> SafeString:
    """Mark words that may identify somebody.

    These are names on the roster of the writers' schools, words with a capital letter
    within a sentence, and words with a digit or an @.
    """
    parts: list[str] = []
    end = 0
    for found in WORD_OR_ADDRESS.finditer(text):
        word = found[0]
        is_striking = (
            not word.isalpha()
            or word.casefold() in names
            or (found.start() > 0 and word[0].isupper() and word != "I")
        )
        if is_striking:
            parts += [text[end : found.start()], format_html("<mark>{}</mark>", word)]
            end = found.end()
    parts.append(text[end:])
    return format_html_join("", "{}", ((part,) for part in parts))


def _names_in(
    texts: Iterable[str], administration: Administration, schools: set[int]
) -> set[str]:
    """Return which words are a given or family name in these schools. 1 statement."""
    words = {word for text in texts for word in WORD.findall(text) if word.isalpha()}
    forms = words | {word.title() for word in words}
    found = Identity.objects.filter(
        Q(given_name__in=forms) | Q(family_name__in=forms),
        administration=administration,
        respondent__school__in=schools,
    ).values_list("given_name", "family_name")
    folded = {word.casefold() for word in words}
    return {name.casefold() for pair in found for name in pair} & folded


@transaction.atomic
def release_sentences(
    administration: Administration,
    name: str,
    texts: Sequence[str],
    *,
    by: User,
    request: HttpRequest | None = None,
) -> int:
    """Release sentences that are not released yet; return how many."""
    known = set(
        administration.released_sentences.filter(item=name, text__in=texts).values_list(
            "text", flat=True
        )
    )
    new = [text for text in dict.fromkeys(texts) if text not in known]
    ReleasedSentence.objects.bulk_create(
        [
            ReleasedSentence(
                administration=administration, item=name, text=text, released_by=by
            )
            for text in new
        ],
        ignore_conflicts=True,
    )
    for text in new:
        _record("release sentence", administration, name, text, by, request)
    return len(new)


@transaction.atomic
def withdraw_sentence(
    sentence: ReleasedSentence, *, by: User, request: HttpRequest | None = None
) -> None:
    """Show a released sentence no longer."""
    administration, name, text = sentence.administration, sentence.item, sentence.text
    sentence.delete()
    _record("withdraw sentence", administration, name, text, by, request)


def _record(
    action: str,
    administration: Administration,
    name: str,
    text: str,
    by: User,
    request: HttpRequest | None,
) -> None:
    audit.record(
        action,
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        after={"question": name, "sentence": text},
    )


def _seal(respondent: int) -> str:
    # In an address, the key of a person would lead to their name.
    return _cipher().encrypt(str(respondent).encode()).decode()


def _unseal(start: str) -> int:
    try:
        return int(_cipher().decrypt(start.encode()))
    except InvalidToken:
        raise ValueError(start) from None


def _cipher() -> Fernet:
    secret = hashlib.sha256(b"comments" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(secret))
