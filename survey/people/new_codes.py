"""Replace access codes with new ones."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

from django.db import IntegrityError, connection, transaction
from django.db.models import Case, F, QuerySet, When

from survey.database import code_routes
from survey.database.respondent_locks import lock_respondents
from survey.fieldwork.message_platforms.hooks import people_changed, people_removed
from survey.models import Respondent
from survey.people import access_codes
from survey.people.access_codes import current_version, digest_for


def reissue(*, respondent: Respondent) -> str:
    """Replace a person's code with a new one under the newest key; return it.

    One UPDATE. Of two calls at the same time, both succeed, and the later code
    is valid. It lets a person who has declined take part again, which ended only the
    code of before; nobody is told whether this was so.
    """
    while True:
        issue, version = respondent.issue + 1, current_version()
        code = access_codes.code_for(respondent.pk, issue, version)
        changes = {
            "issue": issue,
            "code_key_version": version,
            "code_digest": digest_for(code, version),
        }
        unchanged = Respondent.objects.filter(
            pk=respondent.pk,
            issue=respondent.issue,
            declined_at=respondent.declined_at,
        )
        # Before the code is valid: a route too many does no harm.
        with connection.cursor() as cursor:
            code_routes.add_routes(cursor, [digest_for(code, version)], [respondent.pk])
        goes_on = Case(When(declined_at=None, then=F("completed_at")))
        if unchanged.update(**changes, completed_at=goes_on, declined_at=None):
            for name, value in changes.items():
                setattr(respondent, name, value)
            if respondent.declined_at:
                # What message platforms read of it is never taken back by writing it.
                people_removed([respondent.pk])
            people_changed([respondent.pk])
            return code
        respondent.refresh_from_db(fields=["issue", "declined_at"])


def let_in_again(people: QuerySet[Respondent]) -> None:
    """Let those of these people who declined take part again. 2 statements."""
    declined = people.filter(declined_at__isnull=False)
    keys = list(declined.values_list("pk", flat=True))
    # Not who has finished meanwhile, with a new code of somebody else's.
    still = Respondent.objects.filter(pk__in=keys, declined_at__isnull=False)
    still.update(completed_at=None, declined_at=None)
    people_removed(keys)


REISSUE_BATCH = 2000
_REPLACE = {
    "postgresql": """
        UPDATE survey_respondent AS r
        SET issue = new.issue, code_digest = new.digest, code_key_version = %s
        FROM unnest(%s::bigint[], %s::smallint[], %s::bytea[])
             AS new (id, issue, digest)
        WHERE r.id = new.id
        """,
    "sqlite": """
        UPDATE survey_respondent
        SET issue = %s, code_digest = %s, code_key_version = %s WHERE id = %s
        """,
}


@transaction.atomic
def reissue_all(people: QuerySet[Respondent]) -> int:
    """Replace the codes of all these people, or of none; return their number.

    Their page saves wait until this is committed, about a second for 10,000
    people.
    """
    version = current_version()
    chosen = Respondent.objects.filter(pk__in=people.order_by().values("pk"))
    rows = lock_respondents(chosen.values_list("pk", "issue"), no_key=True)
    for start in range(0, len(rows), REISSUE_BATCH):
        batch = rows[start : start + REISSUE_BATCH]
        try:
            with transaction.atomic():
                _replace(batch, version)
        except IntegrityError:
            # By chance one of the new codes belongs to another person: that
            # person's next code but one is tried, one person at a time.
            for pk, issue in batch:
                for skipped in count():
                    with suppress(IntegrityError), transaction.atomic():
                        _replace([(pk, issue + skipped)], version)
                        break
    if rows:
        people_changed([pk for pk, _ in rows])
    return len(rows)


def _replace(rows: list[tuple[int, int]], version: int) -> None:
    # `bulk_update` writes a CASE for each row, and takes ten times as long.
    new = [
        (
            pk,
            issue + 1,
            digest_for(access_codes.code_for(pk, issue + 1, version), version),
        )
        for pk, issue in rows
    ]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            ids, issues, digests = map(list, zip(*new, strict=True))
            code_routes.add_routes(cursor, digests, ids)
            cursor.execute(_REPLACE["postgresql"], [version, ids, issues, digests])
        else:
            cursor.executemany(
                _REPLACE["sqlite"],
                [(issue, digest, version, pk) for pk, issue, digest in new],
            )
