"""Say in one sentence what applying a roster does."""

from __future__ import annotations

from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from survey.models import RosterUpload

PARTS = {
    "added": ngettext_lazy(
        "adds %(people)s person", "adds %(people)s people", "number"
    ),
    "changed": ngettext_lazy(
        "changes %(people)s person", "changes %(people)s people", "number"
    ),
    "moved": ngettext_lazy(
        "moves %(people)s person to another school",
        "moves %(people)s people to other schools",
        "number",
    ),
    "back": ngettext_lazy(
        "brings %(people)s person back", "brings %(people)s people back", "number"
    ),
    "withdrawn": ngettext_lazy(
        "withdraws %(people)s person", "withdraws %(people)s people", "number"
    ),
}


def effect_of(upload: RosterUpload) -> str:
    """Return what a checked roster does when it is applied."""
    report = upload.report
    numbers = {name: report.get(name, 0) for name in PARTS}
    # The report counts them as changed too.
    numbers["changed"] -= numbers["moved"] + numbers["back"]
    parts = [
        text % {"people": f"{numbers[name]:,}", "number": numbers[name]}
        for name, text in PARTS.items()
        if numbers[name]
    ]
    if schools := len(report.get("schools_created", ())):
        text = ngettext(
            "creates %(schools)s school", "creates %(schools)s schools", schools
        )
        parts.append(text % {"schools": f"{schools:,}"})
    if not parts:
        sentence = _("Applying this roster changes nothing.")
    else:
        sentence = _("Applying this roster %(effects)s.") % {
            "effects": get_text_list(parts, _("and"))
        }
    if rejected := upload.rejected:
        text = ngettext(
            "%(rows)s rejected row is left out.",
            "%(rows)s rejected rows are left out.",
            rejected,
        )
        sentence += " " + text % {"rows": f"{rejected:,}"}
    return sentence
