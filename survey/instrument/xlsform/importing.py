"""Store a draft in the database."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import District, User
from survey.instrument.bank.uses import record_uses
from survey.instrument.xlsform.draft import Draft
from survey.instrument.xlsform.problems import quoted
from survey.models import (
    Block,
    Item,
    Option,
    OptionSet,
    Page,
    PublishedSurvey,
    Survey,
    SurveyMeasures,
)


class SurveyIsPublished(Exception):
    """A survey that is published, or edited, is not replaced; says what to do."""


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
    """Store a draft, replacing its owner's earlier draft of the same version.

    `district` owns it, or the state (None). `corrects` is the published survey
    whose texts it is meant to correct. Raises SurveyIsPublished if this version
    is published.
    """
    replaced = delete_earlier_draft(draft, district)
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
    create_rows(survey, draft)
    if draft.measures:
        SurveyMeasures.objects.create(survey=survey, content=draft.measures)
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


def delete_earlier_draft(draft: Draft, district: District | None) -> int | None:
    """Return its key, if there was one of this version. Raises SurveyIsPublished."""
    # Waits for a publication of this draft, which then is not replaced.
    earlier = (
        Survey.objects.select_for_update()
        .defer("source")
        .filter(name=draft.name, version=draft.version, district=district)
        .first()
    )
    if earlier is None:
        return None
    names = {"name": draft.name, "version": draft.version}
    if earlier.published_at is not None:
        raise SurveyIsPublished(
            _(
                "%(name)s %(version)s is published and cannot change: give"
                " the file a new version in its settings sheet."
            )
            % names
        )
    if earlier.last_change:
        raise SurveyIsPublished(
            _(
                "%(name)s %(version)s was changed in the editor, and the file would"
                " replace those changes: give it a new version in its settings"
                " sheet, or delete the draft first."
            )
            % names
        )
    key = earlier.pk
    earlier.delete()
    return key


def create_rows(survey: Survey, draft: Draft) -> None:
    """Create option sets, pages, blocks and items, each kind in one statement."""
    option_sets = OptionSet.objects.bulk_create(
        OptionSet(survey=survey, name=name) for name in draft.option_sets
    )
    sets = {option_set.name: option_set for option_set in option_sets}
    Option.objects.bulk_create(
        Option(
            option_set=option_set,
            position=position,
            value=option.value,
            label=option.label,
            attributes=option.attributes,
        )
        for option_set in option_sets
        for position, option in enumerate(draft.option_sets[option_set.name])
    )
    pages = Page.objects.bulk_create(
        Page(survey=survey, position=position, name=page.name, title=page.title)
        for position, page in enumerate(draft.pages)
    )
    block_drafts = [
        (page, position, block)
        for page, page_draft in zip(pages, draft.pages, strict=True)
        for position, block in enumerate(page_draft.blocks)
    ]
    blocks = Block.objects.bulk_create(
        Block(page=page, position=position, label=block.label, is_grid=block.is_grid)
        for page, position, block in block_drafts
    )
    item_drafts = [
        (block, item)
        for block, (_, _, block_draft) in zip(blocks, block_drafts, strict=True)
        for item in block_draft.items
    ]
    Item.objects.bulk_create(
        Item(
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
        for position, (block, item) in enumerate(item_drafts)
    )
    marks = {item.row.get("bank_question") for _, item in item_drafts} - {""}
    if marks:
        record_uses(survey, marks)
