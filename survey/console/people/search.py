"""Search people in several schools at a bounded cost."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import OuterRef, Q, QuerySet, Subquery

from accounts.models import District
from accounts.permissions import Capability, Permissions
from survey.models import Administration, Identity, RecordJoin, Respondent
from survey.people import access_codes

# With more matches, the user is asked to type more.
MAX_FOUND = 200
MIN_WORD_LENGTH = 2
# Each word more is two more ways to divide them into names.
MAX_NAME_WORDS = 6
_JOINED = RecordJoin.objects.filter(
    state=RecordJoin.State.JOINED, district__isnull=False
)
# The ID of the record that was last joined with a person's own one.
OTHER_ID = Subquery(_JOINED.filter(kept=OuterRef("pk")).values("external_id")[:1])
# In four of ten schools of 1,000 people, two share the last four of 31 symbols: then
# both are listed.
SHORTEST_ENDING = 4
# As a typed code is read.
_CORRECTIONS = str.maketrans({"I": "L", "1": "L"})


def find_people(
    permissions: Permissions, administration: Administration, query: str
) -> tuple[QuerySet[Respondent], bool]:
    """Return at most MAX_FOUND matching people, and whether there are more.

    Each word must be the beginning of a name or an e-mail address, or a whole
    ID, also that of a joined record. Or the words are both names in either order,
    as in "De la Cruz, Ana". Only matches are sorted and counted.
    """
    all_words = query.replace(",", " ").split()
    words = [word for word in all_words if len(word) >= MIN_WORD_LENGTH]
    people = (
        Respondent.objects.on_roster()
        .not_erased()
        .filter(administration=administration)
    )
    if not words:
        return people.none(), False
    matches = Identity.objects.filter(administration=administration)
    places = permissions.places(Capability.SEE_IDENTITIES)
    if not places.state:
        schools = permissions.schools(Capability.SEE_IDENTITIES)
        matches = matches.filter(respondent__school__in=schools)
    districts = list(District.objects.values_list("pk", flat=True))
    each_word = Q()
    for word in words:
        each_word &= (
            Q(family_name__folded__startswith=word)
            | Q(given_name__folded__startswith=word)
            # The second condition is that of the partial index.
            | (Q(email__istartswith=word) & ~Q(email=""))
            # The index on IDs begins with the district: with all districts in
            # the condition, PostgreSQL looks the ID up once in each.
            | Q(district__in=districts, external_id__in={word, word.upper()})
            | Q(pk__in=_people_by_other_id(administration, word))
        )
    matches = matches.filter(each_word | _both_names(all_words))
    ids = list(matches.order_by().values_list("pk", flat=True)[: MAX_FOUND + 1])
    return people.filter(pk__in=ids[:MAX_FOUND]), len(ids) > MAX_FOUND


def _both_names(words: Sequence[str]) -> Q:
    """Match words that are the beginnings of both names, or of a name of several."""
    matches = Q()
    if len(words) > MAX_NAME_WORDS:
        return matches
    for place in range(1, len(words) + 1):
        first, last = " ".join(words[:place]), " ".join(words[place:])
        for start, end in (("given", "family"), ("family", "given")):
            both = Q(**{f"{start}_name__folded__startswith": first})
            if last:
                both &= Q(**{f"{end}_name__folded__startswith": last})
            matches |= both
    return matches


def _people_by_other_id(administration: Administration, word: str) -> list[int]:
    """Return the people whom the ID of a joined record leads to.

    1 statement, and none for a word without a digit, which is no ID.
    """
    if not any(map(str.isdigit, word)):
        return []
    joins = _JOINED.filter(
        administration=administration, external_id__in={word, word.upper()}
    )
    return list(joins.values_list("kept", flat=True))


def find_by_code(people: QuerySet[Respondent], typed: str) -> list[int]:
    """Return those of a school's people whose access code ends like this.

    1 statement. A code is stored nowhere, so that each one is derived again: some
    ten milliseconds for a thousand people.
    """
    ending = "".join(typed.split()).replace("-", "").upper().translate(_CORRECTIONS)
    is_ending = SHORTEST_ENDING <= len(ending) <= access_codes.LENGTH
    if not is_ending or not set(ending) <= set(access_codes.ALPHABET):
        return []
    rows = people.order_by().values_list("pk", "issue", "code_key_version")
    return [
        pk
        for pk, issue, version in rows
        if access_codes.code_for(pk, issue, version).endswith(ending)
    ]
