"""A draft is compiled into the one row that is taken, and frozen.

The definition is canonical JSON (keys sorted, no spaces, UTF-8 as it is);
its SHA-256 is the digest under which it is kept and addressed::

    {"format": 1, "name": "climate_students", "version": "2027.1",
     "title": {"en": "...", "es": "..."},
     "languages": [{"code": "en", "name": "English", "direction": "ltr"}, ...],
     "option_sets": {"agree": [{"value": "1", "label": {"en": "..."},
                                "attributes": {"region": "x"}}]},
     "pages": [{"name": "belonging", "title": {"en": "..."},
                "blocks": [{"label": {...}, "grid": false, "items": ["q1"]}]}],
     "items": {"q1": {"id": 12, "page": 1, "kind": "select_one", ...}},
     "order": ["q1", ...]}

The first language is the default, and every text that is there at all is
there in it. Page n is `pages[n-1]`. An item has, where they are set: label,
hint and guidance (which may quote answers as ``${name}``), option_set, the
rules required, relevant (that of its groups included), constraint,
calculation and choice_filter as compiled expressions, required_message and
constraint_message, default, default_expression, read_only, randomize, seed,
appearance, range, and `local`: those of its rules that read nothing but its
own page. `order` has every item after those that its value depends on. A
version that corrects another's texts has its item ids, and `corrects`, the
digest of the first version that had them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import User
from survey.definitions.expressions import labels_of, references
from survey.definitions.rules import (
    MOST_WORK,
    CycleError,
    Work,
    evaluation_order,
    local_rules,
)
from survey.models import Block, Item, OptionSet, Page, PublishedSurvey, Survey

FORMAT = 1
RULES = (
    "required",
    "relevant",
    "constraint",
    "calculation",
    "choice_filter",
    "default_expression",
)


class NotPublishable(Exception):
    """The draft's rows do not make a survey; says why."""


@transaction.atomic
def publish_survey(
    *,
    survey: Survey,
    by: User | str = "publish_survey",
    request: HttpRequest | None = None,
) -> PublishedSurvey:
    """Freeze a draft. Publishing again returns what is published already.

    A draft that was meant to correct another's texts becomes a survey of its
    own: see `survey.definitions.corrections` for the other way. Raises NotPublishable.
    """
    survey = lock_survey(survey)
    if survey.published_at is not None:
        return survey.published.get()
    definition = compile_definition(survey)
    return freeze(survey, definition, corrects=None, by=by, request=request)


def lock_survey(survey: Survey) -> Survey:
    """It as it is now, for the rest of the transaction.

    The lock makes whoever changes a row of the draft wait, and then fail: the
    triggers ask for a share of it.
    """
    return Survey.objects.select_for_update().get(pk=survey.pk)


def freeze(
    survey: Survey,
    definition: dict[str, Any],
    *,
    corrects: PublishedSurvey | None,
    by: User | str,
    request: HttpRequest | None,
) -> PublishedSurvey:
    """Keep the definition of a draft for good; inside the lock on it."""
    text = canonical_json(definition)
    published = PublishedSurvey.objects.create(
        digest=hashlib.sha256(text.encode()).hexdigest(),
        survey=survey,
        definition=text,
    )
    survey.published_at = timezone.now()
    survey.corrects = corrects
    survey.save(update_fields=["published_at", "corrects"])
    audit.record(
        "publish correction" if corrects else "publish survey",
        by=by,
        request=request,
        subject=survey,
        district=survey.district,
        before={"corrects": corrects.digest} if corrects else None,
        after={"digest": published.digest},
    )
    return published


