"""What the endpoint answers about one person."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from django.conf import settings

from survey.fieldwork.message_platforms.directory import Platform, Window
from survey.fieldwork.message_platforms.link_codes import decrypt_code
from survey.fieldwork.message_platforms.store import Field

DAY = 24 * 60 * 60

Content = dict[str, object]


def reply_about(
    respondent_id: int, fields: Mapping[bytes, bytes], window: Window
) -> Content:
    """Return the reply. What the clock decides is not stored, so it is never old.

    The same fields whether to send or not: why not is nobody's business.
    """
    now = time.time()
    stored = fields.get(Field.CODE) if window.has_codes else None
    code = decrypt_code(respondent_id, stored) if stored else ""
    # In the fragment, which browsers send to no server.
    content: Content = {
        "send": window.opens_at <= now < window.closes_at
        and Field.FINISHED not in fields
        and fields[Field.STOPPED] == b"0",
        "language": fields[Field.LANGUAGE].decode() or window.first_language,
        # Begun days: 1 on the last day, 0 once it has closed.
        "days_left": max(0, math.ceil((window.closes_at - now) / DAY)),
        "school": fields[Field.SCHOOL].decode(),
        "link": f"{settings.PUBLIC_ADDRESS}/{'#' if code else ''}{code}",
    }
    if window.has_names:
        content["name"] = fields.get(Field.NAME, b"").decode()
    return content


def is_readable_by(platform: Platform, fields: Mapping[bytes, bytes]) -> bool:
    """Return whether the person is (still) in the platform's district."""
    return platform.district_id is None or fields[Field.DISTRICT] == b"%d" % (
        platform.district_id
    )
