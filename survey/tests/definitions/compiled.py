"""Compile the vectors of `rules_vectors.json` and items written by hand."""

from __future__ import annotations

import json
from pathlib import Path

from survey.instrument.definitions.expressions import compile_expression
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.rule_dependencies import (
    evaluation_order,
    local_rules,
)
from survey.instrument.definitions.schema import RULES

VECTORS = json.loads(
    Path(__file__).with_name("rules_vectors.json").read_text(encoding="utf-8")
)
COLUMNS = ("region", "since")


def compiled_item(name, item):
    texts = {rule: item[rule] for rule in RULES if rule in item}
    if item.get("required") is True:
        del texts["required"]
    compiled = {
        rule: compile_expression(
            text,
            self_name=name,
            columns=COLUMNS if rule == "choice_filter" else (),
        )
        for rule, text in texts.items()
    }
    return {"kind": "text", "page": 1, **item, **compiled}


def compiled_items(items):
    return {name: compiled_item(name, item) for name, item in items.items()}


def definition_of(survey):
    items = compiled_items(survey["items"])
    for item in items.values():
        on_page = {n: i for n, i in items.items() if i["page"] == item["page"]}
        item["local"] = local_rules(item, on_page)
    order = evaluation_order(items, piped_in_labels(survey["option_sets"]))
    return {**survey, "items": items, "order": order}


DEFINITION = definition_of(VECTORS["survey"])


def clock_of(vector):
    return {key: vector.get(key, value) for key, value in VECTORS["clock"].items()}


def expected(vector):
    keys = ("hidden", "problems", "values", "offered", "pages")
    return {key: vector[key] for key in keys if key in vector}
