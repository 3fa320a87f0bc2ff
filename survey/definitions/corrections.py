"""A new version of a running survey that mends its texts, and nothing else.

Answers are kept by the ids of items, so a correction has those of the version
that it corrects: people who began before and people who log in after it write
rows that line up, in one administration. That holds only as long as a row
means the same under both, so whatever differs beyond texts refuses it.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import User
from accounts.permissions import Capability, Permissions
from survey.administrations import administrations_for, may_manage
from survey.definitions.expressions import labels_of
from survey.definitions.publishing import (
    NotPublishable,
    compile_definition,
    freeze,
    lock_survey,
)
from survey.definitions.schema import (
    ITEM_TEXTS,
    RULES,
    BlockDefinition,
    ItemDefinition,
    PageDefinition,
    SurveyDefinition,
    Texts,
)
from survey.models import Administration, PublishedSurvey, Survey
from survey.xlsform.writing import as_text

# What of an item is no text, and what a person calls it.
ITEM_PARTS = {
    "kind": "type",
    "option_set": "options",
    "required": "required",
    "relevant": "relevant",
    "constraint": "constraint",
    "calculation": "calculation",
    "choice_filter": "choice_filter",
    "default": "default",
    "default_expression": "default",
    "read_only": "read_only",
    "randomize": "randomize",
    "seed": "seed",
    "appearance": "appearance",
    "range": "range",
}
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class TextChange:
    """One text in one language; "" where there is none."""

    place: str
    language: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is no text, which refuses a correction."""

    place: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.place}: was {self.was}, is {self.now}"


@dataclass
class Comparison:
    texts: list[TextChange] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_correction(self) -> bool:
        return bool(self.texts) and not self.differences


class NotACorrection(NotPublishable):
    """More than texts differ, or nothing does; `differences` says what."""

    def __init__(self, message: str, differences: list[Difference]) -> None:
        super().__init__(message)
        self.differences = differences


class WrongSurvey(Exception):
    """An administration does not offer a version with these items; says so."""


@transaction.atomic
def publish_correction(
    *,
    survey: Survey,
    corrects: PublishedSurvey,
    by: User | str,
    request: HttpRequest | None = None,
) -> PublishedSurvey:
    """Freeze a draft under the item ids of the version whose texts it mends.

    Publishing again returns what is published already. Raises NotACorrection
    with every difference that is no text, and NotPublishable.
    """
    survey = lock_survey(survey)
    if survey.published_at is not None:
        return _published_already(survey, corrects)
    if survey.district_id != corrects.survey.district_id:
        raise NotACorrection("The two versions do not belong to the same owner.", [])
    earlier = json.loads(corrects.definition)
    definition = corrected_definition(survey, earlier, corrects.digest)
    comparison = compare(earlier, definition)
    if comparison.differences:
        raise NotACorrection(
            "This is more than a correction of texts:"
            f" {_list(comparison.differences)}.",
            comparison.differences,
        )
    if not comparison.texts:
        raise NotACorrection("No text differs: there is nothing to correct.", [])
    return freeze(survey, definition, corrects=corrects, by=by, request=request)


def _published_already(survey: Survey, corrects: PublishedSurvey) -> PublishedSurvey:
    if survey.corrects_id != corrects.digest:
        raise NotACorrection(f"{survey} is published as a survey of its own.", [])
    return survey.published.get()


def corrected_definition(
    survey: Survey, earlier: SurveyDefinition, digest: str
) -> SurveyDefinition:
    """A draft's, with the ids of an earlier version's items. Raises NotPublishable."""
    ids = {name: item["id"] for name, item in earlier["items"].items()}
    definition = compile_definition(survey, ids)
    # Of a chain, the first: by it a browser knows the answers that wait in it.
    definition["corrects"] = earlier.get("corrects", digest)
    return definition


def root_of(published: PublishedSurvey) -> str:
    """The digest of the first version that had these item ids."""
    root: str = json.loads(published.definition).get("corrects", published.digest)
    return root


