from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from settings.infrastructure.unusual_requests import refuse_unusual_requests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.stack")
application = refuse_unusual_requests(get_wsgi_application())
