"""The editor of a draft: outline, the page as respondents see it, and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import quote

from csp.constants import NONE, SELF
from csp.decorators import csp_replace, csp_update
from django.conf.locale import LANG_INFO
from django.contrib import messages
from django.http import HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import escape
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from accounts.templatetags.console import icon
from survey.console.surveys.editor.acts import carry_out
from survey.console.surveys.editor.canvas import Canvas
from survey.console.surveys.editor.field_views import Panel, View
from survey.console.surveys.editor.fields import GRID_KIND
from survey.console.surveys.editor.outcome import Outcome
from survey.console.surveys.editor.outline import GRID, Entry, Outline, PageEntry
from survey.console.surveys.editor.panels import KIND_NAMES, PanelBuilder
from survey.console.surveys.editor.presence import presence_address
from survey.console.surveys.editor.rules import EditorRuleForm
from survey.console.surveys.editor.saving import Conflict, FieldsChanged
from survey.console.surveys.views import own_survey_or_404
from survey.instrument.drafts.collector import paused_collector
from survey.instrument.drafts.commands import CommandRefused, languages_of, title_of
from survey.instrument.drafts.reading import DraftReading, read_rows_of
from survey.instrument.drafts.store import (
    AlreadyDone,
    DraftIsPublished,
    redoable,
    undoable,
)
from survey.instrument.drafts.workbook import ChangeConflict, LimitReached
from survey.instrument.xlsform.languages import Language
from survey.models import Survey

TEMPLATES = "survey/console/editor/"
# The digests of the pages that a browser shows in its outline, without separators:
# pages that are the same are not sent again.
OUTLINE_HEADER = "X-Outline"
# So short that those of 1,000 pages are a header that servers accept.
DIGEST_LENGTH = 8
# Languages to choose from; others are typed.
LANGUAGES = sorted(
    f"{info['name_local'].capitalize()} ({code})"
    for code, info in LANG_INFO.items()
    if "name_local" in info
)


class Editor:
    """A draft as one user looks at it: the selected row, page and languages."""

    def __init__(
        self,
        request: StaffRequest,
        survey: Survey,
        data: QueryDict,
        rules: Mapping[str, EditorRuleForm] | None = None,
    ) -> None:
        self.rules = rules or {}
        self.request = request
        self.survey = survey
        self.data = data
        self.at = data.get("at", "")
        # To begin in, as the check of a draft leads to it.
        self.field = data.get("field", "")

    @cached_property
    def reading(self) -> DraftReading:
        return read_rows_of(self.survey, with_pyxform=False)

    @cached_property
    def languages(self) -> list[Language]:
        return languages_of(self.reading.book)

    @cached_property
    def view(self) -> View:
        codes = [language.code for language in self.languages]
        asked = self.data.get("language", "")
        language = asked if asked in codes else codes[0]
        second = self.data.get("second", "")
        second = second if second in codes and second != language else ""
        return View(language, second, self.data.get("options", ""))

    @cached_property
    def outline(self) -> Outline:
        return Outline(self.reading, self.view.language)

    @property
    def page(self) -> PageEntry | None:
        if page := self.outline.page_of(self.at):
            return page
        pages = self.outline.pages
        asked = self.data.get("page", "")
        number = (
            int(asked)
            if asked.isascii() and asked.isdecimal() and len(asked) < 6
            else 1
        )
        return pages[min(max(number, 1), len(pages)) - 1] if pages else None

    @cached_property
    def canvas(self) -> Canvas:
        return Canvas(
            self.outline,
            self.page,
            self.view.language,
            shows_all_options=self.view.options == "all",
        )

    @cached_property
    def panel(self) -> Panel:
        return PanelBuilder(self.reading, self.outline, self.view, self.rules).build(
            self.at
        )

    @property
    def state(self) -> dict[str, str]:
        """Return what each request tells of what its user looks at."""
        state = {
            "at": self.at,
            "language": self.view.language,
            "second": self.view.second,
            "options": self.view.options,
            "page": str(self.page.number) if self.page else "",
        }
        if state["language"] == self.languages[0].code:
            state["language"] = ""
        return {name: value for name, value in state.items() if value}

    @cached_property
    def last_change(self) -> int:
        """Return the number of the change that *Undo* takes back, or 0."""
        change = undoable(self.survey, self.request.user)
        return change.number if change else 0

    def address(self, **changed: str) -> str:
        state = {**self.state, **changed}
        query = urlencode({name: value for name, value in state.items() if value})
        return reverse("survey_edit", args=[self.survey.pk]) + (query and f"?{query}")

    def context(self) -> dict[str, object]:
        wrong = self.outline.wrong_keys()
        return {
            "editor": self,
            "survey": self.survey,
            "title": title_of(self.reading.book) or self.survey.name,
            "outline": self.outline,
            "outline_html": self.outline_html(),
            "page": self.page,
            "panel": self.panel,
            "view": self.view,
            "languages": self.languages,
            "kinds": kinds_to_add(),
            "tokens": LANGUAGES,
            "wrong": len(wrong),
            "first_wrong": wrong[0] if wrong else "",
            "undo": self.last_change,
            "redo": redoable(self.survey, self.request.user) is not None,
            "presence_address": presence_address(self.survey),
            "canvas_address": reverse("survey_edit_canvas", args=[self.survey.pk])
            + "?"
            + urlencode(self.state),
        }

    def outline_html(self) -> SafeString:
        """Render the outline. Not by a template: a survey may have 1,000 rows."""
        return SafeString("".join(map(self._page_html, self.outline.pages)))

    def _page_html(self, page: PageEntry) -> str:
        current = " ed-current" if page is self.page else ""
        if page.section:
            current += " ed-sectioned"
        key = f' data-key="{escape(page.key)}"' if page.key else ""
        number = f'<span class="ed-number">{page.number}</span>'
        section = self._section_html(page)
        title = page.title or _("Page %(number)s") % {"number": page.number}
        link = self._link(
            page.key or (page.entries[0].key if page.entries else ""),
            f'{number}<span class="ed-text" dir="auto">{escape(title)}</span>',
            is_current=bool(page.key) and page.key == self.at,
            problems=len(page.problems),
        )
        entries = "".join(map(self._entry_html, page.entries))
        content = (
            f' class="ed-page{current}" data-page="{page.number}"{key}>'
            f'{section}<div class="ed-line ed-head"{key}>{link}</div>'
            f'<ol class="ed-entries">{entries}</ol></li>'
        )
        digest = digest_of(content)
        if page.key and digest in self.known_pages:
            return f"<li{key} data-same></li>"
        return f'<li data-digest="{digest}"{content}'

    def _section_html(self, page: PageEntry) -> str:
        """Render the title of the section that begins with a page."""
        if not page.begins_section:
            return ""
        title = escape(page.section_title) or _("Section without a title")
        return f'<p class="ed-section" dir="auto">{title}</p>'

    @cached_property
    def known_pages(self) -> set[str]:
        """Return the digests of the outline's pages as the browser shows them."""
        known = self.request.headers.get(OUTLINE_HEADER, "")
        return {
            known[start : start + DIGEST_LENGTH]
            for start in range(0, len(known), DIGEST_LENGTH)
        }

    def _entry_html(self, entry: Entry) -> str:
        number = self.grid_icon if entry.sort == GRID else entry.number or ""
        missing = " ed-missing" if entry.is_unfinished else ""
        text = escape(entry.text) or _("No text yet")
        link = self._link(
            entry.key,
            f'<span class="ed-number">{number}</span>'
            f'<span class="ed-text{missing}" dir="auto">{text}</span>'
            f'<span class="ed-name">{escape(entry.name)}</span>',
            is_current=entry.key == self.at,
            problems=len(entry.problems),
            reads_later=entry.reads_later,
        )
        inner = " ed-inner" if entry.depth else ""
        return (
            f'<li class="ed-line ed-{entry.sort}{inner}" data-key="{escape(entry.key)}"'
            f' data-depth="{entry.depth}">{link}</li>'
        )

    def _link(
        self,
        key: str,
        content: str,
        *,
        is_current: bool,
        problems: int,
        reads_later: bool = False,
    ) -> str:
        current = ' aria-current="true"' if is_current else ""
        mark = self.mark if problems else self.later_mark if reads_later else ""
        return (
            f'<a href="{self.base}{quote(key)}" data-at="{escape(key)}"{current}>'
            f"{content}{mark}</a>"
        )

    @cached_property
    def base(self) -> str:
        """Return the address of a row, as HTML, without its key."""
        return escape(self.address(at="", page="", options="") + "&at=").replace(
            "/edit/&amp;", "/edit/?", 1
        )

    @cached_property
    def grid_icon(self) -> str:
        return icon("rows-3")

    @cached_property
    def mark(self) -> str:
        return mark_of("ed-mark", _("There is a problem here"))

    @cached_property
    def later_mark(self) -> str:
        words = _("It reads the answer to a question that comes later")
        return mark_of("ed-mark ed-later", words)


