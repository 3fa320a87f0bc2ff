from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from provisioning.commands import ROOT
from provisioning.measure.jmeter.run import PLAN
from provisioning.measure.jmeter.shapes import SHAPES


@pytest.fixture(scope="module")
def plan() -> ElementTree.Element:
    return ElementTree.parse(PLAN).getroot()  # noqa: S314


ALL_VIEWS = {view for shape in SHAPES.values() for view in shape.views}


def test_the_samplers_are_the_views_of_the_shapes(plan):
    names = [each.get("testname") for each in plan.iter("HTTPSamplerProxy")]
    assert set(names) == ALL_VIEWS
    # A save, the same again, and a changed one.
    assert names.count("survey_change_page") == 3


def test_each_save_is_checked_by_its_own_revision(plan):
    for sampler, tree in samplers(plan, "survey_change_page"):
        body = text(sampler, "Argument.value")
        assert '"answers":${__P(take.${take}.${step}.' in body
        pattern = text(tree.find("ResponseAssertion"), "1")
        assert r'"revision":\s*${revision}[,}]' in pattern
        assert '"saved"' in pattern
        # Python reads this pattern as JMeter does.
        pattern = re.sub(r"\$\{__P\(take.*?items\)\}", "5", pattern)
        pattern = pattern.replace("${revision}", "17")
        assert re.search(pattern, '{"saved": 5, "revision": 17, "at": "…"}')
        assert re.search(pattern, '{"saved":5,"revision":17}')
        assert not re.search(pattern, '{"saved": 5, "revision": 177, "at": "…"}')
        assert not re.search(pattern, '{"saved": 4, "revision": 17, "at": "…"}')


def test_each_request_has_an_assertion(plan):
    for name in ALL_VIEWS:
        for _, tree in samplers(plan, name):
            assert tree.find("ResponseAssertion") is not None


def test_the_pages_still_have_the_elements_that_assertions_look_for(plan):
    pages = (ROOT / "templates" / "survey").glob("*.html")
    templates = "".join(page.read_text() for page in pages)
    expected = {
        text(each, "1")
        for each in plan.iter("ResponseAssertion")
        if text(each, "1").startswith(("class=", "role="))
    }
    assert len(expected) == 3
    for element in expected:
        assert element in templates


def test_without_an_open_code_the_plan_has_the_same_requests(plan):
    """The conditions of other shapes are off, as long as no property says more."""
    conditions = [
        text(each, "IfController.condition") for each in plan.iter("IfController")
    ]
    assert set(conditions) == {"${__P(open,false)}", "${__P(finder,false)}"}
    values = [
        text(each, "SwitchController.value") for each in plan.iter("SwitchController")
    ]
    assert values == ["${__P(start,card)}", "${__P(take.${take}.choice,begin)}"]
    for name in ("open_start", "open_begin", "open_begun", "open_decline"):
        for sampler, _ in samplers(plan, name):
            above = [each.get("testname") for each in ancestors(plan, sampler)]
            assert {"open", "decline", "with an open code"} & set(above), name
    for sampler, _ in samplers(plan, "survey_login"):
        assert "card" in [each.get("testname") for each in ancestors(plan, sampler)]


def test_the_step_begins_anew_with_each_child(plan):
    """A counter would go on."""
    assert plan.find(".//CounterConfig") is None
    ((content, _),) = [
        (sampler, tree)
        for sampler, tree in samplers(plan, "survey_content")
        if "${step}" not in text(sampler, "HTTPSampler.path")
        and "__jm__pages__idx" in text(sampler, "HTTPSampler.path")
    ]
    assert "${__intSum(${__jm__pages__idx},1,step)}" in text(
        content, "HTTPSampler.path"
    )


def test_each_child_answers_all_pages(plan):
    pages = plan.find(".//LoopController[@testname='pages']")
    assert "children" in [each.get("testname") for each in ancestors(plan, pages)]
    assert text(pages, "LoopController.continue_forever") == "true"


def test_the_plan_targets_this_machine_by_default(plan):
    target = plan.find(".//ConfigTestElement")
    assert text(target, "HTTPSampler.domain") == "${__P(host,127.0.0.1)}"
    listener = plan.find(".//BackendListener")
    assert listener.get("enabled") == "false"
    platform = plan.find(".//OpenModelThreadGroup[@testname='platform']")
    assert platform.get("enabled") == "false"
    assert PLAN.read_text().count('enabled="false"') == 2


def ancestors(plan, element):
    """Yield the elements to which the trees around this one belong."""
    for tree in plan.iter("hashTree"):
        children = list(tree)
        for each, below in zip(children, children[1:], strict=False):
            if below.tag == "hashTree" and element in below.iter():
                yield each


def samplers(plan, name):
    """Yield each sampler with the elements below it."""
    for tree in plan.iter("hashTree"):
        children = list(tree)
        for each, below in zip(children, children[1:], strict=False):
            if each.tag == "HTTPSamplerProxy" and each.get("testname") == name:
                yield each, below


def text(element, name: str) -> str:
    return next(each.text for each in element.iter() if each.get("name") == name)
