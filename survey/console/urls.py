"""The administrators' pages about surveys and the people who answer them."""

from __future__ import annotations

from django.urls import path

from survey.console import administrations, jobs, waves

urlpatterns = [
    path("jobs/<int:pk>/", jobs.job_progress, name="job_progress"),
    path("jobs/<int:pk>/cancel/", jobs.job_cancel, name="job_cancel"),
    path(
        "administrations/",
        administrations.administration_list,
        name="administration_list",
    ),
    path(
        "administrations/open/",
        administrations.administration_open,
        name="administration_open",
    ),
    path(
        "administrations/<int:pk>/",
        administrations.administration_detail,
        name="administration_detail",
    ),
    path(
        "administrations/<int:pk>/change/",
        administrations.administration_change,
        name="administration_change",
    ),
    path(
        "administrations/<int:pk>/close/",
        administrations.administration_close,
        name="administration_close",
    ),
    path(
        "administrations/<int:pk>/reopen/",
        administrations.administration_reopen,
        name="administration_reopen",
    ),
    path("waves/", waves.wave_list, name="wave_list"),
    path("waves/new/", waves.wave_create, name="wave_create"),
    path("waves/<int:pk>/rename/", waves.wave_rename, name="wave_rename"),
    path("waves/<int:pk>/delete/", waves.wave_delete, name="wave_delete"),
]
