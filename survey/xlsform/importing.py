"""A draft to rows."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest

from accounts import audit
from accounts.models import District, User
from survey.models import (
    Block,
    Item,
    Option,
    OptionSet,
    Page,
    PublishedSurvey,
    Survey,
)
from survey.xlsform.draft import Draft, ItemDraft
from survey.xlsform.problems import quoted


class SurveyIsPublished(Exception):
    """A published survey never changes; says what to do instead."""


@transaction.atomic
def import_survey(
    *,
    draft: Draft,
    source_name: str = "",
    source: bytes = b"",
    district: District | None = None,
    corrects: PublishedSurvey | None = None,
    by: User | str = "import_survey",
    request: HttpRequest | None = None,
) -> Survey:
    """Store the draft, in place of its owner's earlier one of this version.

    `district` owns it, or the state (None). `corrects` says whose texts it is
    meant to mend. Raises SurveyIsPublished where that version is published.
    """
    replaced = _remove_earlier(draft, district)
    survey = Survey.objects.create(
        district=district,
        name=draft.name,
        version=draft.version,
        title=draft.title,
        languages=draft.languages,
        source_name=quoted(source_name, 255),
        source=source or None,
        corrects=corrects,
        uploaded_by=by if isinstance(by, User) else None,
    )
    sets = _create_option_sets(survey, draft)
    _create_pages(survey, draft, sets)
    audit.record(
        "upload survey",
        by=by,
        request=request,
        subject=survey,
        district=district,
        before={"draft": replaced} if replaced else None,
        after={"file": survey.source_name},
    )
    return survey


def _remove_earlier(draft: Draft, district: District | None) -> int | None:
    earlier = (
        Survey.objects.select_for_update()
        .defer("source")
        .filter(name=draft.name, version=draft.version, district=district)
        .first()
    )
    if earlier is None:
        return None
    if earlier.published_at is not None:
        raise SurveyIsPublished(
            f"{draft.name} {draft.version} is published and cannot change: give the"
            " file a new version in its settings sheet."
        )
    removed: int = earlier.pk
    earlier.delete()
    return removed


def _create_option_sets(survey: Survey, draft: Draft) -> dict[str, OptionSet]:
    sets = OptionSet.objects.bulk_create(
        OptionSet(survey=survey, name=name) for name in draft.option_sets
    )
    Option.objects.bulk_create(
        Option(
            option_set=option_set,
            position=position,
            value=option.value,
            label=option.label,
            attributes=option.attributes,
        )
        for option_set in sets
        for position, option in enumerate(draft.option_sets[option_set.name])
    )
    return {option_set.name: option_set for option_set in sets}


def _create_pages(survey: Survey, draft: Draft, sets: dict[str, OptionSet]) -> None:
    pages = Page.objects.bulk_create(
        Page(survey=survey, position=position, name=page.name, title=page.title)
        for position, page in enumerate(draft.pages)
    )
    drafts = [
        (page, position, block)
        for page, page_draft in zip(pages, draft.pages, strict=True)
        for position, block in enumerate(page_draft.blocks)
    ]
    blocks = Block.objects.bulk_create(
        Block(page=page, position=position, label=block.label, is_grid=block.is_grid)
        for page, position, block in drafts
    )
    items = [
        (block, item)
        for block, (_, _, block_draft) in zip(blocks, drafts, strict=True)
        for item in block_draft.items
    ]
    Item.objects.bulk_create(
        _item(survey, block, position, item, sets)
        for position, (block, item) in enumerate(items)
    )


def _item(
    survey: Survey,
    block: Block,
    position: int,
    item: ItemDraft,
    sets: dict[str, OptionSet],
) -> Item:
    return Item(
        survey=survey,
        block=block,
        position=position,
        name=item.name,
        kind=item.kind,
        label=item.label,
        hint=item.hint,
        guidance=item.guidance,
        option_set=sets.get(item.option_set),
        rules=item.rules,
    )
