"""Compile a draft into the one immutable row that respondents answer.

`survey.instrument.definitions.schema` describes the result.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping

from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from survey.instrument.definitions.expressions import labels_of, references
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.instrument.definitions.rule_dependencies import (
    CycleError,
    evaluation_order,
    local_rules,
)
from survey.instrument.definitions.schema import (
    ANSWERABLE,
    RULES,
    SELECTS,
    ItemDefinition,
    OptionDefinition,
    PageDefinition,
    SurveyDefinition,
)
from survey.models import Block, Item, Page, PublishedSurvey, Survey

FORMAT = 1


class NotPublishable(Exception):
    """The draft's rows do not make a survey; the message says why."""


@transaction.atomic
def publish_survey(
    *,
    survey: Survey,
    by: User | str = "publish_survey",
    request: HttpRequest | None = None,
) -> PublishedSurvey:
    """Freeze a draft. Publishing again returns what is published already.

    A draft that was uploaded to correct another survey becomes a survey of
    its own: `survey.instrument.definitions.corrections` publishes corrections. Raises
    NotPublishable.
    """
    survey = lock_survey(survey)
    # A second click, or a command that is repeated after a lost connection.
    if survey.published_at is not None:
        return survey.published.get()
    if survey.last_change != survey.compiled_change:
        raise NotPublishable(_("It was changed in the editor: publish it there."))
    definition = compile_definition(survey)
    return freeze(survey, definition, corrects=None, by=by, request=request)


def lock_survey(survey: Survey) -> Survey:
    """Lock the survey's row until the transaction ends, and return it fresh.

    Writers to the draft's rows wait for the lock and then fail, because the
    triggers that freeze a survey take a share of it.
    """
    return Survey.objects.select_for_update().get(pk=survey.pk)


def freeze(
    survey: Survey,
    definition: SurveyDefinition,
    *,
    corrects: PublishedSurvey | None,
    by: User | str,
    request: HttpRequest | None,
) -> PublishedSurvey:
    """Store a draft's definition for good. Call it with the draft locked."""
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


def canonical_json(definition: SurveyDefinition) -> str:
    # No spaces and sorted keys: equal definitions must have equal digests.
    return json.dumps(
        definition, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


def compile_definition(
    survey: Survey, ids: Mapping[str, int] | None = None
) -> SurveyDefinition:
    """Compile the definition of a draft from its rows. Raises NotPublishable.

    `ids` are item ids by name, to keep those of the version that the draft
    corrects; other items get the ids of their own rows. 5 statements.
    """
    ids = ids or {}
    blocks = Block.objects.prefetch_related(
        Prefetch("items", queryset=Item.objects.select_related("option_set"))
    )
    pages: list[PageDefinition] = []
    items: dict[str, ItemDefinition] = {}
    for page in survey.pages.prefetch_related(Prefetch("blocks", queryset=blocks)):
        pages.append(_compile_page(page))
        page_items = {
            item.name: _compile_item(item, len(pages), ids.get(item.name, item.pk))
            for block in page.blocks.all()
            for item in block.items.all()
        }
        for compiled in page_items.values():
            if local := local_rules(compiled, page_items):
                compiled["local"] = local
        items |= page_items
    option_sets: dict[str, list[OptionDefinition]] = {
        option_set.name: [
            {
                "value": option.value,
                "label": option.label,
                "attributes": option.attributes,
            }
            for option in option_set.options.all()
        ]
        for option_set in survey.option_sets.prefetch_related("options")
    }
    _check_definition(items, option_sets)
    try:
        order = evaluation_order(items, piped_in_labels(option_sets))
    except CycleError as error:
        raise NotPublishable(
            _("Rules wait for each other: %(error)s.") % {"error": error}
        ) from error
    return {
        "format": FORMAT,
        "name": survey.name,
        "version": survey.version,
        "title": survey.title,
        "languages": survey.languages,
        "option_sets": option_sets,
        "pages": pages,
        "items": items,
        "order": order,
    }


def _compile_page(page: Page) -> PageDefinition:
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


def _compile_item(item: Item, page: int, item_id: int) -> ItemDefinition:
    compiled: ItemDefinition = {"id": item_id, "page": page, "kind": item.kind}
    if item.label:
        compiled["label"] = item.label
    if item.hint:
        compiled["hint"] = item.hint
    if item.guidance:
        compiled["guidance"] = item.guidance
    if item.option_set:
        compiled["option_set"] = item.option_set.name
    compiled.update(item.rules)
    return compiled


def _check_definition(
    items: Mapping[str, ItemDefinition],
    option_sets: Mapping[str, list[OptionDefinition]],
) -> None:
    # The workbook's reader checked all this; a draft can be changed by hand.
    if not any(item["kind"] in ANSWERABLE for item in items.values()):
        raise NotPublishable(_("Nothing in the survey can be answered."))
    for name, item in items.items():
        for rule in RULES:
            expression = item.get(rule, True)
            unknown = (references(expression) | labels_of(expression)) - items.keys()
            if unknown:
                missing = ", ".join(sorted(unknown))
                raise NotPublishable(
                    _("%(name)s: %(rule)s reads %(missing)s, not an item.")
                    % {"name": name, "rule": rule, "missing": missing}
                )
        if item["kind"] in SELECTS and not option_sets.get(item.get("option_set", "")):
            raise NotPublishable(_("%(name)s has no options.") % {"name": name})
    costs = RuleCosts(items, option_sets)
    units: Counter[int] = Counter()
    for item in items.values():
        units[item["page"]] += sum(costs.of_item(item).values())
    for page, count in units.items():
        if count > MAX_PAGE_COST:
            raise NotPublishable(
                _(
                    "The rules of page %(page)s take too long: they count"
                    " %(count)s of at most %(max_page_cost)s."
                )
                % {
                    "page": page,
                    "count": f"{count:,}",
                    "max_page_cost": f"{MAX_PAGE_COST:,}",
                }
            )
