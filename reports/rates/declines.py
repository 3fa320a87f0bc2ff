"""Count people who said on the first page that they do not want to take part.

They are among the invited people of a rate, as refusals are in those of AAPOR.
"""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.models import School
from reports.rates.rollup_query import counting_database
from survey.models import Administration, Respondent


def declines_in_words(administration: Administration, schools: QuerySet[School]) -> str:
    """Return how many declined in these schools.

    Nothing where it is confidential who has finished: the number would change by one
    person who gets a new code. 1 statement on the replica, or none where nobody can
    decline.
    """
    if not administration.allows_declining or administration.is_completion_confidential:
        return ""
    people = Respondent.objects.using(counting_database()).filter(
        administration=administration,
        declined_at__isnull=False,
        withdrawn_at=None,
        # As keys: the schools are in another database.
        school__in=list(schools.values_list("pk", flat=True)),
    )
    number = people.count()
    return f"{number:,}" if number else ""
