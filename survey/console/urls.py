"""The administrators' pages about surveys and the people who answer them."""

from __future__ import annotations

from django.urls import path

from survey.console import jobs

urlpatterns = [
    path("jobs/<int:pk>/", jobs.job_progress, name="job_progress"),
    path("jobs/<int:pk>/cancel/", jobs.job_cancel, name="job_cancel"),
]
