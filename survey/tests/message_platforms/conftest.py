from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.models import District, Membership, School, User
from survey.fieldwork.message_platforms import statistics
from survey.fieldwork.message_platforms.directory import forget_directory
from survey.fieldwork.message_platforms.hooks import _unsent
from survey.fieldwork.message_platforms.store import message_store
from survey.models import Administration, Respondent
from survey.tests.conftest import enrol
from survey.tests.message_platforms.cast import PlatformClient, identify, platform_of


@pytest.fixture(autouse=True)
def empty_store() -> Iterator[None]:
    forget_directory()
    _unsent.clear()
    store = message_store()
    if store is not None:
        store.command("FLUSHDB")
    yield
    forget_directory()
    # Counts are sent a second later, which would be into the next test's store.
    if timer := statistics._timer:
        timer.cancel()
        timer.join()
        statistics._timer = None
        statistics._counts.clear()


@pytest.fixture
def dana(lincoln: School) -> User:
    user = User.objects.create_user("dana@example.org", "calm-harbour-42")
    Membership.objects.create(
        user=user, role=Membership.Role.DISTRICT, district=lincoln.district
    )
    return user


@pytest.fixture
def state(db: None) -> User:
    user = User.objects.create_user("state@example.org", "calm-harbour-42")
    Membership.objects.create(user=user, role=Membership.Role.STATE)
    return user


@pytest.fixture
def maya(administration: Administration, lincoln: School) -> Respondent:
    return identify(enrol(administration, lincoln, grade="07", language="es"))


@pytest.fixture
def noor(administration: Administration, roosevelt: School) -> Respondent:
    person = enrol(administration, roosevelt, grade="08", language="en")
    return identify(person, given_name="Noor")


@pytest.fixture
def braze(lincoln: School, dana: User) -> PlatformClient:
    return platform_of(lincoln.district, dana)


@pytest.fixture
def lakeshore(roosevelt: School, state: User) -> PlatformClient:
    """Another district's platform."""
    district: District = roosevelt.district
    return platform_of(district, state)
