"""A slow, independent count of results: person by person, with the models."""

from __future__ import annotations

from collections import Counter

from accounts.models import School
from reports.releases.layout import binned, number_of
from reports.tests.exports.reference import definition_of, exported
from survey.models import Administration, CountedGroup, Respondent, Response

STATES = {"s": "skipped", "h": "n/a", "a": "answered", None: "unreached"}
NUMBERS = ("integer", "decimal", "range", "calculate")


def counted_school(respondent: Respondent) -> tuple[int, str, dict[str, str]] | None:
    """Return school, grade and subgroups in which a person counts."""
    if respondent.started_at is None or respondent.opted_out_at is not None:
        return None
    frozen = CountedGroup.objects.filter(respondent=respondent).first()
    if frozen is not None:
        if frozen.school_id is None:
            return None
        return frozen.school_id, frozen.grade, frozen.attributes
    if respondent.withdrawn_at is not None:
        return None
    return respondent.school_id, respondent.grade, respondent.attributes


def slowly_counted(administration: Administration, widths=None):
    """Return people, finished, and states and values by item, for each group.

    Groups are level, place, attribute and value. Numbers are binned by `widths`.
    """
    results: dict[tuple, dict] = {}
    districts = dict(School.objects.values_list("pk", "district_id"))
    people = Respondent.objects.filter(administration=administration)
    for respondent in people.select_related("administration__published"):
        place = counted_school(respondent)
        stored = Response.objects.filter(
            administration_id=administration.pk, respondent_id=respondent.pk
        )
        if place is None or not stored.filter(state="a").exists():
            continue
        school, grade, attributes = place
        answers = exported(respondent)
        district = districts[school]
        groups = [("", ""), ("grade", grade)]
        groups += [
            (name, attributes.get(name, "")) for name in administration.subgroups
        ]
        for level, key in (("state", 0), ("district", district), ("school", school)):
            for attribute, value in groups:
                group = results.setdefault(
                    (level, key, attribute, value),
                    {"people": 0, "finished": 0, "items": {}},
                )
                add(group, respondent, answers, widths or {})
    return results


def add(group, respondent: Respondent, answers, widths) -> None:
    group["people"] += 1
    group["finished"] += respondent.completed_at is not None
    definition = definition_of(respondent.administration)
    for name, (state, value) in answers.items():
        kind = definition["items"][name]["kind"]
        if kind in ("note", "hidden"):
            continue
        counter = group["items"].setdefault(name, Counter())
        counter[
            {"s": "skipped", "h": "n/a", "a": "answered", None: "unreached"}[state]
        ] += 1
        if state != "a":
            continue
        if kind == "select_multiple":
            counter.update(f"={part}" for part in value.split(" "))
        elif kind in ("select_one", "acknowledge"):
            counter[f"={value}"] += 1
        elif kind in NUMBERS and number_of(value):
            counter["=" + binned(number_of(value), widths.get(name, ""))] += 1
