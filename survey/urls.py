from __future__ import annotations

from django.urls import path

from survey.fieldwork.message_platforms.endpoint import message_person
from survey.fieldwork.open_codes import views as open_codes
from survey.people.schools import about, finder
from survey.taking import declining, offline, stop, views
from survey.taking.without_javascript import forms as plain_forms

urlpatterns = [
    path("", views.survey_login, name="survey_login"),
    path("open/", open_codes.open_start, name="open_start"),
    path("open/begin/", open_codes.open_begin, name="open_begin"),
    path("open/begun/", open_codes.open_begun, name="open_begun"),
    path("open/decline/", open_codes.open_decline, name="open_decline"),
    path("about/", about.about_page, name="about"),
    path("schools/", finder.school_finder, name="school_finder"),
    path("schools/<int:pk>/", finder.school_page, name="school_page"),
    path(
        "messages/<int:platform>/<slug:person>.json",
        message_person,
        name="message_person",
    ),
    path("logo/<slug:name>/", views.survey_logo, name="survey_logo"),
    path("accent/<slug:digits>.css", views.survey_accent, name="survey_accent"),
    path("take/", views.survey_display, name="survey_display"),
    path("take/pages/<int:n>/", views.survey_change_page, name="survey_change_page"),
    path("take/worker.js", offline.survey_worker, name="survey_worker"),
    path("take/stop/", stop.survey_stop, name="survey_stop"),
    path("take/decline/", declining.survey_decline, name="survey_decline"),
    path("take/plain/", plain_forms.survey_plain_start, name="survey_plain_start"),
    path(
        "take/plain/<int:n>/",
        plain_forms.survey_plain_page,
        name="survey_plain_page",
    ),
    path("take/complete/", views.survey_complete, name="survey_complete"),
    path("take/next-part/", views.survey_next_part, name="survey_next_part"),
    path(
        "content/<slug:digest>/<slug:renderer>/<slug:language>/<int:n>/",
        views.survey_content,
        name="survey_content",
    ),
]

# Of the respondents' pool, whose addresses these are.
handler400 = "survey.taking.error_pages.bad_request"
handler500 = "survey.taking.error_pages.server_error"
