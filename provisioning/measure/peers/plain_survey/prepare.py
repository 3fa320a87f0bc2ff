"""Create the tables, the questions and the people: `PAGES ITEMS PEOPLE`."""

from __future__ import annotations

import sys

import django
from django.core.management import call_command

django.setup()

from provisioning.measure.peers.plain_survey.models import (  # noqa: E402
    Question,
    Respondent,
)

if __name__ == "__main__":
    pages, items, people = map(int, sys.argv[1:])
    call_command("migrate", run_syncdb=True, verbosity=0)
    Question.objects.bulk_create(
        Question(page=page, text=f"How often does this happen? ({page}.{item})")
        for page in range(1, pages + 1)
        for item in range(1, items + 1)
    )
    Respondent.objects.bulk_create(
        (Respondent(code=f"person-{number}") for number in range(people)),
        batch_size=1000,
    )
