"""The respondents' pool with views that never end, for provisioning's test_stack."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import repeat

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.module_loading import import_string

# Sets Django up, without which the modules below can't be imported.
from survey.taking.wsgi import application as application


def hang(request: HttpRequest, way: str) -> HttpResponse:
    if way == "loop":
        while True:
            pass
    elif way == "regex":
        # Doubles with each letter.
        re.match(r"(a+)+$", "a" * 60 + "b")
    elif way == "c":
        # Never returns to Python, so that no signal's handler runs.
        sum(repeat(0))
    elif way == "statement":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(3600)")
    return HttpResponse()


retry_once = import_string("survey.taking.unavailable.retry_once")
import_module("survey.urls").urlpatterns.insert(
    0, path("take/hang/<slug:way>/", retry_once(hang))
)
