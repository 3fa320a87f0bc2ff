"""The survey as plain HTML forms, for browsers that can't run its scripts.

A page is a form that posts its answers, which are saved by `page_save` under the
same rules. What a tab with JavaScript keeps in memory is read from the database for
each page, or is in the form (`tab`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from survey.database.routers import uses_forced_read_router
from survey.models import PublishedSurvey
from survey.taking import devices, resume_cookie
from survey.taking.access_refusals import is_another_persons_tab, refuse_other_person
from survey.taking.bootstrap import frame_context, language_of
from survey.taking.language_names import (
    languages_of,
    missing_language,
    missing_language_notice,
)
from survey.taking.login import LoginRefused
from survey.taking.login_session import log_in, set_login_cookies
from survey.taking.page_save import PageReply, PageSave, process_page
from survey.taking.published import Published, published_survey
from survey.taking.refusals import set_outcome
from survey.taking.rendering import Localizer
from survey.taking.saved_answers import (
    SavedAnswers,
    SessionEnded,
    read_saved_answers,
)
from survey.taking.security_headers import never_cache
from survey.taking.session import (
    RespondentSession,
    current_session,
    extend_session,
    resume_token_for,
    seed_for,
)
from survey.taking.stop import survey_stop
from survey.taking.unavailable import (
    ServiceUnavailable,
    run_with_retry,
    unavailable_response,
)
from survey.taking.without_javascript.answers import FIELD, PageAnswers
from survey.taking.without_javascript.notices import (
    cannot_go_on,
    refuse_code,
    send_again,
)
from survey.taking.without_javascript.rendering import (
    answers_elsewhere,
    page_blocks,
    problem_list,
)
from survey.taking.without_javascript.tab import (
    PlainForm,
    PlainTab,
    make_form,
    open_tab,
    own_items,
    read_form,
    read_tab,
    short_digest,
)

# Before the code of a language, on the buttons that change it.
LANGUAGE = "in-"
# What a page says that is shown again because of its own answers.
NEW = {"questions": "new_questions", "options": "new_options"}


class OtherResponse(Exception):
    """The request is answered by another page."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a tab: who, which survey, and what is saved."""

    request: HttpRequest
    session: RespondentSession
    published: Published
    saved: SavedAnswers
    tab: PlainTab
    language: str
    # The person looks at some questions again, and returns to the review.
    from_review: bool
    # The language chosen at login, if the survey lacks it.
    missing: str

    def address(self, route: str, *args: int, **query: str) -> str:
        common = {"tag": self.session.tag, "language": self.language}
        return self.tab.address(route, *args, **common, **query)

    def page(self, n: int, **query: str) -> str:
        if self.from_review:
            query["review"] = "1"
        return self.address("survey_plain_page", n, **query)

    def review(self) -> str:
        return self.address("survey_complete")


Action = Callable[[Visit, PageAnswers], HttpResponse]


@never_cache
@require_safe
@uses_forced_read_router(PublishedSurvey)
def survey_plain_start(request: HttpRequest) -> HttpResponse:
    """Open the page where this person begins or goes on, else the review. 1 read."""
    return _answer(request, 1, _start)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@uses_forced_read_router(PublishedSurvey)
def survey_plain_page(request: HttpRequest, n: int) -> HttpResponse:
    """Show a page as a form; POST: save it, and go on.

    GET: 1 read. POST: 1 read and 1 write; 2 reads more if another tab was first.
    Once an hour 1 session write.
    """
    return _answer(request, n, _save if request.method == "POST" else _show_page)


def _answer(request: HttpRequest, n: int, act: Action) -> HttpResponse:
    def run() -> HttpResponse:
        visit = _open_visit(request)
        if not 1 <= n <= len(visit.published.answerable):
            raise Http404
        response = act(visit, _answers_of(visit, n))
        if visit.session.needs_extension():
            extend_session(request)
            resume_cookie.set_resume_cookie(response, resume_token_for(visit.session))
        return response

    login = None
    try:
        # The session was over, and the code comes with the answers.
        if "code" in request.POST:
            login = run_with_retry(lambda: log_in(request))
        response = run_with_retry(run)
    except LoginRefused as refused:
        return refuse_code(request, refused)
    except OtherResponse as other_response:
        response = other_response.response
    except ServiceUnavailable as unavailable:
        if request.method == "POST":
            response = send_again(request)
        else:
            response = unavailable_response(request, unavailable.key)
    if login is not None:
        set_login_cookies(response, request, *login)
    return response


