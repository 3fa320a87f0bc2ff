"""Define the settings that all installations share."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.conf.locale import LANG_INFO
from kombu import Exchange, Queue

from settings.email_providers import read_provider

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

SECRET_KEY = env.str("GROUNDSWELL_SECRET_KEY", default="")
# Signs lists of public pages in Memcached, where all pools read and write them.
LISTS_KEY = env.str("GROUNDSWELL_LISTS_KEY", default=SECRET_KEY)
DEBUG = False
ALLOWED_HOSTS = env.list("GROUNDSWELL_HOSTS", default=["127.0.0.1", "localhost"])

# Version -> key. Access codes are printed on cards that outlive a web server's
# secret key, so they have separate keys. New codes use the newest key; codes
# made with any of the keys are accepted.
ACCESS_CODE_KEYS: dict[int, str] = {
    int(version): key
    for version, key in env.dict("GROUNDSWELL_ACCESS_CODE_KEYS", default={}).items()
}
# Version -> key in hexadecimal, derived from the one above. The respondents'
# pool has only these: they find the person whose code was typed, and cannot
# spell anybody's code.
ACCESS_CODE_DIGEST_KEYS: dict[int, str] = {
    int(version): key
    for version, key in env.dict(
        "GROUNDSWELL_ACCESS_CODE_DIGEST_KEYS", default={}
    ).items()
}

# Keys that encrypt the credentials of roster feeds. The first key encrypts, all
# of them decrypt.
FEED_KEYS: list[str] = env.list("GROUNDSWELL_FEED_KEYS", default=[])
# Long random texts from which the keys that sign certificates of destruction are
# made. The first signs. Only workers and `manage.py` have them.
CERTIFICATE_KEYS: list[str] = env.list("GROUNDSWELL_CERTIFICATE_KEYS", default=[])
# Networks, such as 10.1.0.0/16, that feeds may connect to although they are not
# public. Only there may a feed use http:// and any port.
FEED_NETWORKS: list[str] = env.list("GROUNDSWELL_FEED_NETWORKS", default=[])

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

# Seconds of a request, and some more for a large upload. gunicorn gives the
# respondents' pool as many.
REQUEST_SECONDS = 15

MIDDLEWARE = [
    "settings.infrastructure.time_limit.TimeLimitMiddleware",
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
    "accounts.language.LanguageMiddleware",
    "accounts.console.errors.MethodNotAllowedMiddleware",
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
                "survey.taking.places.brand_of_errors",
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
# There is no sign-up: staff are invited, and the link in the invitation proves
# that the address is theirs.
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_FORMS = {
    "login": "accounts.console.forms.LoginForm",
    "reset_password": "accounts.console.forms.ForgottenPasswordForm",
    "change_password": "accounts.console.forms.ChangePasswordForm",
    "set_password": "accounts.console.forms.SetPasswordForm",
    "reauthenticate": "accounts.console.forms.PasswordAgainForm",
}
# allauth's limits count per IP address, which a whole district office may
# share, and in the cache, which may be down. accounts.login_throttle replaces
# them.
ACCOUNT_RATE_LIMITS = False
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
# Changing a password or second factor requires the password again after this
# many seconds.
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60
MFA_ADAPTER = "accounts.adapter.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "accounts.console.forms.CodeForm",
    "reauthenticate": "accounts.console.forms.CodeAgainForm",
}
MFA_TOTP_ISSUER = "Groundswell"
# Accepts codes from phones whose clock is up to 30 seconds off.
MFA_TOTP_TOLERANCE = 1
# Keys that encrypt the secrets shared with authenticator apps. The first key
# encrypts, all of them decrypt. Without any, a key is derived from SECRET_KEY.
SECOND_FACTOR_KEYS = env.list("GROUNDSWELL_SECOND_FACTOR_KEYS", default=[])
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "console_home"
SECOND_FACTOR_URL = "second_factor_set_up"
# Turned off only in the demo, where visitors should not need an authenticator
# app. A system check refuses to start without it outside `settings.embedded`.
SECOND_FACTOR_REQUIRED = True
EMBEDDED = False
# Where Grafana shows the dashboards of this installation; engineers get a link.
DASHBOARDS_URL = env.str("GROUNDSWELL_DASHBOARDS", default="")
# The version of Groundswell, and the commit that was installed.
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"][
    "version"
]
COMMIT = env.str("GROUNDSWELL_VERSION", default="")
# Where crashes are reported; see settings.monitoring.error_tracking. If empty, nothing
# is sent, and the library is not imported.
SENTRY_DSN = env.str("GROUNDSWELL_SENTRY_DSN", default="")
# Where the source of this installation is, if it was changed: its licence asks for a
# link then. Shown in the console and on the public page about the survey.
SOURCE_URL = env.str("GROUNDSWELL_SOURCE_URL", default="")
# Paths on which staff have session cookies separate from respondents'.
STAFF_ADDRESSES = ["/console/", "/engineers/", "/help/"]
# The help site, as provisioning/help_site builds it.
HELP_FOLDER = BASE_DIR / ".help" / "site"
# What error pages show of the state, without asking the database.
KNOWN_PLACE_OF_STATE = "survey.taking.places.known_place_of_state"
CSRF_FAILURE_VIEW = "accounts.console.errors.csrf_failure"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]

# Staff sessions are in the database: nothing that respondents do, or a full or
# missing Redis, can keep staff out. The stack stores respondents' in Redis.
SESSION_ENGINE = "django.contrib.sessions.backends.db"
RESPONDENT_SESSION_ENGINE = SESSION_ENGINE
# A respondent's session has a fixed lifetime, so that saving a page does not
# have to write it.
SESSION_COOKIE_AGE = 4 * 60 * 60
# Students share computers: closing the browser ends the session.
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
        "worker-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

# Whether the database is a Citus cluster; see survey/database/distribution.py.
IS_DISTRIBUTED = env.bool("GROUNDSWELL_DISTRIBUTED", default=False)

# People who answered fewer items of a measure have none: one item alone cannot show
# whether a person's answers go together.
FEWEST_ANSWERS_OF_A_MEASURE = env.int("GROUNDSWELL_FEWEST_ANSWERS", default=2)

# Surveys can be reloaded without a network. If off, the service workers that
# browsers have remove themselves.
WORKS_OFFLINE = env.bool("GROUNDSWELL_OFFLINE", default=True)

LANGUAGE_CODE = "en-us"
# The console is offered in English and in each language that has a catalog here
# (`manage.py update_translations`). Surveys have languages of their own.
LOCALE_PATHS = [BASE_DIR / "settings" / "locale", BASE_DIR / "reports" / "locale"]
LANGUAGES = [
    ("en", "English"),
    *(
        (code, LANG_INFO[code]["name_local"].capitalize())
        for code in sorted(
            path.parts[-3] for path in LOCALE_PATHS[0].glob("*/LC_MESSAGES/django.mo")
        )
        if code in LANG_INFO
    ),
]
# The state's. The stack has no default: a window that is an hour off is found on the
# day of the survey.
TIME_ZONE = env.str("GROUNDSWELL_TIME_ZONE", default="")
USE_I18N = True
# How dates are written in English; other languages have Django's formats.
FORMAT_MODULE_PATH = "settings.formats"
USE_TZ = True

# The public URL of this installation, with which links in e-mails begin. It is
# never taken from a request, because the sender controls the Host header.
PUBLIC_ADDRESS = env.str(
    "GROUNDSWELL_URL", default=f"https://{ALLOWED_HOSTS[0].lstrip('.')}"
).rstrip("/")

# For example smtp+tls://user:password@host:587, or filemail:////path to write
# e-mails to a folder.
vars().update(env.email_url("GROUNDSWELL_EMAIL_URL", default="smtp://localhost:25"))
# Seconds after which a worker gives up on a mail server that does not respond.
EMAIL_TIMEOUT = 10
# Or amazon_ses, postmark, mailgun or sendgrid, by GROUNDSWELL_EMAIL_PROVIDER.
_provider = read_provider(env, EMAIL_TIMEOUT)
EMAIL_PROVIDER: str = _provider["EMAIL_PROVIDER"]
vars().update(_provider)
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
# Rosters and exports. With several machines, a folder that web servers and
# workers share.
FILES_FOLDER = env.str("GROUNDSWELL_FILES", default=str(BASE_DIR / ".files"))
# In object storage instead; see bucket.py. The folder is then each host's own.
FILES_BUCKET = ""
# The internal nginx location of that folder. If empty, Django sends the files.
FILES_ADDRESS = env.str("GROUNDSWELL_FILES_ADDRESS", default="")
PRIVATE_FILES: dict[str, Any] = {
    "BACKEND": "settings.infrastructure.file_storage.TimedFileStorage",
    "OPTIONS": {
        "location": FILES_FOLDER,
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    },
}
STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "private": PRIVATE_FILES,
    # File names contain a hash of the content; gzip and brotli copies are stored
    # next to the files.
    "staticfiles": {"BACKEND": "settings.infrastructure.static_storage.StaticStorage"},
}
# Compressor's bundles also have a hash in their names, but are not in the
# manifest.
WHITENOISE_IMMUTABLE_FILE_TEST = r"^.+\.[0-9a-f]{12}\.[a-z0-9]+$"
COMPRESS_OFFLINE = True
# The names of fonts have a hash of their own.
COMPRESS_CSS_HASHING_METHOD = None
COMPRESS_FILTERS = {
    "css": [
        "compressor.filters.css_default.CssRelativeFilter",
        "compressor.filters.cssmin.rCSSMinFilter",
    ],
    "js": [
        "settings.infrastructure.bundling.BundledModule",
        "compressor.filters.jsmin.rJSMinFilter",
    ],
}

# Settings of django-cache-machine. Published rows never change, so nothing has
# to be invalidated. Empty results are not cached, because a row may only be
# missing on a lagging replica. Counts are not cached (-1): SQL is faster.
CACHE_MACHINE_NO_INVALIDATION = True
CACHE_EMPTY_QUERYSETS = False
CACHE_COUNT_TIMEOUT = -1

# The respondent pool sends no tasks and does not import them.
LOADS_TASKS = True
# Wake workers with a message. Without a broker, `manage.py work` polls the
# database.
JOBS_BY_MESSAGE = True
# One queue per urgency, each with its own workers; see survey.work.jobs. /readyz
# checks that the queues listed here have workers.
CELERY_TASK_QUEUES = [
    Queue(name, Exchange(name), routing_key=name)
    for name in ("quick", "confirmed", "long", "scans", "emails", "downloads")
]
CELERY_TASK_DEFAULT_QUEUE = "quick"
# Queue -> workers of its pool on all hosts, such as downloads=16,scans=2: how many
# of them are idle is shown beside the jobs that wait.
JOB_WORKERS: dict[str, int] = {
    name: int(count)
    for name, count in env.dict("GROUNDSWELL_JOB_WORKERS", default={}).items()
}
# Periodic tasks of Celery beat and of `manage.py work`, with their intervals in
# seconds.
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "delete old cards": {"task": "survey.tasks.delete_old_cards", "schedule": 3600},
    "check erasures": {"task": "survey.tasks.check_erasures", "schedule": 600},
    # Destroys what is due; goes on with what waited for an export, for example.
    "apply retention": {"task": "survey.tasks.apply_retention", "schedule": 60 * 60},
    "wake forgotten jobs": {"task": "survey.tasks.wake_forgotten_jobs", "schedule": 15},
    "start e-mails": {
        "task": "survey.tasks.start_emails",
        "schedule": 30,
        "options": {"expires": 30},
    },
    "forget old rosters": {
        "task": "survey.tasks.forget_old_rosters",
        "schedule": 6 * 60 * 60,
    },
    "start scans of feeds": {
        "task": "survey.tasks.start_feed_scans",
        "schedule": 30,
        "options": {"expires": 30},
    },
    "return unused seats": {
        "task": "survey.tasks.return_unused_seats",
        "schedule": 10 * 60,
    },
    "keep what message platforms read": {
        "task": "survey.tasks.keep_messages",
        "schedule": 60,
        "options": {"expires": 60},
    },
    "check what message platforms read": {
        "task": "survey.tasks.check_messages",
        "schedule": 24 * 60 * 60,
    },
    "delete empty starts": {
        "task": "survey.tasks.delete_empty_starts",
        "schedule": 60 * 60,
    },
    # A task that waited for a minute is skipped: the next one is queued already.
    "roll up response rates": {
        "task": "reports.tasks.roll_up_rates",
        "schedule": 60,
        "options": {"expires": 60},
    },
    # Closed administrations are counted by jobs, one for each.
    "count results": {"task": "reports.tasks.start_due_results", "schedule": 300},
    "delete old exports": {"task": "reports.tasks.delete_old_exports", "schedule": 600},
    "end research projects": {
        "task": "reports.tasks.end_research_projects",
        "schedule": 600,
    },
    "send staff e-mails": {"task": "accounts.tasks.send_staff_emails", "schedule": 5},
    "delete expired sessions": {
        "task": "accounts.tasks.delete_expired_sessions",
        "schedule": 60 * 60,
    },
    "forget failed tries": {
        "task": "accounts.tasks.forget_failed_tries",
        "schedule": 60 * 60,
    },
    "refresh the lists of public pages": {
        "task": "survey.tasks.refresh_lists",
        "schedule": 3,
        "options": {"expires": 3},
    },
    "refresh the words of the school directory": {
        "task": "accounts.tasks.refresh_school_words",
        "schedule": 10 * 60,
    },
}

# Monitoring paths and their views; see settings.monitoring.
MONITORING = {
    "/healthz": "settings.monitoring.health.healthz",
    "/readyz": "settings.monitoring.health.readyz",
    "/metrics": "settings.monitoring.metrics_page.metrics",
}
# A shared key that nginx's monitoring port adds to requests. Without a key,
# /metrics answers 404.
MONITORING_KEY = env.str("GROUNDSWELL_MONITORING_KEY", default="")
# Sockets whose listen queues are measured.
MONITORED_SOCKETS = env.list("GROUNDSWELL_MONITORED", default=[])
# Where nginx serves TLS, such as 0.0.0.0:443: until when its certificate is valid is
# measured. If empty, it is not.
TLS_LISTEN = env.str("GROUNDSWELL_TLS_LISTEN", default="")
# Folder in which the processes of all pools share their counters.
METRICS_FOLDER = env.str("PROMETHEUS_MULTIPROC_DIR", default="")

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
