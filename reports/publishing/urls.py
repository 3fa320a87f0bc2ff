"""URLs below /results/, which everybody may open."""

from __future__ import annotations

from django.urls import include, path

from reports.publishing import views

DISTRICT, SCHOOL = "districts/<int:district>/", "schools/<int:school>/"
OF_DISTRICT, OF_SCHOOL = f"{DISTRICT}answers.csv", f"{SCHOOL}answers.csv"
publication_urls = [
    path("", views.published_state, name="published_state"),
    path("hidden/", views.published_hidden, name="published_hidden"),
    path("scores.csv", views.published_scores, name="published_scores"),
    path("dictionary.csv", views.published_dictionary, name="published_dictionary"),
    path("answers.csv", views.published_answers, name="published_answers"),
    path(DISTRICT, views.published_district, name="published_district"),
    path(OF_DISTRICT, views.published_answers, name="published_answers_of_district"),
    path(SCHOOL, views.published_school, name="published_school"),
    path(OF_SCHOOL, views.published_answers, name="published_answers_of_school"),
]

urlpatterns = [
    path("", views.published_list, name="published_list"),
    path("hidden/", views.published_hidden, name="published_hidden_in_all"),
    path("schools/<int:pk>/", views.published_of_school, name="published_of_school"),
    path("<int:pk>/", include(publication_urls)),
]
