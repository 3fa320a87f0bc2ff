"""Names of people, states of rosters and marks of changes, for the console."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from survey.models import Respondent, RosterUpload
from survey.models.grades import grade_name

register = template.Library()
register.filter(grade_name)


@register.filter
def person_name(person: Respondent) -> SafeString:
    """Render the name of a person, for a sentence that is translated as a whole."""
    # Identities may have been destroyed.
    context = {"person": person, "identity": getattr(person, "identity", None)}
    name = render_to_string("survey/console/_people_name.html", context)
    return mark_safe(name.strip())  # noqa: S308


@register.filter
def schools_to_check(upload: RosterUpload) -> int:
    # Not in the respondents' pool, which loads the tags of all apps.
    from survey.people.rosters.school_questions import unanswered

    return unanswered(upload)


@register.filter
def marked_since(now: str, was: str) -> SafeString:
    """Mark the words of a text that were not there before."""
    from survey.instrument.drafts.history import marked

    return marked(was, now)
