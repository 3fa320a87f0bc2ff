"""Compiled rules are shown as their author writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from survey.instrument.definitions.expressions import compile_expression
from survey.instrument.xlsform.writing import as_text

VECTORS = json.loads(Path(__file__).with_name("expression_vectors.json").read_text())


@pytest.mark.parametrize(
    "text",
    [
        "${age} >= 4 and ${age} <= 19",
        "not(selected(${pets}, 'dog')) or ${a} and ${b}",
        "${a} - (${b} - ${c}) * 2",
        "(${a} or ${b}) and ${c}",
        "(${a} + 1) * -(${b} div 3)",
        "jr:choice-name(${pet}, '${pet}') = \"it's\"",
        "if(${a} = '', true(), false())",
        "${a} = ${b} = (${c} != 1.5)",
    ],
)
def test_rule_is_written_as_its_author_wrote_it(text):
    assert as_text(compile_expression(text)) == text


def test_written_rules_compile_to_the_same_expressions():
    vectors = VECTORS["evaluated"]
    for vector in vectors:
        names = {"columns": vector.get("columns", ()), "self_name": "own"}
        compiled = compile_expression(vector["expression"], **names)
        written = as_text(compiled)
        assert compile_expression(written, **names) == compiled, written
    assert len(vectors) > 100


def test_column_of_the_choices_is_written_as_its_name():
    compiled = compile_expression("region = ${state}", columns={"region"})
    assert as_text(compiled) == "region = ${state}"
