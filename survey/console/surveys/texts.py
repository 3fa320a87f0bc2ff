"""Correct texts of a published survey in the console, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.views import own_survey_or_404
from survey.instrument.definitions.schema import LanguageDefinition, Texts
from survey.instrument.definitions.text_drafts import (
    LONGEST_TEXT,
    SurveyText,
    TextsChanged,
    TextSection,
    save_texts,
    sections_of,
    start_text_draft,
    text_drafts,
)


class TextsForm(forms.Form):
    """The texts of a section, with a field for each language."""

    def __init__(
        self,
        section: TextSection,
        languages: Sequence[LanguageDefinition],
        data: QueryDict | None = None,
    ) -> None:
        super().__init__(data)
        self.section, self.languages = section, languages
        self.fields["seen"] = forms.CharField(
            widget=forms.HiddenInput, initial=section.digest, max_length=64
        )
        for row in section.texts:
            for language in languages:
                code = language["code"]
                text = row.texts.get(code, "")
                label = f"{row.place}, {language['name']}"
                rows = min(max(len(text) // 40 + 1, text.count("\n") + 1, 2), 12)
                self.fields[f"{row.key}-{code}"] = forms.CharField(
                    label=label,
                    initial=text,
                    required=False,
                    max_length=LONGEST_TEXT,
                    widget=forms.Textarea(
                        attrs={
                            "rows": rows,
                            "cols": 36,
                            "aria-label": label,
                            "lang": code,
                            "dir": language["direction"],
                        }
                    ),
                )

    def rows(self) -> list[tuple[SurveyText, list[forms.BoundField]]]:
        return [
            (
                text,
                [self[f"{text.key}-{language['code']}"] for language in self.languages],
            )
            for text in self.section.texts
        ]

    def texts(self) -> dict[str, Texts]:
        return {
            text.key: {
                language["code"]: self.cleaned_data[f"{text.key}-{language['code']}"]
                for language in self.languages
            }
            for text in self.section.texts
        }


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def survey_correct_here(request: StaffRequest, pk: int) -> HttpResponse:
    """Copy a published survey, to correct its texts without the workbook."""
    survey = own_survey_or_404(request, pk)
    published = survey.published.first()
    if published is None:
        raise Http404
    draft = start_text_draft(corrects=published, by=request.user, request=request)
    return redirect("survey_texts", draft.pk, 1)


@needs(Capability.MANAGE_SURVEYS)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def survey_texts(request: StaffRequest, pk: int, n: int) -> HttpResponse:
    """Edit the texts of one page, or of one set of options, side by side."""
    survey = own_survey_or_404(request, pk)
    if not text_drafts().filter(pk=survey.pk).exists():
        raise Http404
    sections = sections_of(survey)
    if not 1 <= n <= len(sections):
        raise Http404
    section = sections[n - 1]
    form = TextsForm(section, survey.languages, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            changed = save_texts(
                survey=survey,
                number=n - 1,
                seen=form.cleaned_data["seen"],
                texts=form.texts(),
                by=request.user,
                request=request,
            )
        except TextsChanged as error:
            messages.error(request, error.messages[0])
            return redirect("survey_texts", survey.pk, n)
        except ValidationError as error:
            for name, errors in error.error_dict.items():
                form.add_error(name, errors)
        else:
            done = (
                _("%(section)s: %(count)s changed.")
                if changed
                else _("%(section)s: nothing was changed.")
            )
            values = {"section": section.name, "count": changed}
            messages.success(request, done % values)
            if "review" in request.POST:
                return redirect("survey_correction", survey.pk)
            return redirect("survey_texts", survey.pk, min(n + 1, len(sections)))
    return render(
        request,
        "survey/console/survey_texts.html",
        {
            "survey": survey,
            "corrected": survey.corrects.survey if survey.corrects else None,
            "form": form,
            "section": section,
            "sections": list(enumerate(sections, 1)),
            "n": n,
        },
    )