def _open_visit(request: HttpRequest) -> Visit:
    """Read who asks, and what is saved. 1 statement, 1 session read.

    Raises OtherResponse.
    """
    session = current_session(request)
    if session is None:
        raise OtherResponse(cannot_go_on(request, "session"))
    if is_another_persons_tab(request, session):
        raise OtherResponse(refuse_other_person(request))
    published = published_survey(session.digest)
    fields = request.POST if request.method == "POST" else request.GET
    try:
        device = devices.device_of(request.COOKIES)
        saved = read_saved_answers(session, published, device)
    except SessionEnded as ended:
        raise OtherResponse(cannot_go_on(request, ended.reason)) from None
    if saved.completed_at is not None:
        raise OtherResponse(redirect("survey_complete"))
    return Visit(
        request=request,
        session=session,
        published=published,
        saved=saved,
        tab=read_tab(request, session) or open_tab(session, saved),
        language=language_of(request, session, published),
        from_review="review" in fields,
        missing=missing_language(request.GET.get("missing", ""), published.definition),
    )


def _answers_of(visit: Visit, n: int) -> PageAnswers:
    """Return what this tab may show: on a new device, what it saved itself."""
    saved = visit.saved
    shown = set(saved.answers)
    if saved.hidden:
        shown &= set(own_items(visit.tab, visit.published, saved))
    now = timezone.localtime()
    return PageAnswers(
        visit.published,
        n,
        stored={name: text for name, text in saved.answers.items() if name in shown},
        earlier=set(saved.answers) - shown,
        today=now.date().isoformat(),
        now=now.isoformat(timespec="seconds"),
        language=visit.language,
    )


def _start(visit: Visit, answers: PageAnswers) -> HttpResponse:
    page = answers.start_page()
    if page is not None:
        query = {"missing": visit.missing} if visit.missing else {}
        return redirect(visit.page(page, **query))
    # Otherwise the way back from the review would lead to the review.
    if visit.from_review:
        return redirect(visit.page(max(answers.state.visible_pages(), default=1)))
    return redirect(visit.review())


def _show_page(visit: Visit, answers: PageAnswers) -> HttpResponse:
    if answers.n not in answers.state.visible_pages():
        return redirect(visit.address("survey_plain_start"))
    notice = NEW.get(visit.request.GET.get("new", ""))
    return _render(visit, answers, notice=notice)


def _save(visit: Visit, answers: PageAnswers) -> HttpResponse:
    posted = visit.request.POST
    form = read_form(posted.get("form", ""))
    if form is None:
        return _show_typed(visit, answers)
    if not form.is_of(visit.session, answers.n):
        return redirect(visit.page(answers.n))
    go = posted.get("go", "next")
    offered = answers.offered()
    answers.take_posted(posted, form.before.keys())
    # Questions and options that only these answers brought up were not seen yet.
    names = form.before.keys() - answers.newly_offered(offered)
    problems = {name: key for name, key in answers.problems().items() if name in names}
    save = PageSave(
        revision=form.revision,
        answers=answers.content(
            names, passed=go in ("next", "review") and not problems
        ),
        seen=form.seen,
        shown=form.shown if len(form.shown) > 1 else (),
    )
    reply = process_page(visit.session, visit.published, answers.n, save)
    is_stopping = go == "stop" and reply.status == 200
    if is_stopping:
        response = survey_stop(visit.request)
    else:
        response = _after_save(visit, answers, form, names, problems, reply)
    set_outcome(response, reply.outcome)
    if is_stopping:
        # The session has ended, and is not extended.
        raise OtherResponse(response)
    return response


def _after_save(
    visit: Visit,
    answers: PageAnswers,
    form: PlainForm,
    names: Collection[str],
    problems: Mapping[str, str],
    reply: PageReply,
) -> HttpResponse:
    """Show what the person asked for, or why the page could not be left.

    `names` are the items that the form showed with all their options.
    """
    go = visit.request.POST.get("go", "next")
    if reply.content.get("error") == "superseded":
        return _merge(visit, answers, form)
    if reply.status == 422:
        problems = cast(dict[str, str], reply.content["items"])
    elif reply.status != 200:
        return cannot_go_on(visit.request, str(reply.content["error"]))
    elif go != "next":
        # A required answer may still be missing: the review lists it.
        problems = answers.withheld()
    if problems:
        # The answers that have no problem are saved, so the next save is another.
        revision = visit.tab.next_revision(form.revision + 1)
        newer = replace(form, revision=revision)
        return _render(visit, answers, form=newer, problems=problems, status=422)
    if go == "next" and answers.unseen(names):
        new = "questions" if answers.unseen(form.before) else "options"
        return redirect(visit.page(answers.n, new=new))
    return redirect(_address_after(visit, answers, go))


