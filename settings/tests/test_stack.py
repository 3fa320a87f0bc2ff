"""The stack's settings: no default for a secret, addresses from the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

pytestmark = pytest.mark.once

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
def test_a_missing_secret_is_named(missing):
    given = {name: value for name, value in SECRETS.items() if name != missing}
    refused = python("-c", "import settings.stack", **given)
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert last == (
        "django.core.exceptions.ImproperlyConfigured:"
        f" Set {missing}: the stack has no default for it."
    )


def test_django_finds_nothing_to_warn_about_before_deploying():
    check = ["manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    assert python(*check, **SECRETS).returncode == 0
    short = {**SECRETS, "GROUNDSWELL_SECRET_KEY": "short"}
    assert python(*check, **short).returncode == 1


def test_addresses_come_from_the_environment():
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
def test_links_in_mails_begin_with_what_is_configured(given, address):
    assert value_of("stack.PUBLIC_ADDRESS", **given) == address


def test_mails_go_where_the_environment_says():
    expression = "[stack.EMAIL_HOST, stack.EMAIL_PORT, stack.EMAIL_USE_TLS]"
    url = "smtp+tls://somebody:secret@mail.example.org:587"
    found = value_of(expression, GROUNDSWELL_EMAIL_URL=url)
    assert found == ["mail.example.org", 587, True]


def test_tasks_are_acknowledged_late_and_leave_no_result():
    program = (
        "import json; from settings import celery_app as app;"
        "names = ['task_acks_late', 'task_reject_on_worker_lost',"
        " 'worker_prefetch_multiplier', 'task_ignore_result', 'task_always_eager'];"
        "print(json.dumps([app.conf[name] for name in names]))"
    )
    stack = json.loads(python("-c", program, **SECRETS).stdout)
    assert stack == [True, True, 1, True, False]
