"""Choose the benchmark of a survey's rounds, or import a published one, and undo that.

All are decisions of a person, with a reason, after which the scores of all comparable
rounds are calculated again. Published results stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from reports.models import ChosenBenchmark, ImportedBenchmark
from reports.scores.benchmark import (
    comparable,
    imported_benchmark,
    rounds_to_calculate,
)
from reports.scores.drift import DecisionRefused, lock_to_decide
from reports.scores.imported_measure import ImportedMeasure
from reports.scores.job import request_scores
from survey.fieldwork.administrations.checks import refuse_lock_timeouts
from survey.models import Administration, Job

CHOOSE = "choose benchmark"
IMPORT = "import benchmark"
WITHDRAW = "withdraw imported benchmark"


def choose_benchmark(
    *,
    administration: Administration,
    because: str,
    by: User,
    by_span: bool = False,
    request: HttpRequest | None = None,
) -> Job:
    """Compare all administrations like this one with it, and calculate scores again.

    First its own, and after it those of the others. With `by_span`, schools are
    compared with those of their grade span. A published benchmark holds no longer.
    Raises PermissionDenied, DecisionRefused and DatabaseBusy.
    """
    with refuse_lock_timeouts(), transaction.atomic():
        current = lock_to_decide(administration, by)
        chosen = ChosenBenchmark.objects.filter(administration=current, by_span=by_span)
        imported = imported_benchmark(current)
        if chosen.exists() and not imported:
            raise DecisionRefused(_("This survey round is the benchmark already."))
        if imported:
            _withdraw(imported)
        rounds = Administration.objects.filter(comparable(current))
        ChosenBenchmark.objects.filter(administration__in=rounds).delete()
        ChosenBenchmark.objects.create(
            administration=current, by=by, because=because, by_span=by_span
        )
        facts: dict[str, object] = {"reason": because}
        if by_span:
            facts["by grade span"] = True
        _record(CHOOSE, current, facts, by, request)
        return request_scores(current, by=by, recalculate=True)


def import_benchmark(
    *,
    administration: Administration,
    measures: Mapping[str, ImportedMeasure],
    because: str,
    by: User,
    request: HttpRequest | None = None,
) -> Job:
    """Compare all administrations like this one with a published benchmark.

    Measures that it does not have keep their benchmark. Raises PermissionDenied,
    DecisionRefused and DatabaseBusy.
    """
    with refuse_lock_timeouts(), transaction.atomic():
        current = lock_to_decide(administration, by)
        if earlier := imported_benchmark(current):
            _withdraw(earlier)
        ImportedBenchmark.objects.create(
            administration=current,
            measures={name: each.as_json() for name, each in measures.items()},
            by=by,
            because=because,
        )
        facts = {
            "measures": sorted(measures),
            "sources": sorted({each.source for each in measures.values()}),
            "reason": because,
        }
        _record(IMPORT, current, facts, by, request)
        return _calculate_all(current, by)


def withdraw_benchmark(
    *,
    administration: Administration,
    because: str,
    by: User,
    request: HttpRequest | None = None,
) -> Job:
    """Compare with the survey's own benchmark again, as before the import.

    Raises PermissionDenied, DecisionRefused and DatabaseBusy.
    """
    with refuse_lock_timeouts(), transaction.atomic():
        current = lock_to_decide(administration, by)
        imported = imported_benchmark(current)
        if not imported:
            raise DecisionRefused(_("There is no imported benchmark any more."))
        _withdraw(imported)
        _record(WITHDRAW, current, {"reason": because}, by, request)
        return _calculate_all(current, by)


def _withdraw(imported: ImportedBenchmark) -> None:
    imported.withdrawn_at = timezone.now()
    imported.save(update_fields=["withdrawn_at"])


def _calculate_all(administration: Administration, by: User) -> Job:
    """Start with the first round; each calculation starts that of the next."""
    first = next(iter(rounds_to_calculate(administration)), administration)
    return request_scores(first, by=by, recalculate=True)


def _record(
    action: str,
    administration: Administration,
    facts: Mapping[str, object],
    by: User,
    request: HttpRequest | None,
) -> None:
    audit.record(
        action,
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        after=dict(facts),
    )