def _address_after(visit: Visit, answers: PageAnswers, go: str) -> str:
    to: int | None = answers.n
    if go.startswith(LANGUAGE):
        language = go.removeprefix(LANGUAGE)
        if language in visit.published.languages:
            visit = replace(visit, language=language)
    elif go == "back":
        to = answers.before() or answers.n
    else:
        to = answers.after() if go == "next" else None
    return visit.review() if to is None else visit.page(to, saved="1")


def _show_typed(visit: Visit, answers: PageAnswers) -> HttpResponse:
    """Show the page again with what was typed into a form that can't be read.

    It is unknown what that form had shown, so nothing is saved before the person has
    seen what it would replace. 1 read.
    """
    names = [name for name in answers.items if FIELD + name in visit.request.POST]
    made = make_form(visit.tab, visit.published, answers.n, visit.saved, {})
    answers.take_posted(visit.request.POST, names)
    form = replace(made, before=dict.fromkeys(names, short_digest("")))
    return _merge(
        visit,
        answers,
        form,
        notice="shown_again_plain",
        elsewhere_message="saved_before",
    )


def _merge(
    visit: Visit,
    answers: PageAnswers,
    form: PlainForm,
    *,
    notice: str = "superseded_plain",
    elsewhere_message: str = "saved_elsewhere",
) -> HttpResponse:
    """Show the page with both sides' answers, for the person to choose. 1 read.

    What was changed in this form stays in it; what another tab or device saved
    meanwhile is written below, or replaces what was not changed here.
    """
    device = devices.device_of(visit.request.COOKIES)
    saved = read_saved_answers(visit.session, visit.published, device)
    visit = replace(visit, saved=saved)
    merged = _answers_of(visit, answers.n)
    theirs = {name: merged.text(name) for name in form.before}
    conflicts = {}
    for name, text in theirs.items():
        mine = answers.given.get(name, "")
        if name not in answers.mistyped and not form.is_changed(name, mine):
            continue
        merged.given[name] = mine
        merged.untouched.discard(name)
        if name in answers.mistyped:
            merged.mistyped[name] = answers.mistyped[name]
        if form.is_changed(name, text) and text != mine:
            conflicts[name] = text
    merged.recompute()
    newer = make_form(visit.tab, visit.published, answers.n, saved, theirs)
    return _render(
        visit,
        merged,
        form=newer,
        elsewhere=conflicts,
        elsewhere_message=elsewhere_message,
        notice=notice,
        status=409,
    )


def _render(
    visit: Visit,
    answers: PageAnswers,
    *,
    form: PlainForm | None = None,
    problems: Mapping[str, str] | None = None,
    elsewhere: Mapping[str, str] | None = None,
    elsewhere_message: str = "saved_elsewhere",
    notice: str | None = None,
    status: int = 200,
) -> HttpResponse:
    """Show the form of a page. `form` says what an earlier form was made of."""
    n, published, language = answers.n, visit.published, visit.language
    definition = published.definition
    localizer = Localizer.of(definition, language, answers.state.values)
    frame = frame_context(published, language, visit.saved.role)
    words = cast(dict[str, str], frame["words"])
    texts = {name: answers.text(name) for name in answers.visible_items()}
    made = make_form(visit.tab, published, n, visit.saved, texts)
    if form is not None:
        before = {name: form.before.get(name, made.before[name]) for name in texts}
        made = replace(form, before=before)
    listed = problem_list(answers, problems or {}, words, language)
    title = definition["pages"][n - 1].get("title")
    place, pages = answers.place()
    seed = seed_for(visit.session.administration_id, visit.session.respondent_id)
    context = {
        **frame,
        "n": n,
        "place_of_page": place,
        "pages": pages,
        "languages": languages_of(definition),
        "language_notice": missing_language_notice(visit.missing, definition, language),
        "language_prefix": LANGUAGE,
        "page_title": localizer.text(title),
        "page_direction": localizer.direction,
        "words_attributes": localizer.messages()[1],
        "blocks": page_blocks(
            answers,
            localizer,
            seed=seed,
            problems={problem.name: problem.message for problem in listed},
            elsewhere=answers_elsewhere(answers, elsewhere or {}, words),
        ),
        "problems": listed,
        "notice": words.get(notice or ""),
        "elsewhere_message": words[elsewhere_message],
        "is_saved": "saved" in visit.request.GET and not problems,
        "has_kept": any(answers.is_kept(name) for name in answers.items),
        "action": reverse("survey_plain_page", args=[n]),
        "form": made.signed(),
        "plain_tab": visit.tab.signed(),
        "tag": visit.session.tag,
        "from_review": visit.from_review,
        "is_first": answers.before() is None,
        "may_decline": visit.saved.may_decline,
        "is_last": answers.after() is None,
        "place": visit.saved.place,
    }
    return render(visit.request, "survey/plain_page.html", context, status=status)
