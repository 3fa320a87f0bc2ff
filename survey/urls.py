from __future__ import annotations

from django.urls import path

from accounts.routes import page
from survey.fieldwork.message_platforms.endpoint import message_person
from survey.fieldwork.open_codes import views as open_codes
from survey.people.schools import about, finder
from survey.taking import declining, offline, stop, views
from survey.taking.without_javascript import forms as plain_forms

urlpatterns = [
    page("", views.survey_login),
    page("open/", open_codes.open_start),
    page("open/begin/", open_codes.open_begin),
    page("open/begun/", open_codes.open_begun),
    page("open/decline/", open_codes.open_decline),
    path("about/", about.about_page, name="about"),
    page("schools/", finder.school_finder),
    page("schools/<int:pk>/", finder.school_page),
    page("messages/<int:platform>/<slug:person>.json", message_person),
    page("logo/<slug:name>/", views.survey_logo),
    page("accent/<slug:digits>.css", views.survey_accent),
    page("take/", views.survey_display),
    page("take/pages/<int:n>/", views.survey_change_page),
    page("take/worker.js", offline.survey_worker),
    page("take/stop/", stop.survey_stop),
    page("take/decline/", declining.survey_decline),
    page("take/plain/", plain_forms.survey_plain_start),
    page("take/plain/<int:n>/", plain_forms.survey_plain_page),
    page("take/complete/", views.survey_complete),
    page("take/next-part/", views.survey_next_part),
    page(
        "content/<slug:digest>/<slug:renderer>/<slug:language>/<int:n>/",
        views.survey_content,
    ),
]

# Of the respondents' pool, whose addresses these are.
handler400 = "survey.taking.error_pages.bad_request"
handler500 = "survey.taking.error_pages.server_error"