def canonical_json(definition: dict[str, Any]) -> str:
    return json.dumps(
        definition, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


def compile_definition(
    survey: Survey, ids: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The definition of a draft, from its rows. Raises NotPublishable.

    `ids` are those of another version's items by name, where there are any.
    """
    ids = ids or {}
    pages = _pages(survey)
    items: dict[str, dict[str, Any]] = {}
    compiled_pages = []
    for number, page in enumerate(pages, start=1):
        page_items = {
            item.name: _compiled_item(item, number, ids.get(item.name, item.pk))
            for block in page.blocks.all()
            for item in block.items.all()
        }
        for item in page_items.values():
            if local := local_rules(item, page_items):
                item["local"] = local
        items |= page_items
        compiled_pages.append(_compiled_page(page))
    option_sets = {one.name: _compiled_options(one) for one in _option_sets(survey)}
    _check(items, option_sets)
    return {
        "format": FORMAT,
        "name": survey.name,
        "version": survey.version,
        "title": survey.title,
        "languages": survey.languages,
        "option_sets": option_sets,
        "pages": compiled_pages,
        "items": items,
        "order": _order(items),
    }


def _pages(survey: Survey) -> Iterable[Page]:
    items = Item.objects.select_related("option_set")
    blocks = Block.objects.prefetch_related(Prefetch("items", queryset=items))
    return survey.pages.prefetch_related(Prefetch("blocks", queryset=blocks))


def _option_sets(survey: Survey) -> Iterable[OptionSet]:
    return survey.option_sets.prefetch_related("options")


def _compiled_page(page: Page) -> dict[str, Any]:
    return {
        "name": page.name,
        "title": page.title,
        "blocks": [
            {
                "label": block.label,
                "grid": block.is_grid,
                "items": [item.name for item in block.items.all()],
            }
            for block in page.blocks.all()
        ],
    }


def _compiled_item(item: Item, page: int, item_id: int) -> dict[str, Any]:
    texts = {"label": item.label, "hint": item.hint, "guidance": item.guidance}
    compiled: dict[str, Any] = {"id": item_id, "page": page, "kind": item.kind}
    compiled |= {key: text for key, text in texts.items() if text}
    if item.option_set:
        compiled["option_set"] = item.option_set.name
    return compiled | item.rules


def _compiled_options(option_set: OptionSet) -> list[dict[str, Any]]:
    return [
        {
            "value": option.value,
            "label": option.label,
            "attributes": option.attributes,
        }
        for option in option_set.options.all()
    ]


def _order(items: dict[str, dict[str, Any]]) -> list[str]:
    try:
        return evaluation_order(items)
    except CycleError as error:
        raise NotPublishable(f"Rules wait for each other: {error}.") from error


def _check(
    items: dict[str, dict[str, Any]], option_sets: dict[str, list[dict[str, Any]]]
) -> None:
    """What the reader checked, again: a draft can be changed by hand."""
    if not any(_is_answerable(item) for item in items.values()):
        raise NotPublishable("Nothing in the survey can be answered.")
    for name, item in items.items():
        for rule in RULES:
            unknown = _read_by(item.get(rule, True)) - items.keys()
            if unknown:
                missing = ", ".join(sorted(unknown))
                raise NotPublishable(f"{name}: {rule} reads {missing}, not an item.")
        if item["kind"] in ("select_one", "select_multiple") and not option_sets.get(
            item.get("option_set", "")
        ):
            raise NotPublishable(f"{name} has no options.")
    _check_work(items, option_sets)


def _check_work(
    items: dict[str, dict[str, Any]], option_sets: dict[str, list[dict[str, Any]]]
) -> None:
    work = Work(items, option_sets)
    units: Counter[int] = Counter()
    for item in items.values():
        units[item["page"]] += sum(work.of_item(item).values())
    for page, count in units.items():
        if count > MOST_WORK:
            raise NotPublishable(
                f"The rules of page {page} take too long: they count {count:,} of at"
                f" most {MOST_WORK:,}."
            )


def _is_answerable(item: dict[str, Any]) -> bool:
    return item["kind"] not in ("note", "calculate", "hidden")


def _read_by(expression: Any) -> set[str]:
    return references(expression) | labels_of(expression)
