"""Choose the database for each query: the primary or the replica.

All writes go to the primary. A view that names models with
`uses_forced_read_router` reads these from the replica, because their rows
never change; everything else in that view is a decision and is read from the
primary.

Other views read the replica too, except for models that decide something, and
unless their browser wrote within the last seconds (`survey.database.pinning`).
SQL written by hand uses `connection`, the primary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec

from balancer.routers import PinningWMSRouter
from django.conf import settings
from django.db import connections
from django.db.models import Model
from django.http import HttpResponse
from django.template.response import SimpleTemplateResponse

from survey.database import pinning
from survey.database.replica import health

# These decide whether a person may log in, finish, see or change something.
DECIDING_APPS = frozenset(("accounts", "admin", "auth", "sessions"))
DECIDING_MODELS = frozenset(
    ("survey.administration", "survey.respondent", "survey.response")
)
# Seconds. A survey is one row by its key, which a healthy replica returns faster.
FALLBACK_TIMEOUT = 1.0

P = ParamSpec("P")

_forced: ContextVar[frozenset[type[Model]] | None] = ContextVar("forced", default=None)


class ForcedModelWritten(RuntimeError):
    """A view wrote a model that it reads from a replica."""


class ForcedReadRouter(PinningWMSRouter):
    def __init__(self) -> None:
        super().__init__()
        self.pool = list(self.pool)  # type: ignore[has-type]
        has_replica = health.REPLICA in settings.DATABASES
        self.replica = health.REPLICA if has_replica else self.master

    def db_for_read(self, model: type[Model], **hints: object) -> str:
        forced = _forced.get()
        if forced is not None:
            return self._alive(self.replica) if model in forced else self.master
        about = model._meta
        if (
            not pinning.may_read_replica()
            or about.app_label in DECIDING_APPS
            or about.label_lower in DECIDING_MODELS
            # Only the primary has what an open transaction has written.
            or connections[self.master].in_atomic_block
        ):
            return self.master
        return self._alive(super().db_for_read(model, **hints))

    def db_for_write(self, model: type[Model], **hints: object) -> str:
        if model in (_forced.get() or ()):
            raise ForcedModelWritten(
                f"{model._meta.label} is read from a replica here, so it can't be"
                " written here."
            )
        return super().db_for_write(model, **hints)

    def allow_relation(self, obj1: Model, obj2: Model, **hints: object) -> bool | None:
        databases = {self.master, self.replica, *self.pool}
        both = {obj1._state.db, obj2._state.db}
        return True if both <= databases else None

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: object
    ) -> bool:
        return db == self.master

    def _alive(self, alias: str) -> str:
        return alias if alias == self.master or health.is_up() else self.master


def uses_forced_read_router(
    *models: type[Model],
) -> Callable[[Callable[P, HttpResponse]], Callable[P, HttpResponse]]:
    """Make a view read these models from the replica. It must not write them.

    A template response is rendered before the view ends; a streaming response
    reads the primary.
    """

    def decorate(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
        @wraps(view)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            with forced_reads(*models):
                response = view(*args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    response = response.render()
                return response

        return wrapper

    return decorate


@contextmanager
def forced_reads(*models: type[Model]) -> Iterator[None]:
    token = _forced.set((_forced.get() or frozenset()) | frozenset(models))
    try:
        with health.fall_back_to_primary(FALLBACK_TIMEOUT):
            yield
    finally:
        _forced.reset(token)
