"""Show each component of the console's design in its states, for engineers."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.forms import Form

TEXT_COLORS = ("ink", "muted", "accent", "second", "good", "caution", "error")
GROUNDS = ("ground", "surface", "sunken", "hover", "tint", "second-tint")
BADGES = (("", "Waits"), ("good", "Open"), ("caution", "Late"), ("bad", "Failed"))


class ExampleForm(Form):
    """One field of each kind, for the page of components."""

    name = forms.CharField(label="Name", help_text="As on the roster.")
    opens = forms.DateTimeField(
        label="Opens", widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    school = forms.ChoiceField(
        label="School", choices=[("", "Choose"), ("1", "Lincoln")]
    )
    audience = forms.ChoiceField(
        label="Audience",
        choices=[("student", "Students"), ("teacher", "Teachers")],
        widget=forms.RadioSelect,
        initial="student",
    )
    sees_names = forms.BooleanField(label="Coordinators see who has finished")
    notes = forms.CharField(label="Notes", required=False, widget=forms.Textarea)
    roster = forms.FileField(label="Roster")
    locked = forms.CharField(
        label="Short name",
        required=False,
        initial="spring-2027",
        widget=forms.TextInput(attrs={"disabled": True}),
    )


@require_safe
def components(request: HttpRequest) -> HttpResponse:
    """Render all components; `?direction=rtl` shows them from right to left."""
    return render(
        request,
        "engineers/components.html",
        {
            "direction": "rtl" if request.GET.get("direction") == "rtl" else "ltr",
            "text_colors": TEXT_COLORS,
            "grounds": GROUNDS,
            "badges": BADGES,
            "form": ExampleForm(),
            # Without a name, and with a school that does not exist.
            "refused": ExampleForm(
                {"school": "2", "audience": "student"}, auto_id="refused_%s"
            ),
        },
    )
