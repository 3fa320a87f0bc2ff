from __future__ import annotations

from provisioning.prove.simulations.diagnostics import shortcomings
from provisioning.prove.simulations.simulated_diagnostics import simulate

GOOD = {
    **dict.fromkeys(("dif_false_200", "dif_false_500"), 0.0),
    **dict.fromkeys(("dif_false_beside_another", "dimension_false"), 0.05),
    "dif_false_significant": 0.05,
    **dict.fromkeys(("q3_false_200", "q3_false_1000"), 0.02),
    **dict.fromkeys(("dif_false_unadjusted", "dif_false_unpurified"), 0.3),
    **dict.fromkeys(("dif_power_500", "q3_power", "dimension_power"), 0.9),
}


def test_figures_are_shares_of_the_simulated_measures():
    figures = simulate(simulations=2)
    assert figures.pop("simulations") == 2
    assert figures.keys() > GOOD.keys()
    assert set(figures.values()) <= {0, 0.5, 1}
    assert figures["dif_power_500"] == figures["q3_power"] == 1


def test_what_is_missed():
    assert shortcomings(GOOD) == []
    for name, value in GOOD.items():
        opposite = 0.01 if value > 0.08 else 0.5
        assert len(shortcomings({**GOOD, name: opposite})) == 1, name
