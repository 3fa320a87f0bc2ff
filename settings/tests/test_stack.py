"""The stack's settings: required secrets, and addresses from the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.core.checks.registry import registry

from accounts.checks import check_second_factor
from survey.database.replica.reports import reports_database

pytestmark = pytest.mark.slow

SECRETS = {
    "GROUNDSWELL_SECRET_KEY": "a-secret-of-the-stack-" * 3,
    "GROUNDSWELL_ACCESS_CODE_KEYS": "1=the-first-key-of-the-stack",
    "GROUNDSWELL_TIME_ZONE": "America/Denver",
}


Evaluate = Callable[..., object]
# Imports the packages that the settings need once, and forks for each expression,
# because modules of the settings read the environment when they are imported.
EVALUATE = """
import importlib, json, os, sys
import settings.base, settings.servers
from django.utils.module_loading import import_string
for name in [name for name in sys.modules if name.split(".")[0] == "settings"]:
    del sys.modules[name]
for line in sys.stdin:
    module, expression, environment = json.loads(line)
    if os.fork() == 0:
        os.environ.update(environment, DJANGO_SETTINGS_MODULE=f"settings.{module}")
        try:
            names = vars(importlib.import_module(f"settings.{module}"))
            value = eval(expression, {**names, "import_string": import_string})
            text = json.dumps(value)
        except Exception as error:
            text = json.dumps(repr(error))
        print(text, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def value_of() -> Iterator[Evaluate]:
    """Return a function that evaluates an expression in a module of the settings."""
    with subprocess.Popen(
        [sys.executable, "-c", EVALUATE],
        cwd=settings.BASE_DIR,
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GROUNDSWELL_", "DJANGO_"))
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def evaluate(expression: str, module: str = "stack", **given: str) -> object:
            line = json.dumps([module, expression, {**SECRETS, **given}])
            print(line, file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield evaluate


@pytest.mark.parametrize("missing", SECRETS)
def test_a_missing_secret_is_named_in_the_error(value_of, missing):
    assert value_of("SECRET_KEY", **{missing: ""}) == (
        f"ImproperlyConfigured('Set {missing}: the stack has no default for it.')"
    )


def test_only_the_respondents_pool_does_not_check_its_connections(value_of):
    checks = "DATABASES['default']['CONN_HEALTH_CHECKS']"
    assert value_of(checks) is True
    assert value_of(checks, "respondent_pool") is False


def test_the_deployment_check_warns_of_a_short_key(value_of):
    """provisioning/check runs all of them, with secrets that they accept."""
    warnings = (
        "[one.id for one in"
        " import_string('django.core.checks.security.base.check_secret_key')(None)"
        " if one.id not in SILENCED_SYSTEM_CHECKS]"
    )
    assert value_of(warnings) == []
    assert value_of(warnings, GROUNDSWELL_SECRET_KEY="short") == ["security.W009"]


def test_measurements_count_and_calculate_on_the_replica_as_the_stack_does(value_of):
    given = {"GROUNDSWELL_TEST_SERVERS": "/run/servers"}
    ports = "{name: it['PORT'] for name, it in DATABASES.items()}"
    alone = value_of(ports, "browser_test_server", **given)
    assert alone == {"default": 6432}
    given["GROUNDSWELL_TEST_REPLICA"] = "5433"
    databases = value_of(ports, "browser_test_server", **given)
    assert databases == {"default": 6432, "replica": "5433", "reports": "5433"}


def test_server_addresses_come_from_the_environment(value_of):
    default = value_of("[DATABASES['default'][name] for name in ('HOST', 'PORT')]")
    assert default == ["/var/run/postgresql", 6432]
    elsewhere = value_of(
        "[DATABASES['default']['HOST'], CACHES['default']['LOCATION']]",
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
def test_links_in_emails_begin_with_the_configured_url(value_of, given, address):
    assert value_of("PUBLIC_ADDRESS", **given) == address


def test_the_mail_server_comes_from_the_environment(value_of):
    expression = "[EMAIL_HOST, EMAIL_PORT, EMAIL_USE_TLS]"
    url = "smtp+tls://somebody:secret@mail.example.org:587"
    server = value_of(expression, GROUNDSWELL_EMAIL_URL=url)
    assert server == ["mail.example.org", 587, True]


CELERY = "import_string('settings.celery_app')"


def test_each_queue_has_its_own_exchange_and_routing_key(value_of):
    queues = value_of(
        f"[[queue.name, queue.exchange.name, queue.routing_key]"
        f" for queue in {CELERY}.amqp.queues.values()]"
    )
    assert queues == [
        [name, name, name]
        for name in ("quick", "confirmed", "long", "scans", "emails", "downloads")
    ]
    assert value_of(f"{CELERY}.conf.task_default_queue") == "quick"
    assert "wake forgotten jobs" in value_of(f"[*{CELERY}.conf.beat_schedule]")


def test_workers_read_reports_from_a_separate_pool(value_of):
    given = {
        "GROUNDSWELL_REPORTS_HOST": "/run/pool",
        "GROUNDSWELL_REPORTS_NAME": "reports_replica",
    }
    alias = (
        "[import_string('survey.database.replica.reports.REPORTS'), list(DATABASES)]"
    )
    assert value_of(alias, **given) == ["reports", ["default", "reports"]]
    names = "[DATABASES['reports'][name] for name in ('NAME', 'USER', 'HOST')]"
    assert value_of(names, **given) == ["reports_replica", "reports", "/run/pool"]
    # Without it (in the web processes), there is no such database.
    assert value_of("list(DATABASES)") == ["default"]


def test_reports_read_the_default_database_without_a_separate_pool(
    monkeypatch,
):
    assert reports_database() == "default"
    monkeypatch.setitem(settings.DATABASES, "reports", {})
    assert reports_database() == "reports"


def test_uploads_are_written_to_the_disk_of_private_files(value_of, tmp_path):
    folder = "globals().get('FILE_UPLOAD_TEMP_DIR')"
    assert value_of(folder, GROUNDSWELL_FILES=str(tmp_path)) is None
    (tmp_path / "incoming").mkdir()
    folder_name = value_of(folder, GROUNDSWELL_FILES=str(tmp_path))
    assert folder_name == str(tmp_path / "incoming")


def test_only_the_embedded_settings_can_turn_off_the_second_factor(value_of, tmp_path):
    data = {"GROUNDSWELL_DATA": str(tmp_path)}
    off = {**data, "GROUNDSWELL_SECOND_FACTOR": "off"}
    for module, is_required in (("embedded", False), ("stack", True)):
        assert value_of("SECOND_FACTOR_REQUIRED", module, **off) is is_required
    assert value_of("SECOND_FACTOR_REQUIRED", "embedded", **data) is True


def test_a_system_check_requires_the_second_factor_elsewhere(monkeypatch):
    assert check_second_factor() == []
    monkeypatch.setattr(settings, "SECOND_FACTOR_REQUIRED", False)
    assert [problem.id for problem in check_second_factor()] == ["accounts.E001"]
    monkeypatch.setattr(settings, "EMBEDDED", True)
    assert check_second_factor() == []
    # It is registered, so deploying runs it before the migrations.
    assert check_second_factor in registry.registered_checks


def test_tasks_are_acknowledged_late_and_store_no_result(value_of):
    names = [
        *("task_acks_late", "task_reject_on_worker_lost"),
        *("worker_prefetch_multiplier", "task_ignore_result", "task_always_eager"),
    ]
    values = value_of(f"[{CELERY}.conf[name] for name in {names}]")
    assert values == [True, True, 1, True, False]


@pytest.mark.parametrize(
    ("tls", "names"),
    [
        ("on", ["__Host-sessionid", "__Host-csrftoken"]),
        ("off", ["sessionid", "csrftoken"]),
    ],
)
def test_with_tls_browsers_bind_cookies_to_the_host(value_of, tls, names):
    for module in ("stack", "respondent_pool"):
        values = value_of(
            "[getattr(import_string('django.conf.settings'), f'{cookie}_COOKIE_{name}')"
            " for name in ('NAME', 'SECURE', 'PATH', 'DOMAIN')"
            " for cookie in ('SESSION', 'CSRF')]",
            module,
            GROUNDSWELL_TLS=tls,
        )
        # What the prefix demands; otherwise browsers drop the cookie.
        secure = tls == "on"
        assert values == [*names, secure, secure, "/", "/", None, None]


def test_without_a_broker_jobs_wait_for_a_worker_that_looks(value_of):
    assert value_of("JOBS_BY_MESSAGE") is True
    assert value_of("JOBS_BY_MESSAGE", GROUNDSWELL_BROKER="") is False
