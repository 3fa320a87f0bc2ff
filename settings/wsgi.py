from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from settings.plain_bodies import plain_bodies_only

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.stack")
application = plain_bodies_only(get_wsgi_application())
