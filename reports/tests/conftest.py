"""Staff and schools of the known cast, an administration, and invited people."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts.models import School
from accounts.tests.conftest import staff  # noqa: F401
from reports.results import distributions
from survey.models import (
    Administration,
    PublishedSurvey,
    Respondent,
    Role,
    Survey,
)
from survey.taking.published import forget_published
from survey.tests.database_flush import quick_flush  # noqa: F401

_numbers = count(1)


@pytest.fixture
def exact_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch coding off, so that sums and differences can be followed by number."""
    monkeypatch.setattr(
        distributions,
        "coded_shares",
        lambda counts, *_args, **_options: [None] * len(counts),
    )


@pytest.fixture(scope="module")
def module_data(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Keep what fixtures of a module create until its last test has ended.

    It is `TestCase.setUpTestData` for a module. A test may change the rows: its own
    transaction is a savepoint in this one. Give it a copy of the objects. Tests
    with `transaction=True` have to be in another module.
    """
    # SQLite gives keys again that were rolled back with the module before.
    forget_published()
    cache.clear()
    with django_db_blocker.unblock():
        yield from _keep_and_roll_back()


@pytest.fixture(scope="class")
def class_data(module_data: None) -> Iterator[None]:
    """Keep what fixtures of a class create until its last test has ended."""
    yield from _keep_and_roll_back()


def _keep_and_roll_back() -> Iterator[None]:
    block = transaction.atomic()
    # `atomic(durable=True)` and the cache ignore it, like the transaction of a test.
    block._from_testcase = True
    with block:
        yield
        transaction.set_rollback(True)


@pytest.fixture
def published(db: None) -> PublishedSurvey:
    survey = Survey.objects.create(name="climate", version="1")
    definition = '{"languages": []}'
    return PublishedSurvey.objects.create(
        digest=hashlib.sha256(definition.encode()).hexdigest(),
        survey=survey,
        definition=definition,
    )


@pytest.fixture
def administer(published: PublishedSurvey) -> Callable[..., Administration]:
    """Create administrations that opened 10 days ago and close in 10 days.

    Their survey has no pages.
    """

    def create(
        name: str = "students-2027", role: str = Role.STUDENT, **fields: Any
    ) -> Administration:
        now = timezone.now()
        return Administration.objects.create(
            **{
                "name": name,
                "role": role,
                "published": published,
                "opens_at": now - timedelta(days=10),
                "closes_at": now + timedelta(days=10),
                **fields,
            }
        )

    return create


@pytest.fixture
def students(administer: Callable[..., Administration]) -> Administration:
    return administer()


def invite(
    administration: Administration,
    school: School,
    people: int = 1,
    *,
    started: int = 0,
    finished: int = 0,
    at: datetime | None = None,
    **fields: Any,
) -> list[Respondent]:
    """Invite people; the first of them start and finish at the moment `at`."""
    moment = at or timezone.now()
    started = max(started, finished)
    return Respondent.objects.bulk_create(
        Respondent(
            administration=administration,
            school=school,
            code_digest=f"person {next(_numbers)}".encode(),
            code_key_version=1,
            started_at=moment if number < started else None,
            completed_at=moment if number < finished else None,
            **fields,
        )
        for number in range(people)
    )