@transaction.atomic
def use_correction(
    *,
    administration: Administration,
    published: PublishedSurvey,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Whoever logs in from now on gets this version; a second time is nothing.

    People in the middle of the survey go on with the texts they have until
    they log in again. An earlier version can be gone back to in the same way.
    Raises PermissionDenied, and WrongSurvey where the items are not the same.
    """
    administration = (
        Administration.objects.select_related("published__survey", "district")
        .select_for_update(of=("self",), no_key=True)
        .get(pk=administration.pk)
    )
    if not may_manage(Permissions(by), administration):
        raise PermissionDenied
    earlier = administration.published
    if earlier.digest == published.digest:
        return
    if root_of(earlier) != root_of(published):
        raise WrongSurvey(
            f"{administration} offers {earlier.survey}, whose questions are not those"
            f" of {published.survey}."
        )
    administration.published = published
    administration.changes += 1
    administration.save(update_fields=["published", "changes"])
    audit.record(
        "correct texts of administration",
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        before={"survey": str(earlier.survey), "digest": earlier.digest},
        after={"survey": str(published.survey), "digest": published.digest},
    )


def administrations_to_correct(
    permissions: Permissions, corrects: PublishedSurvey
) -> list[Administration]:
    """Those not closed that offer it, or its own corrections, and may be changed."""
    offering = (
        administrations_for(permissions, Capability.MANAGE_SURVEYS)
        .filter(published__in=_relatives(corrects), closes_at__gt=timezone.now())
        .select_related("published__survey", "district")
        .order_by("closes_at", "pk")
    )
    return [one for one in offering if may_manage(permissions, one)]


def _relatives(published: PublishedSurvey) -> QuerySet[PublishedSurvey]:
    """Every version with the same item ids, by the chain of corrections."""
    root = root_of(published)
    family = {root}
    found = [root]
    while found:
        found = list(
            PublishedSurvey.objects.filter(survey__corrects__in=found)
            .exclude(digest__in=family)
            .values_list("digest", flat=True)
        )
        family.update(found)
    return PublishedSurvey.objects.filter(digest__in=family)


# Comparing


def compare(was: SurveyDefinition, now: SurveyDefinition) -> Comparison:
    """Two definitions: the texts that differ, and whatever else does."""
    found = Comparison()
    _compare_frames(found, was, now)
    _compare_pages(found, was, now)
    _compare_items(found, was, now)
    _compare_option_sets(found, was, now)
    _compare_read_labels(found, was, now)
    if not found.differences and _without_texts(was) != _without_texts(now):
        # Nothing is known to come here; and if it did, rows would not line up.
        found.differences.append(Difference("the whole", "another", "this"))
    return found


def _without_texts(definition: SurveyDefinition) -> dict[str, object]:
    items = definition["items"].items()
    return {
        "pages": [
            (page["name"], [(one["grid"], one["items"]) for one in page["blocks"]])
            for page in definition["pages"]
        ],
        "items": {
            name: {key: part for key, part in item.items() if key not in ITEM_TEXTS}
            for name, item in items
        },
        "option_sets": {
            name: [(option["value"], option["attributes"]) for option in options]
            for name, options in definition["option_sets"].items()
        },
        "order": definition["order"],
    }


def _compare_frames(
    found: Comparison, was: SurveyDefinition, now: SurveyDefinition
) -> None:
    _differ(found, "name of the survey (form_id)", was["name"], now["name"])
    _compare_texts(found, "title", was["title"], now["title"])
    before = [one["code"] for one in was["languages"]]
    after = [one["code"] for one in now["languages"]]
    _differ(found, "default language", before[0], after[0])
    for code in before:
        if code not in after:
            found.differences.append(Difference(f"language {code}", "there", "missing"))
    names = {one["code"]: one for one in was["languages"]}
    for one in now["languages"]:
        earlier = names.get(one["code"], {"name": "", "direction": ""})
        if earlier["name"] != one["name"]:
            found.texts.append(
                TextChange("language", one["code"], earlier["name"], one["name"])
            )


def _compare_pages(
    found: Comparison, was: SurveyDefinition, now: SurveyDefinition
) -> None:
    pages = _by_name(was["pages"]), _by_name(now["pages"])
    _compare_names(found, "page", list(pages[0]), list(pages[1]))
    for name, page in pages[1].items():
        earlier = pages[0].get(name)
        if earlier is None:
            continue
        place = f"page {name}"
        _compare_texts(found, f"{place}, title", earlier["title"], page["title"])
        _compare_blocks(found, place, earlier["blocks"], page["blocks"])


def _compare_blocks(
    found: Comparison,
    place: str,
    was: list[BlockDefinition],
    now: list[BlockDefinition],
) -> None:
    shapes = [[(one["grid"], one["items"]) for one in blocks] for blocks in (was, now)]
    if shapes[0] != shapes[1]:
        # Items that came, went or moved are told by name, elsewhere.
        arranged = [[name for _, names in shape for name in names] for shape in shapes]
        if arranged[0] == arranged[1]:
            _differ(found, f"{place}, headings and grids", *map(_shape, (was, now)))
        return
    for number, (earlier, block) in enumerate(zip(was, now, strict=True), start=1):
        heading = f"{place}, heading {number}"
        _compare_texts(found, heading, earlier["label"], block["label"])


def _shape(blocks: Iterable[BlockDefinition]) -> str:
    return "; ".join(
        ("a grid of " if block["grid"] else "") + (", ".join(block["items"]) or "none")
        for block in blocks
    )


def _compare_items(
    found: Comparison, was: SurveyDefinition, now: SurveyDefinition
) -> None:
    _compare_names(found, "question", _items_in_order(was), _items_in_order(now))
    pages = [[page["name"] for page in one["pages"]] for one in (was, now)]
    for name in _items_in_order(now):
        if name not in was["items"]:
            continue
        earlier, item = was["items"][name], now["items"][name]
        for key in ITEM_TEXTS:
            place = name if key == "label" else f"{name}, {key}"
            _compare_texts(found, place, earlier.get(key, {}), item.get(key, {}))
        page, other = pages[0][earlier["page"] - 1], pages[1][item["page"] - 1]
        _differ(found, f"{name}, page", page, other)
        _compare_item_parts(found, name, earlier, item)


def _compare_item_parts(
    found: Comparison, name: str, was: ItemDefinition, now: ItemDefinition
) -> None:
    known = {*ITEM_PARTS, *ITEM_TEXTS, "id", "page", "local"}
    parts = {**ITEM_PARTS, **{key: key for key in (was.keys() | now.keys()) - known}}
    for key, called in parts.items():
        if was.get(key) != now.get(key):
            before, after = (_shown(key, one.get(key)) for one in (was, now))
            found.differences.append(Difference(f"{name}, {called}", before, after))


def _compare_option_sets(
    found: Comparison, was: SurveyDefinition, now: SurveyDefinition
) -> None:
    for name in was["option_sets"].keys() & now["option_sets"].keys():
        earlier = {one["value"]: one for one in was["option_sets"][name]}
        options = {one["value"]: one for one in now["option_sets"][name]}
        place = f"options {name}"
        _compare_names(found, f"{place}, option", list(earlier), list(options))
        for value, option in options.items():
            if value not in earlier:
                continue
            here = f"{place}, {value}"
            _compare_texts(found, here, earlier[value]["label"], option["label"])
            before, after = earlier[value]["attributes"], option["attributes"]
            _differ(found, f"{here}, columns", before, after)


def _compare_read_labels(
    found: Comparison, was: SurveyDefinition, now: SurveyDefinition
) -> None:
    """A rule that reads a label may say something else when that is mended."""
    readers: dict[str, list[str]] = {}
    for name, item in was["items"].items():
        for rule in RULES:
            for read in labels_of(item.get(rule, True)):
                option_set = was["items"][read].get("option_set", "")
                readers.setdefault(option_set, []).append(f"{rule} of {name}")
    for option_set, rules in readers.items():
        before, after = (
            {
                one["value"]: one["label"]
                for one in both["option_sets"].get(option_set, [])
            }
            for both in (was, now)
        )
        for value in before.keys() & after.keys():
            if before[value] != after[value]:
                who = ", ".join(sorted(set(rules)))
                found.differences.append(
                    Difference(
                        f"options {option_set}, {value}, which is read by the {who}",
                        _plain(before[value]),
                        _plain(after[value]),
                    )
                )


def _compare_texts(found: Comparison, place: str, was: Texts, now: Texts) -> None:
    for code in dict.fromkeys((*was, *now)):
        before, after = was.get(code, ""), now.get(code, "")
        if before != after:
            found.texts.append(TextChange(place, code, before, after))


def _compare_names(
    found: Comparison, kind: str, was: list[str], now: list[str]
) -> None:
    for name in was:
        if name not in now:
            found.differences.append(Difference(f"{kind} {name}", "there", "missing"))
    for name in now:
        if name not in was:
            found.differences.append(Difference(f"{kind} {name}", "missing", "there"))
    kept = [name for name in was if name in now], [name for name in now if name in was]
    for name, before, after in _moved(*kept):
        found.differences.append(
            Difference(f"{kind} {name}", f"after {before}", f"after {after}")
        )


def _moved(was: list[str], now: list[str]) -> Iterator[tuple[str, str, str]]:
    """The fewest that have to be taken out until the rest is in order."""
    before = dict(zip(was, ["the beginning", *was], strict=False))
    after = dict(zip(now, ["the beginning", *now], strict=False))
    stayed = _longest_in_order(was, now)
    for name in now:
        if name not in stayed:
            yield name, before[name], after[name]


def _longest_in_order(was: list[str], now: list[str]) -> set[str]:
    """A longest selection that stands in the same order in both."""
    position = {name: number for number, name in enumerate(was)}
    # For each length, the end of the selection that ends the earliest.
    ends: list[int] = []
    names: list[str] = []
    previous: dict[str, str | None] = {}
    for name in now:
        at = bisect_left(ends, position[name])
        previous[name] = names[at - 1] if at else None
        ends[at : at + 1] = [position[name]]
        names[at : at + 1] = [name]
    selected: set[str] = set()
    last = names[-1] if names else None
    while last is not None:
        selected.add(last)
        last = previous[last]
    return selected


def _differ(found: Comparison, place: str, was: object, now: object) -> None:
    if was != now:
        found.differences.append(Difference(place, _plain(was), _plain(now)))


def _items_in_order(definition: SurveyDefinition) -> list[str]:
    return [
        name
        for page in definition["pages"]
        for block in page["blocks"]
        for name in block["items"]
    ]


def _by_name(pages: Iterable[PageDefinition]) -> dict[str, PageDefinition]:
    return {page["name"]: page for page in pages}


def _shown(key: str, value: object) -> str:
    if key in RULES and isinstance(value, str | int | float | list):
        return as_text(value)
    return _plain(value)


def _plain(value: object) -> str:
    if value is None or value == {} or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(one)}" for key, one in value.items())
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return str(value)


def _list(differences: list[Difference]) -> str:
    told = "; ".join(map(str, differences[:3]))
    rest = len(differences) - 3
    return f"{told}; and {rest} more" if rest > 0 else told
