"""The taking pool's entry."""

from __future__ import annotations

import django
from django.utils.module_loading import import_string

from settings.infrastructure.content_types import plain_bodies_only  # noqa: TID251

django.setup(set_prefix=False)
# Imports models, which it may only now.
short_way = import_string("survey.taking.fast_path.FastPath")
application = plain_bodies_only(short_way())
