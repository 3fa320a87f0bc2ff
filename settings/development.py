"""Configure development: full error pages and the debug toolbar.

Uses SQLite (the demo's data in `.demo`), or the stack's servers if
GROUNDSWELL_DATABASE_HOST is set. Run it with `manage.py runserver` on the
loopback interface; the toolbar shows each page's queries, cache reads and time.
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

# runserver has no TLS, and browsers would remember HSTS for a year.
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
SECURE_HSTS_SECONDS = 0

# Serve static files from the source folders instead of the collected copy.
COMPRESS_OFFLINE = False
COMPRESS_ENABLED = False
# A service worker would serve files that have changed since.
WORKS_OFFLINE = False
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
# Show the toolbar only to this machine.
INTERNAL_IPS = ["127.0.0.1", "::1"]
