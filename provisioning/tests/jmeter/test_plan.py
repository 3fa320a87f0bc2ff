from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from provisioning.jmeter.run import PLAN
from provisioning.load.respondent import VIEWS


@pytest.fixture(scope="module")
def plan() -> ElementTree.Element:
    return ElementTree.parse(PLAN).getroot()  # noqa: S314


def test_the_samplers_are_the_five_views(plan):
    names = [each.get("testname") for each in plan.iter("HTTPSamplerProxy")]
    assert set(names) == set(VIEWS)
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
    for name in VIEWS:
        for _, tree in samplers(plan, name):
            assert tree.find("ResponseAssertion") is not None


def test_the_plan_targets_this_machine_by_default(plan):
    target = plan.find(".//ConfigTestElement")
    assert text(target, "HTTPSampler.domain") == "${__P(host,127.0.0.1)}"
    listener = plan.find(".//BackendListener")
    assert listener.get("enabled") == "false"
    assert PLAN.read_text().count('enabled="false"') == 1


def samplers(plan, name):
    """Yield each sampler with the elements below it."""
    for tree in plan.iter("hashTree"):
        children = list(tree)
        for each, below in zip(children, children[1:], strict=False):
            if each.tag == "HTTPSamplerProxy" and each.get("testname") == name:
                yield each, below


def text(element, name: str) -> str:
    return next(each.text for each in element.iter() if each.get("name") == name)
