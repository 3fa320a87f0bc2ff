"""What every way of running shares. The environment is read here only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from kombu import Exchange, Queue

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

SECRET_KEY = env.str("GROUNDSWELL_SECRET_KEY", default="")
DEBUG = False
ALLOWED_HOSTS = env.list("GROUNDSWELL_HOSTS", default=["127.0.0.1", "localhost"])

# Codes are printed on cards that outlive a web server's secret, so they have
# keys of their own. Version -> key; the newest issues, all are recognised.
ACCESS_CODE_KEYS: dict[int, str] = {
    int(version): key
    for version, key in env.dict("GROUNDSWELL_ACCESS_CODE_KEYS", default={}).items()
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "compressor",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "accounts",
    "survey",
    "reports",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "accounts.staff_cookies.StaffCookiesMiddleware",
    "survey.taking.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.access.AccessMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "settings.urls"
WSGI_APPLICATION = "settings.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_USER_MODEL = "accounts.User"
# Staff log in by e-mail address and password, then by a second factor.
AUTHENTICATION_BACKENDS: list[str] = [
    "allauth.account.auth_backends.AuthenticationBackend"
]
ACCOUNT_ADAPTER = "accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
# Nobody signs up: staff are invited, and their address is proved by the link.
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_FORMS = {
    "login": "accounts.console.forms.LoginForm",
    "reset_password": "accounts.console.forms.ForgottenPasswordForm",
    "change_password": "accounts.console.forms.ChangePasswordForm",
    "set_password": "accounts.console.forms.SetPasswordForm",
    "reauthenticate": "accounts.console.forms.PasswordAgainForm",
}
# Its own limits count by address, where a whole district office sits behind
# one, and in the cache, which may be away. See accounts.login_throttle instead.
ACCOUNT_RATE_LIMITS = False
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
# What changes how somebody logs in asks again after this many seconds.
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60
MFA_ADAPTER = "accounts.adapter.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "accounts.console.forms.CodeForm",
    "reauthenticate": "accounts.console.forms.CodeAgainForm",
}
MFA_TOTP_ISSUER = "Groundswell"
# Telephones whose clock is half a minute off.
MFA_TOTP_TOLERANCE = 1
# What authenticator apps share with the server is encrypted; the first key
# writes, all of them read. Without any, one is derived from the secret key.
SECOND_FACTOR_KEYS = env.list("GROUNDSWELL_SECOND_FACTOR_KEYS", default=[])
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "console_home"
SECOND_FACTOR_URL = "second_factor_set_up"
# Off in a demonstration only, so that nobody needs an authenticator to look
# around: a check refuses it wherever it is not `settings.embedded`.
SECOND_FACTOR_REQUIRED = True
EMBEDDED = False
# Their cookies are not a respondent's.
STAFF_ADDRESSES = ["/console/", "/engineers/"]
CSRF_FAILURE_VIEW = "accounts.console.errors.csrf_failure"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]

# A respondent's session has a fixed life and is never written on a page turn.
SESSION_COOKIE_AGE = 4 * 60 * 60
# Closing the browser gives the seat free.
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = True

SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = env.str("GROUNDSWELL_TIME_ZONE", default="America/Chicago")
USE_I18N = True
USE_TZ = True

# Where people reach this installation: what links in mails begin with. Never
# what a request says of itself, which whoever sends it may choose.
PUBLIC_ADDRESS = env.str(
    "GROUNDSWELL_URL", default=f"https://{ALLOWED_HOSTS[0].lstrip('.')}"
).rstrip("/")

# smtp+tls://user:password@host:587, or a folder of files: filemail:////path
vars().update(env.email_url("GROUNDSWELL_EMAIL_URL", default="smtp://localhost:25"))
# A mail server that hangs holds up a worker for so many seconds, and no more.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str(
    "GROUNDSWELL_EMAIL_FROM", default="Groundswell <groundswell@localhost>"
)

STATIC_URL = "/static/"
STATIC_ROOT = env.str("GROUNDSWELL_STATIC_ROOT", default=str(BASE_DIR / "collected"))
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "compressor.finders.CompressorFinder",
]
# Rosters and exports; on a fleet, a folder that web servers and workers share.
FILES_FOLDER = env.str("GROUNDSWELL_FILES", default=str(BASE_DIR / ".files"))
# Under which nginx serves that folder to itself; empty: Django sends the files.
FILES_ADDRESS = env.str("GROUNDSWELL_FILES_ADDRESS", default="")
PRIVATE_FILES: dict[str, Any] = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {
        "location": FILES_FOLDER,
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    },
}
STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "private": PRIVATE_FILES,
    # Names carry a hash of the content, and gzip and brotli copies lie beside.
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
# Compressor's bundles have such names as well, but are not in the manifest.
WHITENOISE_IMMUTABLE_FILE_TEST = r"^.+\.[0-9a-f]{12}\.[a-z0-9]+$"
COMPRESS_OFFLINE = True
COMPRESS_CSS_HASHING_METHOD = "content"
COMPRESS_FILTERS = {
    "css": ["compressor.filters.cssmin.rCSSMinFilter"],
    "js": [
        "settings.infrastructure.bundling.JoinedModule",
        "compressor.filters.jsmin.rJSMinFilter",
    ],
}

# django-cache-machine's: published rows never change, a lagging replica's miss
# must not stick, and counting in SQL is the faster way (-1: never kept).
CACHE_MACHINE_NO_INVALIDATION = True
CACHE_EMPTY_QUERYSETS = False
CACHE_COUNT_TIMEOUT = -1

# The respondents' pool sends no tasks, and does not import them.
LOADS_TASKS = True
# A message wakes a worker; without a broker, `manage.py work` looks itself.
JOBS_BY_MESSAGE = True
# By urgency, each with workers of its own; see survey.jobs. What names no queue
# is quick. Named here, both are watched by /readyz.
CELERY_TASK_QUEUES = [
    Queue(name, Exchange(name), routing_key=name) for name in ("quick", "long")
]
CELERY_TASK_DEFAULT_QUEUE = "quick"
# Celery beat's, and that of `manage.py work`: tasks, and every how many seconds.
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "delete old cards": {"task": "survey.tasks.delete_old_cards", "schedule": 3600},
    "wake forgotten jobs": {"task": "survey.tasks.wake_forgotten_jobs", "schedule": 15},
    "forget old rosters": {
        "task": "survey.tasks.forget_old_rosters",
        "schedule": 6 * 60 * 60,
    },
    # One that waited for a minute is not worth doing: the next one is there.
    "roll up response rates": {
        "task": "reports.tasks.roll_up_rates",
        "schedule": 60,
        "options": {"expires": 60},
    },
    "delete old exports": {"task": "reports.tasks.delete_old_exports", "schedule": 600},
    "send letters": {"task": "accounts.tasks.send_letters", "schedule": 5},
    "forget failed tries": {
        "task": "accounts.tasks.forget_failed_tries",
        "schedule": 60 * 60,
    },
}

# Who answers for the monitoring, and what with; see settings.monitoring.
MONITORING = {
    "/healthz": "settings.monitoring.health.healthz",
    "/readyz": "settings.monitoring.health.readyz",
    "/metrics": "settings.monitoring.metrics_page.metrics",
}
# nginx's monitoring port adds it to what it passes on; none: no metrics.
MONITORING_KEY = env.str("GROUNDSWELL_MONITORING_KEY", default="")
# The sockets whose queues are measured.
MONITORED_SOCKETS = env.list("GROUNDSWELL_MONITORED", default=[])
# Where the processes of all pools count together.
METRICS_FOLDER = env.str("PROMETHEUS_MULTIPROC_DIR", default="")

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
