"""Settings as `startproject` writes them, with the database from the environment."""

from __future__ import annotations

import json
import os

DATABASES = {"default": json.loads(os.environ["PLAIN_SURVEY_DATABASE"])}
SECRET_KEY = os.environ["PLAIN_SURVEY_KEY"]
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "provisioning.measure.peers.plain_survey.views"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "provisioning.measure.peers.plain_survey",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
TIME_ZONE = "UTC"
USE_TZ = True
