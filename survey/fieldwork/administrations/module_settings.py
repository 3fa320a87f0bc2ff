"""Settings that a module of a district takes from the state's round it follows.

The state's people go on to it in the same visit, so the window, the audience and the
promises about privacy are those of the state's round, or stricter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import District, School
from survey.models import Administration, PublishedSurvey

if TYPE_CHECKING:
    from survey.fieldwork.administrations.plans import AdministrationPlan

# Columns that are those of the state's round. Nobody is invited to a module or named
# in it, so it requires no consent and shows nobody's progress.
FOLLOWED = (
    "role",
    "wave",
    "opens_at",
    "closes_at",
    "replays_answers",
    "subgroups",
    "denominator",
)


def schools_of_module(
    state_round: Administration, district_id: int | None
) -> list[School]:
    """Return the district's schools that the state has chosen; none: all of them.

    2 statements.
    """
    if state_round.districts.filter(pk__in=[district_id]).exists():
        return []
    return list(state_round.schools.filter(district=district_id))


def is_offered_in(state_round: Administration, district: District) -> bool:
    """Return whether people of the district are asked. At most 3 statements."""
    if state_round.districts.filter(pk=district.pk).exists():
        return True
    if state_round.schools.filter(district=district).exists():
        return True
    return not state_round.districts.exists() and not state_round.schools.exists()


def follow_round(state_round: Administration, before: AdministrationPlan) -> None:
    """Change the modules as their round was changed. 1 statement without modules.

    A module that its district has closed stays closed, also one of which data were
    destroyed, and no minimum group sinks.
    """
    if state_round.district_id is not None:
        return
    modules = state_round.modules.select_for_update(no_key=True)
    for module in modules.order_by("pk"):
        was_closed_earlier = module.closes_at != before.closes_at
        opens_at, closes_at = module.opens_at, module.closes_at
        for name in FOLLOWED:
            setattr(module, name, getattr(state_round, name))
        if module.has_destroyed_data:
            module.opens_at, module.closes_at = opens_at, closes_at
        elif was_closed_earlier and closes_at > module.opens_at:
            module.closes_at = min(closes_at, module.closes_at)
        module.minimum_group = max(module.minimum_group, state_round.minimum_group)
        module.changes += 1
        module.save(update_fields=[*FOLLOWED, "minimum_group", "changes"])
        module.schools.set(schools_of_module(state_round, module.district_id))


def count_pages(published: PublishedSurvey) -> int:
    """Return the number of pages. 1 statement."""
    return published.survey.pages.count()


def check_pages(published: PublishedSurvey, limit: int) -> None:
    """Raise ValidationError where a module would have more pages than the state set."""
    pages = count_pages(published)
    if pages > limit:
        words = ngettext(
            "It has %(pages)s pages, and the state allows %(limit)s page.",
            "It has %(pages)s pages, and the state allows %(limit)s pages.",
            limit,
        )
        raise ValidationError({"published": words % {"pages": pages, "limit": limit}})


def check_limit(state_round: Administration, limit: int) -> None:
    """Refuse a limit that districts exceed already. 1 statement.

    0 is no such limit: from then on, nobody goes on to a module.
    """
    if limit and state_round.district_id is not None:
        raise ValidationError(
            {"district_pages_limit": _("Only the state lets districts add pages.")}
        )
    modules = state_round.modules.annotate(pages=Count("published__survey__pages"))
    longer = modules.filter(pages__gt=limit).select_related("district")
    if limit and (names := sorted(str(module.district) for module in longer)):
        raise ValidationError(
            {
                "district_pages_limit": _(
                    "These districts have added more pages already: %(names)s. Choose"
                    " a higher limit, or 0 to stop offering all of them."
                )
                % {"names": ", ".join(names)}
            }
        )
