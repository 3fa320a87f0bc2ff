"""Read free-text answers for a reviewer, who releases single sentences.

Results never show what somebody wrote, except for sentences that were released. Those
are stored without their author, school or group.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts import audit
from accounts.folded_text import fold
from accounts.models import User
from accounts.permissions import Capability, Permissions
from reports.models import ReleasedSentence
from reports.models.comments import LONGEST_SENTENCE
from survey.instrument.definitions.schema import SurveyDefinition
from survey.models import Administration, Identity, Item, Respondent, Response

# Read at a time, in the order of the roster, and shown in that of the alphabet; more
# where a page would end within a block of people, whose keys follow each other.
COMMENTS_ON_A_PAGE = 100
# As in the function of the database.
PEOPLE_IN_A_BLOCK = 128
# Greater than the number of any block.
MOST_BLOCKS = 2**48
DIGEST_SALT = "reports.released_sentence"
# Each has a checkbox: the rest of a longer comment is one more. Somebody who types
# 5,000 characters like "a. a. a." would make a page of 20 MB with 74 others.
MOST_SENTENCES = 100
# All take a time that grows with the text, whatever it is: anybody with an open code
# may write it. So no pattern begins with what it may have to give back.
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n")
WORD = re.compile(r"\w+")
CHUNK = re.compile(r"\S+")
WEB_ADDRESS_OR_WORD = re.compile(r"https?:\S+|www\.\S+|\w+")
# Of a name of several words. Shorter ones, as in "de la Cruz", are in all texts.
SHORTEST_PART = 3


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
    """Return a page of comments, each text once, from `start` on. 3 statements.

    People who opted out or were withdrawn are left out. `start` is `following` of
    another page, or "". Raises ValueError for others.
    """
    if start and not (start.isascii() and start.isdigit() and len(start) < 20):
        raise ValueError(start)
    first_block = min(int(start or 0), MOST_BLOCKS)
    comments, schools, following = _read_blocks(administration, item_id, first_block)
    texts = sorted(filter(None, comments))
    names = _names_in(texts, administration, schools)
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
        "" if following is None else str(following),
    )


def _read_blocks(
    administration: Administration, item_id: int, first_block: int
) -> tuple[set[str], set[int], int | None]:
    """Return a page's comments, its writers' schools, and the next page's block.

    Pages of the console may not read responses: on PostgreSQL a function of the
    database does it, and does not tell who wrote what.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT * FROM survey_read_comments(%s, %s, %s, %s)",
                [administration.pk, item_id, first_block, COMMENTS_ON_A_PAGE],
            )
            comments, schools, following = cursor.fetchone()
        return set(comments or ()), set(schools or ()), following
    answers = Response.objects.filter(
        administration_id=administration.pk,
        item_id=item_id,
        state=Response.State.ANSWERED,
        respondent_id__gte=first_block * PEOPLE_IN_A_BLOCK,
    ).order_by("respondent_id")
    people = answers.values_list("respondent_id", flat=True)
    if not (page := list(people[:COMMENTS_ON_A_PAGE])):
        return set(), set(), None
    end = (page[-1] // PEOPLE_IN_A_BLOCK + 1) * PEOPLE_IN_A_BLOCK
    written = dict(
        answers.filter(respondent_id__lt=end).values_list("respondent_id", "value")
    )
    schools = dict(
        Respondent.objects.filter(
            pk__in=written,
            administration=administration,
            opted_out_at=None,
            declined_at=None,
            withdrawn_at=None,
        ).values_list("pk", "school")
    )
    later = people.filter(respondent_id__gte=end).first()
    return (
        {text for person, text in written.items() if person in schools and text},
        set(schools.values()),
        None if later is None else later // PEOPLE_IN_A_BLOCK,
    )


def sentences_of(comment: str) -> list[str]:
    """Split a comment into its sentences."""
    parts: Iterable[str] = SENTENCE_END.split(comment, maxsplit=MOST_SENTENCES)
    parts = (" ".join(part.split()) for part in parts)
    return [part for part in parts if part]


def highlight(text: str, names: set[str]) -> SafeString:
    """Mark words that may identify somebody.

    These are names on the roster of the writers' schools, words with a capital letter
    within a sentence, and words with a digit or an @.
    """
    parts: list[str] = []
    end = 0
    for at, word in _words_and_addresses(text):
        is_striking = (
            not word.isalpha()
            or _folded(word) in names
            or (at > 0 and word[0].isupper() and word != "I")
        )
        if is_striking:
            parts += [text[end:at], format_html("<mark>{}</mark>", word)]
            end = at + len(word)
    parts.append(text[end:])
    return format_html_join("", "{}", ((part,) for part in parts))


def _words_and_addresses(text: str) -> Iterator[tuple[int, str]]:
    """Yield words, e-mail and web addresses, each with its place."""
    for chunk in CHUNK.finditer(text):
        if 0 < chunk[0].find("@", 1) < len(chunk[0]) - 1:
            yield chunk.start(), chunk[0]
            continue
        for word in WEB_ADDRESS_OR_WORD.finditer(text, chunk.start(), chunk.end()):
            yield word.start(), word[0]


def _folded(name: str) -> str:
    return str(fold(name)).casefold()


def _names_in(
    texts: Iterable[str], administration: Administration, schools: set[int]
) -> set[str]:
    """Return which words are a given or family name in these schools. 1 statement.

    Each different name is read once and looked up among the words. So the work grows
    with the rosters, and not with what somebody has written: a statement with all
    words would need more than SQLite accepts.
    """
    words = {_folded(word) for text in texts for word in WORD.findall(text)}
    people = Identity.objects.filter(
        administration=administration, respondent__school__in=schools
    ).order_by()
    given = people.values_list("given_name", flat=True)
    names = given.union(people.values_list("family_name", flat=True))
    words_of_names = set()
    for name in names.iterator():
        parts = [part for part in WORD.findall(name) if len(part) >= SHORTEST_PART]
        words_of_names |= words.intersection(map(_folded, (name, *parts)))
    return words_of_names


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
    numbers = administration.released_sentences.filter(item=name, text__in=new)
    for number, text in numbers.order_by("pk").values_list("pk", "text"):
        _record("release sentence", administration, name, number, text, by, request)
    return len(new)


@transaction.atomic
def withdraw_sentence(
    sentence: ReleasedSentence, *, by: User, request: HttpRequest | None = None
) -> None:
    """Show a released sentence no longer."""
    administration, number = sentence.administration, sentence.pk
    name, text = sentence.item, sentence.text
    sentence.delete()
    _record("withdraw sentence", administration, name, number, text, by, request)


def _record(
    action: str,
    administration: Administration,
    name: str,
    number: int,
    text: str,
    by: User,
    request: HttpRequest | None,
) -> None:
    """Record which sentence it was, without its text: entries are never deleted."""
    audit.record(
        action,
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        after={
            "question": name,
            "released_sentence": number,
            "sentence_digest": sentence_digest(administration.pk, name, text),
        },
    )


def sentence_digest(administration_id: int, name: str, text: str) -> str:
    """Return what the audit log has of a sentence, to compare a text with.

    Keyed, with a key that is not in the database: a sentence such as "No." or "I hate
    Mr Ortiz." would soon be guessed from a plain hash.
    """
    value = json.dumps([administration_id, name, text])
    return salted_hmac(DIGEST_SALT, value, algorithm="sha256").hexdigest()[:32]
