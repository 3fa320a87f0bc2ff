from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.load.target import refuse_real_respondents


def test_real_people_are_not_touched():
    with pytest.raises(Refusal, match=r"now \(spring\), and no"):
        refuse_real_respondents(lambda query: ["spring"], consequence="no")
    refuse_real_respondents(lambda query: [], consequence="no")
