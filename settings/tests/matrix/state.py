"""What the database holds, and whether a request has changed it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model, Q

# What may be written while somebody only looks, and why.
WRITTEN_BY_LOOKING: Mapping[str, str] = {
    "django_session": "a session begins, remembers a form, or moves its end",
    "usersessions_usersession": "when and from where a session was last seen",
    "account_emailaddress": "allauth's copy of one's own address, where it has none",
    "accounts_auditentry": "a look at identities is written down; nothing else is",
}


# How statements begin that change nothing, cut to the same length.
READING = ("SELECT", "SAVEPO", "RELEAS", "ROLLBA")


def digests() -> dict[str, str]:
    """Table -> the number of its rows, and a digest of all of them."""
    return {name: _digest(name) for name in _tables()}


def digests_of(rows: Mapping[type[Model], int]) -> dict[str, str]:
    """As `digests`, of these rows and of all that point at one of them."""
    return {
        model._meta.db_table: _digest_of(model, rows)
        for model in apps.get_models(include_auto_created=True)
        if model._meta.db_table not in WRITTEN_BY_LOOKING
    }


def _digest_of(model: type[Model], rows: Mapping[type[Model], int]) -> str:
    among = Q(pk=rows[model]) if model in rows else Q(pk__in=[])
    for field in model._meta.concrete_fields:
        if field.remote_field and field.related_model in rows:
            among |= Q(**{field.attname: rows[field.related_model]})
    names = [field.attname for field in model._meta.concrete_fields]
    found = model.objects.filter(among).values_list(*names)
    return repr(sorted(repr(_plain(row)) for row in found))


def _tables() -> list[str]:
    models = apps.get_models(include_auto_created=True)
    names = {model._meta.db_table for model in models if model._meta.managed}
    return sorted(names - set(WRITTEN_BY_LOOKING))


def _digest(table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
        rows = sorted(repr(_plain(row)) for row in cursor.fetchall())
    return f"{len(rows)} {hashlib.sha256(repr(rows).encode()).hexdigest()}"


def _plain(row: tuple) -> list:
    # PostgreSQL's bytes come as a memoryview, whose repr is an address.
    return [bytes(one) if isinstance(one, memoryview) else one for one in row]


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens inside has not happened."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def written() -> Iterator[list[str]]:
    """Fills with the statements that write what is not written by looking."""
    found: list[str] = []

    def noted(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if str(sql).lstrip("( \n")[:6].upper() not in READING:
            aside = any(f'"{name}"' in sql for name in WRITTEN_BY_LOOKING)
            found.extend([] if aside else [sql])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(noted):
        yield found