def mark_of(names: str, words: str) -> str:
    words = escape(words)
    return (
        f'<span class="{names}" title="{words}">'
        f'<span class="visually-hidden">{words}</span></span>'
    )


def digest_of(html: str) -> str:
    digest = hashlib.blake2b(html.encode(), digest_size=DIGEST_LENGTH // 2)
    return digest.hexdigest()


def kinds_to_add() -> list[tuple[str, str]]:
    """Return what can be added, and its name: choices first."""
    kinds = [(kind, str(words)) for kind, words in KIND_NAMES.items()]
    return [*kinds[:2], (GRID_KIND, _("grid: statements with one scale")), *kinds[2:]]


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Show the editor, or as JSON what it shows for another selection."""
    survey = own_survey_or_404(request, pk)
    if survey.published_at is not None:
        sentence = _("This version is published and can’t change. Start a new version.")
        if _wants_json(request):
            return JsonResponse({"published": True, "error": sentence}, status=409)
        messages.info(request, sentence)
        return redirect("survey_detail", pk)
    if survey.corrects_id is not None:
        return _only_texts(request, survey)
    editor = Editor(request, survey, request.GET)
    if _wants_json(request):
        return JsonResponse(_parts(editor))
    if "at" not in request.GET:
        editor.at = editor.outline.first_key()
    return _page(request, editor)


def _only_texts(request: StaffRequest, survey: Survey) -> HttpResponseBase:
    """Lead to the texts of a correction: nothing else of it may change."""
    sentence = _("You can only change the texts of a correction.")
    if _wants_json(request):
        # As for a published survey, the page shows the sentence and ends there.
        return JsonResponse({"published": True, "error": sentence}, status=409)
    messages.info(request, sentence)
    return redirect("survey_edit_texts", survey.pk)


@paused_collector()
def _page(request: StaffRequest, editor: Editor) -> HttpResponseBase:
    response = render(request, f"{TEMPLATES}page.html", editor.context())
    return csp_update({"frame-src": [SELF]})(lambda _: response)(request)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_canvas(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Return a page of the draft with respondents' style sheets, for the frame."""
    survey = own_survey_or_404(request, pk)
    editor = Editor(request, survey, request.GET)
    context = {
        "canvas": editor.canvas,
        "html": SafeString(editor.canvas.html),
        "marks": editor.canvas.marks(),
        "language": editor.view.language,
        "direction": editor.canvas.direction,
        "title": _("Page"),
    }
    response = render(request, f"{TEMPLATES}canvas.html", context)
    policy = {"frame-ancestors": [SELF], "connect-src": [NONE], "form-action": [NONE]}
    return xframe_options_sameorigin(csp_replace(policy)(lambda _: response))(request)


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_edit_change(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Save fields and do one thing; answer with what the editor shows then.

    Without JavaScript it redirects to the editor.
    """
    survey = own_survey_or_404(request, pk)
    if survey.corrects_id is not None and survey.published_at is None:
        return _only_texts(request, survey)
    outcome = Outcome(request.POST.get("at", ""))
    status, refusal = 200, Refusal()
    try:
        outcome = carry_out(survey, request.POST, by=request.user)
    except AlreadyDone as repeated:
        about = repeated.change.about
        outcome.at, outcome.focus = about.get("at", outcome.at), about.get("focus", "")
    except FieldsChanged as changed:
        status = 409
        refusal = Refusal(conflicts=[_in_words(row) for row in changed.conflicts])
    except ChangeConflict as error:
        is_published = isinstance(error, DraftIsPublished)
        status, refusal = 409, Refusal(str(error), is_published=is_published)
    except (CommandRefused, LimitReached) as error:
        status, refusal = 422, Refusal(str(error))
    survey.refresh_from_db(fields=["last_change"])
    editor = Editor(request, survey, request.POST, outcome.rules)
    editor.at = outcome.at
    if not _wants_json(request):
        # Conditions are added and chosen by buttons, each of which shows the page.
        if outcome.has_unsaved_rule:
            return _page(request, editor)
        for sentence in refusal.sentences():
            messages.error(request, sentence)
        if outcome.message:
            messages.success(request, outcome.message)
        return redirect(editor.address(at=outcome.at))
    if refusal.is_published:
        return JsonResponse({"published": True, "error": refusal.error}, status=status)
    body = _parts(editor, outcome)
    if refusal.conflicts:
        body["conflicts"] = refusal.conflicts
    elif refusal.error:
        body["error"] = refusal.error
    return JsonResponse(body, status=status)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a change was not stored."""

    error: str = ""
    conflicts: list[dict[str, object]] = field(default_factory=list)
    is_published: bool = False

    def sentences(self) -> list[str]:
        return [
            *filter(None, [self.error]),
            *(str(row["sentence"]) for row in self.conflicts),
        ]


def _wants_json(request: StaffRequest) -> bool:
    return request.headers.get("Accept", "") == "application/json"


@paused_collector()
def _parts(editor: Editor, outcome: Outcome | None = None) -> dict[str, object]:
    """Return the parts of the page that a change may have changed."""
    context = editor.context()
    request = editor.request
    body: dict[str, object] = {
        "change": editor.survey.last_change,
        "at": editor.at,
        "address": editor.address(),
        "title": context["title"],
        "wrong": render_to_string(f"{TEMPLATES}_wrong.html", context, request),
        "outline": context["outline_html"],
        "settings": render_to_string(f"{TEMPLATES}_settings.html", context, request),
        "bar": render_to_string(f"{TEMPLATES}_bar.html", context, request),
        "canvas": {
            "html": editor.canvas.html,
            "marks": editor.canvas.marks(),
            "language": editor.view.language,
            "direction": editor.canvas.direction,
        },
        "page": editor.page.number if editor.page else 0,
        "undo": editor.last_change,
        "redo": context["redo"],
    }
    if outcome is not None:
        body |= {
            "focus": outcome.focus,
            "message": outcome.message,
            "offersUndo": outcome.offers_undo,
            "hasUnsavedRule": outcome.has_unsaved_rule,
            "ruleState": outcome.rule_state,
            "readersReason": outcome.readers_reason,
            "readers": [
                {"key": key, "text": text, "href": editor.address(at=key)}
                for key, text in outcome.readers
            ],
        }
    return body


def _in_words(conflict: Conflict) -> dict[str, object]:
    by = conflict.by or _("Somebody")
    at = conflict.at
    time = date_format(localtime(at), "TIME_FORMAT") if at else ""
    if at is None:
        sentence = _("%(name)s changed this meanwhile.") % {"name": by}
    elif conflict.is_own:
        sentence = _("You changed this in another window at %(time)s.") % {"time": time}
    else:
        sentence = _("%(name)s changed this at %(time)s.") % {"name": by, "time": time}
    return {
        "address": conflict.address,
        "theirs": conflict.theirs,
        "mine": conflict.mine,
        "isOwn": conflict.is_own,
        "sentence": sentence,
    }
