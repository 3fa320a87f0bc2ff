"""The administrators' pages about surveys and the people who answer them."""

from __future__ import annotations

from django.urls import path

from survey.console import administrations, cards, jobs, people, waves

PEOPLE = "administrations/<int:pk>/people/"
CARDS = "administrations/<int:pk>/cards/"

urlpatterns = [
    path(PEOPLE, people.people_list, name="people_list"),
    path(f"{PEOPLE}<int:respondent>/", people.people_detail, name="people_detail"),
    path(f"{PEOPLE}<int:respondent>/code/", people.people_code, name="people_code"),
    path(
        f"{PEOPLE}<int:respondent>/reissue/",
        people.people_reissue,
        name="people_reissue",
    ),
    path(f"{PEOPLE}<int:respondent>/card/", cards.cards_of_one, name="cards_of_one"),
    path(CARDS, cards.cards_list, name="cards_list"),
    path(f"{CARDS}reissue/", cards.cards_reissue, name="cards_reissue"),
    path(f"{CARDS}<int:card_set>/", cards.cards_detail, name="cards_detail"),
    path(f"{CARDS}<int:card_set>/file/", cards.cards_download, name="cards_download"),
    path(f"{CARDS}<int:card_set>/again/", cards.cards_again, name="cards_again"),
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
