"""For an engineer at work: errors in full, and what each page costs.

On SQLite (the demonstration's data in `.demo`), or on the stack's servers
where GROUNDSWELL_DATABASE_HOST names them. `manage.py runserver` on loopback:
with it, the toolbar shows a page's statements, its cache reads and its time.
"""

from __future__ import annotations

from settings import base
from settings.base import env

if env.str("GROUNDSWELL_DATABASE_HOST", default=""):
    from settings.stack import *  # noqa: F403
else:
    from settings.embedded import *  # type: ignore[assignment]  # noqa: F403

DEBUG = True
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
PUBLIC_ADDRESS = env.str("GROUNDSWELL_URL", default="http://127.0.0.1:8000").rstrip("/")

# runserver speaks no TLS, and a browser remembers HSTS for a year.
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
SECURE_HSTS_SECONDS = 0

# Static files come from where they are written, not from a collected copy.
COMPRESS_OFFLINE = False
COMPRESS_ENABLED = False
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
STORAGES = {
    **STORAGES,  # noqa: F405
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

INSTALLED_APPS = [*base.INSTALLED_APPS, "debug_toolbar"]
MIDDLEWARE = [
    *MIDDLEWARE[:1],  # noqa: F405
    "debug_toolbar.middleware.DebugToolbarMiddleware",
    *MIDDLEWARE[1:],  # noqa: F405
]
ROOT_URLCONF = "settings.development_urls"
# The toolbar is shown to this machine only.
INTERNAL_IPS = ["127.0.0.1", "::1"]
