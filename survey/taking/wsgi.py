"""The WSGI entry point of the respondents' pool."""

from __future__ import annotations

import django
from django.utils.module_loading import import_string

from settings.infrastructure.content_types import plain_bodies_only  # noqa: TID251

django.setup(set_prefix=False)
# Imported by name, because it imports models, which need django.setup().
fast_path = import_string("survey.taking.fast_path.FastPath")
application = plain_bodies_only(fast_path())
