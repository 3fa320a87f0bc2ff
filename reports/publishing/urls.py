"""URLs below /results/, which everybody may open."""

from __future__ import annotations

from django.urls import path

from reports.publishing import views

urlpatterns = [
    path("", views.published_list, name="published_list"),
    path("hidden/", views.published_hidden, name="published_hidden_in_all"),
    path("schools/<int:pk>/", views.published_of_school, name="published_of_school"),
    path("<int:pk>/", views.published_state, name="published_state"),
    path("<int:pk>/hidden/", views.published_hidden, name="published_hidden"),
    path("<int:pk>/scores.csv", views.published_scores, name="published_scores"),
    path(
        "<int:pk>/dictionary.csv",
        views.published_dictionary,
        name="published_dictionary",
    ),
    path("<int:pk>/answers.csv", views.published_answers, name="published_answers"),
    path(
        "<int:pk>/districts/<int:district>/",
        views.published_district,
        name="published_district",
    ),
    path(
        "<int:pk>/districts/<int:district>/answers.csv",
        views.published_answers,
        name="published_answers_of_district",
    ),
    path(
        "<int:pk>/schools/<int:school>/",
        views.published_school,
        name="published_school",
    ),
    path(
        "<int:pk>/schools/<int:school>/answers.csv",
        views.published_answers,
        name="published_answers_of_school",
    ),
]
