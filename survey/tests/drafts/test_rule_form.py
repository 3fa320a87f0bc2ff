"""A rule is asked for in words, by POST alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.template.loader import render_to_string

from survey.console.surveys.editor.rule_form import RuleForm
from survey.instrument.drafts.conditions import COLUMN, THIS, Subject

AGREE = (("1", "Disagree"), ("2", "Agree"))
PETS = (("cat", "Cat"), ("dog", "Dog"))
SUBJECTS = {
    "safe": Subject("safe", "select_one", "Do you feel safe?", AGREE),
    "pets": Subject("pets", "select_multiple", "Which pets?", PETS),
    "age": Subject("age", "integer", "How old are you?"),
    "name": Subject("name", "text", "Your name?"),
    "born": Subject("born", "date", "Born?"),
    "score": Subject("score", "calculate"),
    "later": Subject("later", "text", "Asked later", is_offered=False),
}
OWN = {THIS: Subject("own", "text", "Own"), **SUBJECTS}


class Fields(HTMLParser):
    """Collect what a browser would post, and the names of the buttons."""

    def __init__(self, html):
        super().__init__()
        self.values, self.buttons, self.select, self.area = {}, [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "input":
            self.values[attributes["name"]] = attributes.get("value", "")
        elif tag == "select":
            self.select = attributes["name"]
        elif tag == "option" and (
            "selected" in attributes or self.select not in self.values
        ):
            self.values[self.select] = attributes["value"]
        elif tag == "button":
            self.buttons.append(attributes["value"])
        elif tag == "textarea":
            self.area = attributes["name"]
            self.values[self.area] = ""

    def handle_endtag(self, tag):
        if tag == "textarea":
            # As browsers drop the first line break, and send CRLF for the others.
            text = self.values[self.area].removeprefix("\n")
            self.values[self.area] = text.replace("\n", "\r\n")
            self.area = ""

    def handle_data(self, data):
        if self.area:
            self.values[self.area] += data


def html_of(form):
    return render_to_string(
        "survey/console/editor/_rule.html", {"rule": form, "url": "/x/"}
    )


class Person:
    """Fills in the form as a browser without scripts does."""

    def __init__(self, expression="", rule="relevant", subjects=SUBJECTS):
        self.rule, self.subjects, self.stored = rule, subjects, expression
        self.show(RuleForm(rule, subjects, expression=expression))

    def show(self, form):
        self.form, self.html = form, html_of(form)
        self.fields = Fields(self.html)

    def type(self, **fields):
        for name, value in fields.items():
            key = f"{self.rule}-{name.lstrip('_').replace('_', '-')}"
            assert key in self.fields.values, (key, self.fields.values)
            self.fields.values[key] = value

    def send(self, **extra):
        data = self.fields.values | extra
        form = RuleForm(self.rule, self.subjects, data, expression=self.stored)
        is_valid = form.is_valid()
        self.show(form)
        return is_valid

    def press(self, button):
        assert button in self.fields.buttons
        assert not self.send(**{f"{self.rule}-do": button})
        assert not self.form.errors


def test_a_person_writes_a_rule_with_a_group():
    person = Person()
    person.type(_1_item="safe", _1_value="")
    person.press("refresh")
    person.type(_1_value="2")
    person.press("group")
    person.type(_3_item="age", _3_operator="more than", _3_value="5")
    person.press("add-2")
    person.type(_4_item="pets")
    person.press("refresh")
    person.type(_4_operator="includes", _4_value="dog")
    assert person.send()
    assert (
        person.form.expression
        == "${safe} = '2' and (${age} > 5 or selected(${pets}, 'dog'))"
    )
    reader = Person(person.form.expression)
    assert reader.form.sentence == (
        "Show this question if “Do you feel safe?” is “Agree” and (“How old are you?”"
        " is more than 5 or “Which pets?” includes “Dog”)."
    )


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "${safe}='2'",
        "  not( ${age} > 5 )  ",
        "${age} >= 05 and\n(${safe} = 1 or “a” = ${name})",
        "${age} + 1 > 5",
        "\n${age} + 1\n> 5\r\n",
        "selected(${pets}, 'horse')",
        "${safe} = '9'",
        "${later} = 'a'",
        "${score} >= '2010-01-01'",
        "${name} = '<script>\"'",
        "${unknown} = 5",
    ],
)
def test_saving_without_a_change_keeps_every_byte(expression):
    person = Person(expression)
    assert person.send()
    assert person.form.expression == expression
    # Drawn again by a button, and saved then.
    person = Person(expression)
    if "refresh" in person.fields.buttons:
        person.press("refresh")
    assert person.send()
    assert person.form.expression == expression


def test_a_changed_condition_is_written_and_the_others_keep_their_meaning():
    person = Person("${safe} = 1 and ${age} > 5")
    person.type(_2_value="6")
    assert person.send()
    assert person.form.expression == "${safe} = '1' and ${age} > 6"


def test_rows_are_removed_and_an_empty_rule_is_no_rule():
    person = Person("${safe} = '1' or (${age} > 5 and ${name} != '')")
    assert len(person.form.rows) == 3
    person.press("remove-3")
    person.press("remove-4")
    assert person.send()
    assert person.form.expression == "${safe} = '1'"
    person.press("remove-1")
    assert person.send()
    assert person.form.expression == ""


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"value": "5"}, "item", "Choose a question."),
        ({"item": "nobody"}, "item", "Choose a question."),
        (
            {"item": "age", "operator": "includes", "value": "5"},
            "operator",
            "Choose how to compare the answer.",
        ),
        ({"item": "age"}, "value", "Enter an answer to compare with."),
        (
            {"item": "age", "value": "old"},
            "value",
            "Enter a number, such as 12 or 4.5.",
        ),
        ({"item": "safe"}, "value", "Choose an answer."),
        ({"item": "safe", "value": "x"}, "value", "Choose an answer from the list."),
        (
            {"item": "born", "value": "soon"},
            "value",
            "Enter a date, such as 2026-09-01, or “today”.",
        ),
        ({"item": "name", "value": "a\0"}, "value", "Remove the invisible characters."),
        ({"item": "name", "value": "x" * 256}, "value", "Use at most 255 characters."),
        (
            {"item": "name", "operator": "count at most", "value": "-1"},
            "value",
            "Enter a whole number, such as 3.",
        ),
        (
            {"item": "name", "value": "${name}"},
            "value",
            "Choose another question to compare with.",
        ),
        (
            {"item": "name", "value": "a ${"},
            "value",
            "Remove “${”: a rule takes it for the answer to another question.",
        ),
    ],
)
def test_mistakes_are_shown_at_their_field(fields, field, message):
    person = Person()
    person.type(**{f"_1_{name}": value for name, value in fields.items()})
    assert not person.send()
    assert person.form.errors == {f"id_relevant-1-{field}": message}
    assert message in person.html
    assert f'aria-describedby="id_relevant-1-{field}_error"' in person.html


def test_code_is_written_instead_of_words():
    person = Person("${safe} = '1'")
    person.type(code="${age} * 2 > 5")
    assert person.send()
    assert person.form.expression == "${age} * 2 > 5"
    person = Person("${safe} = '1'")
    person.type(code="${age} * 2 > 5", _1_value="2")
    assert not person.send()
    assert "both the conditions and the code" in person.form.error
    assert person.form.expression == "${safe} = '1'"


def test_code_is_stored_instead_of_conditions_that_are_not_complete():
    person = Person("${later} = 'x'")
    person.type(code="true()", _1_item="")
    assert person.send() and not person.form.errors
    assert person.form.expression == "true()"


def test_another_question_forgets_the_answer_to_the_one_before():
    person = Person("${safe} = '2'")
    person.type(_1_item="pets")
    person.press("refresh")
    assert person.fields.values["relevant-1-value"] == ""
    assert "Choose an answer" in person.html


def test_a_rule_that_somebody_else_changed_is_noticed():
    person = Person("${safe} = '1'")
    person.stored = "${safe} = '2'"
    person.send()
    assert person.form.is_stale
    assert person.form.expression == "${safe} = '2'"


def test_only_earlier_questions_are_offered():
    html = Person().html
    assert "Born?" in html and "Asked later" not in html
    assert "Asked later" in Person("${later} = 'a'").html


def test_a_constraint_is_about_this_answer():
    person = Person(rule="constraint", subjects=OWN)
    assert person.send() and person.form.expression == ""
    person.type(_1_operator="count at most", _1_value="100")
    assert person.send()
    assert person.form.expression == "string-length(.) <= 100"


def test_a_filter_compares_columns_with_answers():
    region = Subject(f"{COLUMN}region", "column", "region", (("n", "n"),))
    person = Person(
        rule="choice_filter", subjects={f"{COLUMN}region": region, **SUBJECTS}
    )
    person.type(_1_item=":region")
    person.press("refresh")
    person.type(_1_value="${name}")
    assert person.send()
    assert person.form.expression == "region = ${name}"


def test_hostile_posts_are_refused_quietly():
    data = {f"relevant-{n}-item": "safe" for n in range(2000)}
    data |= {"relevant-group0-join": "<b>", "relevant-do": "add-99999999999"}
    data |= {f"relevant-{n}-group": "x" for n in range(9)}
    form = RuleForm("relevant", SUBJECTS, data)
    assert not form.is_valid() and len(form.rows) <= 51
    assert "<b>" not in html_of(form)


def test_every_control_has_a_name():
    html = Person("${safe} = '1' or (${age} > 5 and ${name} != '')").html
    controls = re.findall(r"<(?:select|textarea|input)\b[^>]*>", html)
    assert len(controls) > 10
    for control in controls:
        is_named = "aria-label=" in control or 'type="hidden"' in control
        assert is_named or 'id="id_relevant-code"' in control, control
