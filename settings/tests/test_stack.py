"""The stack's settings: required secrets, and addresses from the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.checks.registry import registry

from accounts.checks import check_second_factor
from survey.database.replica.reports import reports_database

pytestmark = pytest.mark.slow

SECRETS = {
    "GROUNDSWELL_SECRET_KEY": "a-secret-of-the-stack-" * 3,
    "GROUNDSWELL_ACCESS_CODE_KEYS": "1=the-first-key-of-the-stack",
}


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GROUNDSWELL_", "DJANGO_"))
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=settings.BASE_DIR,
        env={**kept, "DJANGO_SETTINGS_MODULE": "settings.stack", **environment},
        capture_output=True,
        text=True,
    )


def value_of(expression: str, **environment: str) -> object:
    program = (
        f"import json; from settings import stack; print(json.dumps({expression}))"
    )
    return json.loads(python("-c", program, **SECRETS, **environment).stdout)


@pytest.mark.parametrize("missing", SECRETS)
def test_a_missing_secret_is_named_in_the_error(missing):
    given = {name: value for name, value in SECRETS.items() if name != missing}
    refused = python("-c", "import settings.stack", **given)
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert last == (
        "django.core.exceptions.ImproperlyConfigured:"
        f" Set {missing}: the stack has no default for it."
    )


def test_only_the_respondents_pool_does_not_check_its_connections():
    checks = "stack.DATABASES['default']['CONN_HEALTH_CHECKS']"
    assert value_of(checks) is True
    pool = f"[__import__('settings.respondent_pool').respondent_pool and {checks}]"
    assert value_of(pool) == [False]


def test_the_deployment_check_has_no_warnings():
    check = ["manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    assert python(*check, **SECRETS).returncode == 0
    short = {**SECRETS, "GROUNDSWELL_SECRET_KEY": "short"}
    assert python(*check, **short).returncode == 1


def test_server_addresses_come_from_the_environment():
    default = value_of("stack.DATABASES['default']")
    assert (default["HOST"], default["PORT"]) == ("/var/run/postgresql", 6432)
    elsewhere = value_of(
        "[stack.DATABASES['default']['HOST'], stack.CACHES['default']['LOCATION']]",
        GROUNDSWELL_DATABASE_HOST="10.0.0.5",
        GROUNDSWELL_MEMCACHED="10.0.0.6:11211,10.0.0.7:11211",
    )
    assert elsewhere == ["10.0.0.5", ["10.0.0.6:11211", "10.0.0.7:11211"]]


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({"GROUNDSWELL_URL": "https://s.example.org/"}, "https://s.example.org"),
        ({"GROUNDSWELL_HOSTS": ".s.example.org,x"}, "https://s.example.org"),
        ({"GROUNDSWELL_HOSTS": "here", "GROUNDSWELL_TLS": "off"}, "http://here"),
    ],
)
def test_links_in_emails_begin_with_the_configured_url(given, address):
    assert value_of("stack.PUBLIC_ADDRESS", **given) == address


def test_the_mail_server_comes_from_the_environment():
    expression = "[stack.EMAIL_HOST, stack.EMAIL_PORT, stack.EMAIL_USE_TLS]"
    url = "smtp+tls://somebody:secret@mail.example.org:587"
    found = value_of(expression, GROUNDSWELL_EMAIL_URL=url)
    assert found == ["mail.example.org", 587, True]


def test_each_queue_has_its_own_exchange_and_routing_key():
    program = (
        "import json; from settings import celery_app as app;"
        "queues = app.amqp.queues.values();"
        "print(json.dumps([[q.name, q.exchange.name, q.routing_key] for q in queues]"
        " + [app.conf.task_default_queue, list(app.conf.beat_schedule)]))"
    )
    *queues, default, schedule = json.loads(python("-c", program, **SECRETS).stdout)
    assert queues == [
        [name, name, name]
        for name in ("quick", "confirmed", "long", "scans", "emails", "downloads")
    ]
    assert default == "quick"
    assert "wake forgotten jobs" in schedule


def test_workers_read_reports_from_a_separate_pool():
    given = {
        "GROUNDSWELL_REPORTS_HOST": "/run/pool",
        "GROUNDSWELL_REPORTS_NAME": "reports_replica",
    }
    alias = (
        "[__import__('survey.database.replica.reports').database.replica.reports.REPORTS,"
        " list(stack.DATABASES)]"
    )
    assert value_of(alias, **given) == ["reports", ["default", "reports"]]
    names = "[stack.DATABASES['reports'][name] for name in ('NAME', 'USER', 'HOST')]"
    assert value_of(names, **given) == ["reports_replica", "reports", "/run/pool"]
    # Without it (in the web processes), there is no such database.
    assert value_of("list(stack.DATABASES)") == ["default"]


def test_reports_read_the_default_database_without_a_separate_pool(
    monkeypatch,
):
    assert reports_database() == "default"
    monkeypatch.setitem(settings.DATABASES, "reports", {})
    assert reports_database() == "reports"


def test_uploads_are_written_to_the_disk_of_private_files(tmp_path):
    folder = "getattr(stack, 'FILE_UPLOAD_TEMP_DIR', None)"
    assert value_of(folder, GROUNDSWELL_FILES=str(tmp_path)) is None
    (tmp_path / "incoming").mkdir()
    found = value_of(folder, GROUNDSWELL_FILES=str(tmp_path))
    assert found == str(tmp_path / "incoming")


def test_only_the_embedded_settings_can_turn_off_the_second_factor(tmp_path):
    off = {"GROUNDSWELL_SECOND_FACTOR": "off", "GROUNDSWELL_DATA": str(tmp_path)}
    asked = (
        "from importlib import import_module; import sys;"
        "print(import_module(f'settings.{sys.argv[1]}').SECOND_FACTOR_REQUIRED)"
    )
    for name, is_required in (("embedded", "False"), ("stack", "True")):
        assert python("-c", asked, name, **SECRETS, **off).stdout.strip() == is_required
    del off["GROUNDSWELL_SECOND_FACTOR"]
    assert python("-c", asked, "embedded", **off).stdout.strip() == "True"


def test_a_system_check_requires_the_second_factor_elsewhere(monkeypatch):
    assert check_second_factor() == []
    monkeypatch.setattr(settings, "SECOND_FACTOR_REQUIRED", False)
    assert [one.id for one in check_second_factor()] == ["accounts.E001"]
    monkeypatch.setattr(settings, "EMBEDDED", True)
    assert check_second_factor() == []
    # It is registered, so deploying runs it before the migrations.
    assert check_second_factor in registry.registered_checks


def test_tasks_are_acknowledged_late_and_store_no_result():
    program = (
        "import json; from settings import celery_app as app;"
        "names = ['task_acks_late', 'task_reject_on_worker_lost',"
        " 'worker_prefetch_multiplier', 'task_ignore_result', 'task_always_eager'];"
        "print(json.dumps([app.conf[name] for name in names]))"
    )
    stack = json.loads(python("-c", program, **SECRETS).stdout)
    assert stack == [True, True, 1, True, False]


@pytest.mark.parametrize(
    ("tls", "names"),
    [
        ("on", ["__Host-sessionid", "__Host-csrftoken"]),
        ("off", ["sessionid", "csrftoken"]),
    ],
)
def test_with_tls_browsers_bind_cookies_to_the_host(tls, names):
    for module in ("stack", "respondent_pool"):
        program = (
            "import json; from django.conf import settings as s;"
            "print(json.dumps([s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME,"
            " s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SESSION_COOKIE_PATH,"
            " s.CSRF_COOKIE_PATH, s.SESSION_COOKIE_DOMAIN, s.CSRF_COOKIE_DOMAIN]))"
        )
        environment = {
            **SECRETS,
            "DJANGO_SETTINGS_MODULE": f"settings.{module}",
            "GROUNDSWELL_TLS": tls,
        }
        found = json.loads(python("-c", program, **environment).stdout)
        # What the prefix demands; otherwise browsers drop the cookie.
        secure = tls == "on"
        assert found == [*names, secure, secure, "/", "/", None, None]
