from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.load.real_people import refuse_real_people

pytestmark = pytest.mark.once


def test_real_people_are_not_touched():
    with pytest.raises(Refusal, match=r"now \(spring\), and no"):
        refuse_real_people(lambda question: ["spring"], consequence="no")
    refuse_real_people(lambda question: [], consequence="no")
