"""The WSGI entry point of the respondents' pool."""

from __future__ import annotations

import django
from django.utils.module_loading import import_string

from settings.infrastructure.unusual_requests import refuse_unusual_requests  # noqa: TID251

django.setup(set_prefix=False)
# Imported by name, because it imports models, which need django.setup().
fast_path = import_string("survey.taking.fast_path.FastPath")
application = refuse_unusual_requests(fast_path())
