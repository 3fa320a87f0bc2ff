"""Which page of the help explains a screen of the console."""

from __future__ import annotations

# Beginning of a route's name -> page and section. The longest beginning counts, and a
# test follows each on the site.
TOPICS = {
    "": "",
    "account": "administrators/settings/#staff",
    "administration": "administrators/rounds/#steps",
    "administration_close": "administrators/rounds/#close",
    "administration_modules": "administrators/rounds/#modules",
    "administration_open": "administrators/rounds/#open",
    "administration_questionnaire": "authors/#way",
    "administration_remove": "administrators/rounds/#close",
    "administration_reopen": "administrators/rounds/#close",
    "administration_test_link": "authors/editor/#publish",
    "audit": "administrators/#search",
    "bank": "authors/editor/#bank",
    "calendar": "administrators/settings/#calendar",
    "cards": "coordinators/#cards",
    "console_search": "administrators/#search",
    "count": "administrators/people/#links",
    "emails": "administrators/people/#emails",
    "export": "administrators/results/#exports",
    "feed": "administrators/people/#syncs",
    "membership": "administrators/settings/#staff",
    "merge": "administrators/people/#places",
    "my_account": "administrators/settings/#staff",
    "open_code": "administrators/people/#links",
    "people": "coordinators/#people",
    "people_consent": "administrators/people/#consent",
    "people_opt_out": "administrators/people/#consent",
    "platform": "administrators/people/#emails",
    "publishing": "administrators/results/#publish",
    "rates": "administrators/rounds/#live",
    "rates_school": "coordinators/#days",
    "recovery_codes": "administrators/settings/#staff",
    "results": "administrators/results/#read",
    "results_comments": "administrators/results/#comments",
    "results_hidden": "administrators/results/#hidden",
    "roster": "administrators/people/#rosters",
    "roster_upload": "coordinators/#before",
    "school": "administrators/people/#places",
    "school_report": "administrators/results/#share",
    "scores": "administrators/results/#read",
    "scores_reports": "administrators/results/#share",
    "second_factor": "administrators/settings/#staff",
    "settings": "administrators/settings/#places",
    "settings_help": "administrators/settings/#help",
    "staff": "administrators/settings/#staff",
    "survey": "authors/#way",
    "survey_check": "authors/editor/#publish",
    "survey_correct": "authors/editor/#publish",
    "survey_edit": "authors/editor/#questions",
    "survey_edit_bank": "authors/editor/#bank",
    "survey_edit_comments": "authors/editor/#publish",
    "survey_edit_texts": "authors/editor/#languages",
    "survey_essential": "authors/editor/#measures",
    "survey_measure": "authors/editor/#measures",
    "survey_new": "authors/#ways",
    "survey_preview": "authors/editor/#publish",
    "survey_test_link": "authors/editor/#publish",
    "survey_to_bank": "authors/editor/#bank",
    "survey_upload": "authors/workbooks/#problems",
    "wave": "administrators/rounds/#seasons",
}


def topic_of(route: str) -> str:
    """Return the page, such as "coordinators/#before"; "" is the first page."""
    beginnings = (route[:length] for length in range(len(route), -1, -1))
    return next(TOPICS[name] for name in beginnings if name in TOPICS)
