"""Addresses of the pages of an administration's people."""

from __future__ import annotations

from django.urls import path

from survey.console.login_cards.views import cards_of_one
from survey.console.people import (
    adding,
    certificates,
    codes,
    consents,
    corrections,
    erasing,
    joining,
    opt_out_lists,
    opt_outs,
    roster_file,
    stored,
    views,
)

PEOPLE = "administrations/<int:pk>/people/"
PERSON = f"{PEOPLE}<int:respondent>/"

urlpatterns = [
    path(PEOPLE, views.people_list, name="people_list"),
    path(f"{PEOPLE}roster.csv", roster_file.people_roster, name="people_roster"),
    path(f"{PEOPLE}new/", adding.people_add, name="people_add"),
    path(f"{PEOPLE}opt-outs/", opt_out_lists.people_opt_outs, name="people_opt_outs"),
    path(
        f"{PEOPLE}opt-outs/save/",
        opt_out_lists.people_opt_outs_save,
        name="people_opt_outs_save",
    ),
    path(f"{PEOPLE}opt-outs/kept/", opt_out_lists.people_listed, name="people_listed"),
    path(
        f"{PEOPLE}opt-outs/kept/<int:listed>/remove/",
        opt_out_lists.people_listed_remove,
        name="people_listed_remove",
    ),
    path(f"{PEOPLE}consents/", consents.people_consents, name="people_consents"),
    path(
        f"{PEOPLE}consents/save/",
        consents.people_consents_save,
        name="people_consents_save",
    ),
    path(f"{PEOPLE}erase/", erasing.people_leavers, name="people_leavers"),
    path(
        f"{PEOPLE}erase/save/", erasing.people_leavers_save, name="people_leavers_save"
    ),
    path(f"{PERSON}erase/", erasing.people_erase, name="people_erase"),
    path("erasures/<int:erasure>/", erasing.erasure_detail, name="erasure_detail"),
    path(
        "certificates/<int:certificate>/json/",
        certificates.certificate_json,
        name="certificate_json",
    ),
    path(
        "certificates/<int:certificate>/pdf/",
        certificates.certificate_pdf,
        name="certificate_pdf",
    ),
    path("certificates/keys/", certificates.certificate_keys, name="certificate_keys"),
    path(f"{PERSON}stored/", stored.people_stored, name="people_stored"),
    path(
        f"{PERSON}stored/<int:file>/",
        stored.people_stored_file,
        name="people_stored_file",
    ),
    path(PERSON, views.people_detail, name="people_detail"),
    path(f"{PERSON}code/", codes.people_code, name="people_code"),
    path(
        f"{PERSON}reissue/",
        codes.people_reissue,
        name="people_reissue",
    ),
    path(f"{PERSON}consent/", consents.people_consent, name="people_consent"),
    path(
        f"{PERSON}opt-out/",
        opt_outs.people_opt_out,
        name="people_opt_out",
    ),
    path(
        f"{PERSON}opt-out/take-back/",
        opt_outs.people_take_back,
        name="people_take_back",
    ),
    path(
        f"{PERSON}correct/",
        corrections.people_correct,
        name="people_correct",
    ),
    path(
        f"{PERSON}withdraw/",
        corrections.people_withdraw,
        name="people_withdraw",
    ),
    path(
        f"{PERSON}bring-back/",
        corrections.people_bring_back,
        name="people_bring_back",
    ),
    path(
        f"{PERSON}reopen/",
        corrections.people_reopen,
        name="people_reopen",
    ),
    path(f"{PERSON}join/", joining.people_join, name="people_join"),
    path(f"{PERSON}card/", cards_of_one, name="cards_of_one"),
]
