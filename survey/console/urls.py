"""The administrators' pages about surveys and the people who answer them."""

from __future__ import annotations

from django.urls import path

from survey.console import jobs, rosters

urlpatterns = [
    path("jobs/<int:pk>/", jobs.job_progress, name="job_progress"),
    path("jobs/<int:pk>/cancel/", jobs.job_cancel, name="job_cancel"),
    path("rosters/", rosters.roster_list, name="roster_list"),
    path(
        "administrations/<int:pk>/roster/", rosters.roster_upload, name="roster_upload"
    ),
    path(
        "administrations/<int:pk>/roster/template.csv",
        rosters.roster_template,
        {"ending": "csv"},
        name="roster_template_csv",
    ),
    path(
        "administrations/<int:pk>/roster/template.xlsx",
        rosters.roster_template,
        {"ending": "xlsx"},
        name="roster_template_xlsx",
    ),
    path("rosters/<int:pk>/", rosters.roster_detail, name="roster_detail"),
    path("rosters/<int:pk>/rejected/", rosters.roster_rejected, name="roster_rejected"),
    path(
        "rosters/<int:pk>/rejected.csv",
        rosters.roster_rejected_file,
        name="roster_rejected_file",
    ),
    path("rosters/<int:pk>/confirm/", rosters.roster_confirm, name="roster_confirm"),
    path("rosters/<int:pk>/cancel/", rosters.roster_cancel, name="roster_cancel"),
    path("rosters/<int:pk>/again/", rosters.roster_again, name="roster_again"),
]
