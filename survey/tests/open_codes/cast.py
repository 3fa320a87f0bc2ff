"""A parents' survey that Lincoln offers by an open code."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import School
from survey.fieldwork.administrations import open_administration
from survey.fieldwork.open_codes.codes import code_of, create_open_code
from survey.models import (
    Administration,
    Denominator,
    OpenCode,
    Respondent,
    Response,
    Role,
)
from survey.tests.conftest import Browser, publish_items


def open_to_parents(**fields: Any) -> Administration:
    now = timezone.now()
    fields = {
        "name": "parents-2027",
        "role": Role.PARENT,
        "denominator": Denominator.COUNT,
        "opens_at": now - timedelta(days=1),
        "closes_at": now + timedelta(days=30),
    } | fields
    if "published" not in fields:
        fields["published"] = publish_items()
    return open_administration(**fields)


def open_code(
    administration: Administration, school: School, **fields: Any
) -> OpenCode:
    return create_open_code(
        administration=administration, school=school, by="a test", **fields
    )


def form_of(browser: Browser, code: OpenCode | str, **fields: str) -> dict[str, str]:
    """Open the page of a code, and return what its form sends."""
    typed = code if isinstance(code, str) else code_of(code)
    page = browser.post("/open/", {"code": typed, **fields})
    assert page.status_code == 200, page.content
    names = re.findall(r'name="(\w+)" value="([^"]*)"', page.content.decode())
    # The first form of the page chooses the language.
    return {name: value for name, value in names if name != "csrfmiddlewaretoken"}


def begin(browser: Browser, code: OpenCode, **fields: str) -> Any:
    return browser.post("/open/begin/", form_of(browser, code, **fields))


def begin_and_lose_reply(browser: Browser, form: dict[str, str]) -> Browser:
    """Send a form whose reply, with its cookies, reaches only the returned browser."""
    lost = Browser()
    lost.cookies.update(browser.cookies)
    assert lost.post("/open/begin/", form).status_code == 302
    return lost


def begin_together(
    code: OpenCode,
    *,
    starts: int,
    answered: int = 0,
    finished: int = 0,
    minutes: int = 2,
    hours_ago: int = 2,
) -> None:
    """Store people who began in the same ten minutes of the clock.

    The first of them have answered and finished.
    """
    first = timezone.now().replace(minute=40, second=0, microsecond=0)
    first -= timedelta(hours=hours_ago)
    begun = Respondent.objects.bulk_create(
        Respondent(
            administration=code.administration,
            school=code.school,
            open_code=code,
            code_digest=secrets.token_bytes(32),
            code_key_version=1,
            started_at=first + timedelta(seconds=n * minutes * 60 / starts),
            completed_at=first + timedelta(minutes=10) if n < finished else None,
        )
        for n in range(starts)
    )
    Response.objects.bulk_create(
        Response(
            administration_id=code.administration_id,
            respondent_id=person.pk,
            item_id=item,
            state=Response.State.SKIPPED,
            revision=1,
            saved_at=first,
        )
        for person in begun[:answered]
        for item in (1, 2)
    )
