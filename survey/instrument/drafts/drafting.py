"""Start a draft, show and export it as it is now, and publish it."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import audit
from accounts.models import District, User
from survey.instrument.definitions.publishing import (
    NotPublishable,
    compile_definition,
    publish_survey,
)
from survey.instrument.definitions.schema import SurveyDefinition, load_definition
from survey.instrument.drafts.commands import (
    languages_of,
    set_setting,
    title_of,
)
from survey.instrument.drafts.exporting import workbook_of
from survey.instrument.drafts.reading import (
    DraftReading,
    read_rows_of,
    read_stored_rows,
)
from survey.instrument.drafts.source_workbook import workbook_like
from survey.instrument.drafts.store import (
    NameIsTaken,
    create_sheets,
    load_book,
    lock_draft,
)
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform.draft import Draft
from survey.instrument.xlsform.importing import create_rows
from survey.models import PublishedSurvey, Survey, SurveyMeasures


@transaction.atomic
def start_draft(
    *,
    book: DraftBook,
    name: str,
    version: str,
    title: str,
    district: District | None,
    by: User,
    corrects: PublishedSurvey | None = None,
    request: HttpRequest | None = None,
) -> Survey:
    """Create a draft with a copy of these sheets; `district` owns it, or the state.

    Raises NameIsTaken.
    """
    set_setting(book, field="name", text=name)
    set_setting(book, field="version", text=version)
    if title and title != title_of(book):
        set_setting(book, field="title", text=title, language=languages_of(book)[0])
    try:
        with transaction.atomic():
            survey = Survey.objects.create(
                district=district,
                name=name,
                version=version,
                title={language.code: title for language in languages_of(book)[:1]},
                languages=[language.as_json() for language in languages_of(book)],
                corrects=corrects,
                uploaded_by=by,
                # Its rows are what counts from the start, and no upload replaces it.
                last_change=1,
            )
    except IntegrityError:
        raise NameIsTaken(name, version) from None
    create_sheets(survey, book)
    # The pages that read items and pages of a draft see them at once.
    refresh_rows(survey, must_work=False)
    audit.record(
        "start survey draft",
        by=by,
        request=request,
        subject=survey,
        district=district,
        after={"name": name, "version": version},
    )
    return survey


@transaction.atomic
def refresh_rows(survey: Survey, *, must_work: bool = True) -> DraftReading:
    """Make pages, items and options those of the draft's rows, if they are older.

    Raises NotPublishable if the rows have problems, unless it need not work.
    """
    survey = lock_draft(survey)
    reading = read_stored_rows(survey)
    if reading.problems or reading.draft is None:
        if must_work:
            raise NotPublishable(problems_in_words(reading))
        return reading
    if survey.compiled_change != survey.last_change or not survey.pages.exists():
        _replace_rows(survey, reading.draft)
    return reading


def definition_to_show(survey: Survey) -> SurveyDefinition | None:
    """Return a survey as published, or a draft as its rows are now.

    A draft with problems has no rules; None if nothing can be shown.
    """
    if survey.published_at is not None:
        return load_definition(survey.published.get().definition)
    if survey.last_change:
        return read_rows_of(survey).definition
    try:
        return compile_definition(survey)
    except NotPublishable:
        return None


def exported_workbook(survey: Survey) -> bytes:
    """Write a survey as a workbook that names it, also if its file's name did."""
    book = load_book(survey)
    set_setting(book, field="name", text=survey.name)
    set_setting(book, field="version", text=survey.version)
    source = Survey.objects.values_list("source", flat=True).get(pk=survey.pk)
    return workbook_of(book) if source is None else workbook_like(book, bytes(source))


def is_stale(survey: Survey) -> bool:
    """Return whether the draft was changed since its pages and items were made."""
    return survey.last_change != survey.compiled_change


def is_unchecked(survey: Survey) -> bool:
    """Return whether the rows may have problems that nobody has been told. 1 statement.

    An uploaded workbook may differ from the question bank: it was not compared then.
    """
    return is_stale(survey) or survey.bank_uses.exists()


def _replace_rows(survey: Survey, draft: Draft) -> None:
    survey.pages.all().delete()
    survey.option_sets.all().delete()
    SurveyMeasures.objects.filter(survey=survey).delete()
    create_rows(survey, draft)
    if draft.measures:
        SurveyMeasures.objects.create(survey=survey, content=draft.measures)
    survey.title, survey.languages = draft.title, draft.languages
    survey.compiled_change = survey.last_change
    survey.save(update_fields=["title", "languages", "compiled_change"])


def problems_in_words(reading: DraftReading) -> str:
    count = len(reading.problems)
    first = reading.problems[0] if reading.problems else None
    return ngettext(
        "It has %(count)s problem: %(first)s.",
        "It has %(count)s problems. The first one: %(first)s.",
        count,
    ) % {"count": count, "first": first or _("it is empty")}


@transaction.atomic
def publish_draft(
    *,
    survey: Survey,
    seen: str | None = None,
    by: User | str = "publish_survey",
    request: HttpRequest | None = None,
) -> PublishedSurvey:
    """Publish a draft as its rows are now. Raises NotPublishable.

    `seen` is the number of the last change that was shown: what somebody else has
    changed since is not published unseen.
    """
    survey = Survey.objects.defer("source").select_for_update().get(pk=survey.pk)
    if survey.published_at is None:
        if seen is not None and seen != str(survey.last_change):
            raise NotPublishable(
                _("The draft was changed while this page was open. Check it again.")
            )
        if is_unchecked(survey):
            refresh_rows(survey)
    return publish_survey(survey=survey, by=by, request=request)
