"""The development settings; what production needs late, or not at all."""

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
import json, sys, django
from importlib import import_module
django.setup()
from django.conf import settings
import_module(settings.ROOT_URLCONF)
names = ("embedded", "respondent_pool")
modules = [settings, *(import_module(f"settings.{name}") for name in names)]
installed = ["debug_toolbar" in module.INSTALLED_APPS for module in modules]

def large():
    return [name for name in ("fpdf", "scipy.optimize") if name in sys.modules]

at_first = large()
import numpy as np
from reports.rasch.calibration import optimum
import_module("survey.people.certificates.pdf")
optimum(lambda x: (x @ x, 2 * x), lambda x: 2 * np.eye(1), np.ones(1))
print(json.dumps({"installed": installed, "at_first": at_first, "later": large()}))
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


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return answer("settings.stack", folder, WITHOUT + IMPORT, **SECRETS)


def test_other_settings_do_not_need_the_toolbar(imported):
    assert imported["installed"] == [False, False, False]


def test_a_process_has_large_libraries_only_once_it_draws_or_calibrates(imported):
    assert imported["at_first"] == []
    # The twin: with them it would have 60 MB more from its start.
    assert imported["later"] == ["fpdf", "scipy.optimize"]


def test_development_needs_the_toolbar(tmp_path):
    with pytest.raises(AssertionError, match="debug_toolbar"):
        answer("settings.development", tmp_path, WITHOUT + ASK)
