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
from django.test import Client
# The login page of respondents reads no database.
page = Client().get("/")
print(json.dumps({
    "engine": settings.DATABASES["default"]["ENGINE"],
    "status": page.status_code,
    "toolbar": "djdt-handle" in page.text or "djDebug" in page.text,
}))
"""
# Simulates that the toolbar is not installed.
WITHOUT = "import sys; sys.modules['debug_toolbar'] = None\n"
IMPORT = """
import json, django
from importlib import import_module
django.setup()
from django.conf import settings
import_module(settings.ROOT_URLCONF)
names = ("embedded", "respondent_pool")
modules = [settings, *(import_module(f"settings.{name}") for name in names)]
installed = ["debug_toolbar" in module.INSTALLED_APPS for module in modules]
print(json.dumps({"installed": installed}))
"""


def answer(module: str, data: object, program: str = ASK, **environment: str) -> dict:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GROUNDSWELL_", "DJANGO_"))
    }
    asked = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env={
            **inherited,
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


def test_other_settings_do_not_need_the_toolbar(tmp_path):
    page = answer("settings.stack", tmp_path, WITHOUT + IMPORT, **SECRETS)
    assert page == {"installed": [False, False, False]}


def test_development_needs_the_toolbar(tmp_path):
    with pytest.raises(AssertionError, match="debug_toolbar"):
        answer("settings.development", tmp_path, WITHOUT + ASK)
