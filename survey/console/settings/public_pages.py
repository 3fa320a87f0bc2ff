"""The pages on privacy and accessibility: public, and where the state writes them."""

from __future__ import annotations

from django.contrib import messages as notices
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import anyone, needs
from accounts.http import StaffRequest
from accounts.models import PublicText
from accounts.permissions import Capability as C
from survey.console.settings.public_texts import (
    blanks_of,
    change_text,
    choose_language,
    draft_of,
    parts_of,
    public_texts,
    texts_by_kind,
)
from survey.console.settings.scope import STATE, about_place, place_or_404
from survey.taking import messages
from survey.taking.places import place_of_state

LONGEST_TEXT = 20_000
# Seconds for which nginx keeps a page, and may send it while it fetches a new one.
FRESH, REFRESHING = 20, 10


class PublicTextForm(forms.Form):
    text = forms.CharField(
        label=gettext_lazy("Text"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 24}),
        help_text=gettext_lazy(
            "A blank line begins a paragraph, and a line that begins with # is a"
            " heading. Replace what stands in [brackets]. An empty text is removed."
        ),
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n").strip()


@anyone
@require_safe
def public_page(request: HttpRequest, kind: str) -> HttpResponse:
    """Show the state's text; until it is finished, lead to the general one.

    1 statement.
    """
    texts = public_texts(kind)
    asked = request.GET.get("language", "")
    accepted = messages.language_accepted(request.headers.get("Accept-Language", ""))
    wanted = (asked, accepted) if asked else (accepted,)
    response: HttpResponse
    if texts:
        language = choose_language(list(texts), *wanted)
        response = HttpResponse(_render(kind, language, texts))
        # nginx does not pass it on.
        response.headers["Cache-Control"] = (
            f"s-maxage={FRESH}, max-age=0, stale-while-revalidate={REFRESHING}"
        )
    else:
        frame = messages.language_for(*wanted)
        response = redirect("about")
        response.headers["Location"] += f"?language={frame}#{kind}"
        response.headers["Cache-Control"] = "no-cache"
    if not asked:
        patch_vary_headers(response, ["Accept-Language"])
    return response


def _render(kind: str, language: str, texts: dict[str, str]) -> str:
    words = messages.messages_in(language, role="")
    context = {
        "words": words,
        "language": language,
        "direction": messages.direction(language),
        "languages": [row for row in messages.languages() if row["code"] in texts],
        "heading": words[kind],
        "parts": parts_of(texts[language]),
        "place": place_of_state(),
    }
    # Without the request: no context processor reads a cookie.
    return render_to_string("survey/public_text.html", context)


@needs(C.MANAGE_SURVEYS)
@require_safe
def settings_public_pages(request: StaffRequest) -> HttpResponse:
    """List the pages in each language, and what is still to fill in. 1 statement."""
    state = place_or_404(request, STATE, C.MANAGE_SURVEYS)
    texts = texts_by_kind()
    pages = [
        {
            "kind": kind.value,
            "label": kind.label,
            "languages": [
                {
                    **entry,
                    "is_written": (kind.value, entry["code"]) in texts,
                    "blanks": len(
                        blanks_of(texts.get((kind.value, entry["code"]), ""))
                    ),
                }
                for entry in messages.languages()
            ],
        }
        for kind in PublicText.Kind
    ]
    context = {**about_place(request, state), "pages": pages}
    return render(request, "survey/console/settings_public_pages.html", context)


@needs(C.MANAGE_SURVEYS)
def settings_public_page(
    request: StaffRequest, kind: str, language: str
) -> HttpResponse:
    """Write one of the pages in one language. It begins with a draft."""
    state = place_or_404(request, STATE, C.MANAGE_SURVEYS)
    if kind not in PublicText.Kind or language not in messages.MESSAGES:
        raise Http404
    stored = PublicText.objects.filter(kind=kind, language=language)
    text = stored.values_list("text", flat=True).first()
    shown = draft_of(kind, language) if text is None else text
    [entry] = [row for row in messages.languages() if row["code"] == language]
    form = PublicTextForm(
        request.POST if request.method == "POST" else None, initial={"text": shown}
    )
    form.fields["text"].widget.attrs |= {"lang": language, "dir": entry["direction"]}
    if form.is_valid():
        written = form.cleaned_data["text"]
        changed = change_text(kind, language, written, by=request.user, request=request)
        done = _outcome(written) if changed else _("Nothing was changed.")
        notices.success(request, done)
        return redirect("settings_public_page", kind, language)
    context = {
        **about_place(request, state),
        "form": form,
        "label": PublicText.Kind(kind).label,
        "entry": entry,
        "is_draft": text is None,
        "blanks": blanks_of(shown),
        "address": f"/{kind}/?language={language}",
    }
    return render(request, "survey/console/settings_public_page.html", context)


def _outcome(text: str) -> str:
    if not text:
        return _("The text was removed. The general page is shown instead.")
    if blanks := len(blanks_of(text)):
        return ngettext(
            "The text was saved. It is not public yet: %(n)s place is still to fill"
            " in.",
            "The text was saved. It is not public yet: %(n)s places are still to fill"
            " in.",
            blanks,
        ) % {"n": blanks}
    return _("The text was saved and is public. Pages show it within a minute.")
