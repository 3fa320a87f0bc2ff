"""The development settings; production does not need the toolbar."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from settings.tests.test_stack import SECRETS

pytestmark = pytest.mark.slow

ASK = """
import json, django
django.setup()
from django.conf import settings
from django.core.management import call_command
from django.test import Client
import sys
if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    call_command("migrate", verbosity=0)
page = Client().get("/")
print(json.dumps({
    "engine": settings.DATABASES["default"]["ENGINE"],
    "status": page.status_code,
    "toolbar": "djdt-handle" in page.text or "djDebug" in page.text,
    "policy": page.headers.get("Content-Security-Policy", ""),
    "imported": "debug_toolbar" in sys.modules,
}))
"""
# Simulates that the toolbar is not installed.
WITHOUT = "import sys; sys.modules['debug_toolbar'] = None\n"


def answer(module: str, data: object, program: str = ASK, **environment: str) -> dict:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GROUNDSWELL_", "DJANGO_"))
    }
    asked = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env={
            **kept,
            "DJANGO_SETTINGS_MODULE": module,
            "GROUNDSWELL_DATA": str(data),
            "GROUNDSWELL_HOSTS": "testserver",
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout.splitlines()[-1])


def test_development_shows_the_toolbar(tmp_path):
    page = answer("settings.development", tmp_path)
    assert page["status"] == 200
    assert page["toolbar"]
    assert page["engine"] == "django.db.backends.sqlite3"


def test_development_uses_the_stacks_servers_if_configured(tmp_path):
    page = answer(
        "settings.development",
        tmp_path,
        **SECRETS,
        GROUNDSWELL_DATABASE_HOST=str(tmp_path),
    )
    assert page["engine"] == "django.db.backends.postgresql"
    assert page["status"] == 200


@pytest.mark.parametrize("module", ["embedded", "stack", "respondent_pool"])
def test_other_settings_do_not_need_the_toolbar(tmp_path, module):
    page = answer(
        f"settings.{module}",
        tmp_path,
        WITHOUT + "import django; django.setup()\n"
        "from django.conf import settings\n"
        "from importlib import import_module\n"
        "import_module(settings.ROOT_URLCONF)\n"
        "print('{\"installed\": %d}' % ('debug_toolbar' in settings.INSTALLED_APPS))",
        **SECRETS,
    )
    assert page == {"installed": 0}


def test_development_needs_the_toolbar(tmp_path):
    with pytest.raises(AssertionError, match="debug_toolbar"):
        answer("settings.development", tmp_path, WITHOUT + ASK)
