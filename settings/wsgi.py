from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from settings.infrastructure.content_types import plain_bodies_only

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.stack")
application = plain_bodies_only(get_wsgi_application())
