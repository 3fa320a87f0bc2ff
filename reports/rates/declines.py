"""Count people who said on the first page that they do not want to take part.

They are among the invited people of a rate, as refusals are in those of AAPOR.
"""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import School
from reports.rates.rollup_query import counting_database
from reports.suppression.rates import SMALLEST_GRADE
from survey.models import Administration, Respondent


def declines_in_words(administration: Administration, schools: QuerySet[School]) -> str:
    """Return how many declined in these schools, a small number as a bound.

    1 statement on the replica, or none where nobody can decline.
    """
    if not administration.allows_declining:
        return ""
    people = Respondent.objects.using(counting_database()).filter(
        administration=administration,
        declined_at__isnull=False,
        withdrawn_at=None,
        # As keys: the schools are in another database.
        school__in=list(schools.values_list("pk", flat=True)),
    )
    number = people.count()
    if 0 < number < SMALLEST_GRADE and administration.is_completion_confidential:
        return _("fewer than %(number)s") % {"number": SMALLEST_GRADE}
    return f"{number:,}" if number else ""
