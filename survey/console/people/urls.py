"""Addresses of the pages of an administration's people."""

from __future__ import annotations

from accounts.routes import page
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
    page(PEOPLE, views.people_list),
    page(f"{PEOPLE}roster.csv", roster_file.people_roster),
    page(f"{PEOPLE}new/", adding.people_add),
    page(f"{PEOPLE}opt-outs/", opt_out_lists.people_opt_outs),
    page(f"{PEOPLE}opt-outs/save/", opt_out_lists.people_opt_outs_save),
    page(f"{PEOPLE}opt-outs/kept/", opt_out_lists.people_listed),
    page(
        f"{PEOPLE}opt-outs/kept/<int:listed>/remove/",
        opt_out_lists.people_listed_remove,
    ),
    page(f"{PEOPLE}consents/", consents.people_consents),
    page(f"{PEOPLE}consents/save/", consents.people_consents_save),
    page(f"{PEOPLE}erase/", erasing.people_leavers),
    page(f"{PEOPLE}erase/save/", erasing.people_leavers_save),
    page(f"{PERSON}erase/", erasing.people_erase),
    page("erasures/<int:erasure>/", erasing.erasure_detail),
    page("certificates/<int:certificate>/json/", certificates.certificate_json),
    page("certificates/<int:certificate>/pdf/", certificates.certificate_pdf),
    page("certificates/keys/", certificates.certificate_keys),
    page(f"{PERSON}stored/", stored.people_stored),
    page(f"{PERSON}stored/<int:file>/", stored.people_stored_file),
    page(PERSON, views.people_detail),
    page(f"{PERSON}code/", codes.people_code),
    page(f"{PERSON}reissue/", codes.people_reissue),
    page(f"{PERSON}consent/", consents.people_consent),
    page(f"{PERSON}opt-out/", opt_outs.people_opt_out),
    page(f"{PERSON}opt-out/take-back/", opt_outs.people_take_back),
    page(f"{PERSON}correct/", corrections.people_correct),
    page(f"{PERSON}withdraw/", corrections.people_withdraw),
    page(f"{PERSON}bring-back/", corrections.people_bring_back),
    page(f"{PERSON}reopen/", corrections.people_reopen),
    page(f"{PERSON}join/", joining.people_join),
    page(f"{PERSON}card/", cards_of_one),
]
