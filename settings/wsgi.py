from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from settings.infrastructure.content_types import refuse_unusual_content_types

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.stack")
application = refuse_unusual_content_types(get_wsgi_application())
