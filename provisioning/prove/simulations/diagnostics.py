"""`provisioning/run simulate_dif`: count false and missed findings about items."""

from __future__ import annotations

from provisioning.commands import command_parser, conclude
from provisioning.prove.simulations.process import simulated_figures

# Of measures without a different item: those in which an item is called different.
# That of the test is 5 %, and that of 200 simulations has a standard error of 1.5 %.
MOST_FALSE = 0.08
# Of different items, with 500 people in the smaller group.
LEAST_POWER = 0.8


def main() -> int:
    options = command_parser(
        "Simulates measures of six items in two groups whose people differ in what is"
        " measured: items that mean the same to both, and one that is harder for a"
        " group by 0.8 logits. Counts items that are wrongly called different (DIF),"
        " and different ones that are missed; the same without purification and"
        " without adjusted p-values. Then pairs of items that are wrongly called"
        " dependent (Q3) and measures to which a second dimension is ascribed, and"
        " those that are found.",
        simulations=(200, "of each kind of measure"),
    ).parse_args()
    figures = simulated_figures(
        "simulated_diagnostics",
        f"Simulating {options.simulations} measures of each kind",
        simulations=options.simulations,
    )
    return conclude(figures, shortcomings(figures))


def shortcomings(figures: dict[str, float]) -> list[str]:
    missed = [
        f"{name}: {figures[name]:.1%} are false"
        for name in (
            *("dif_false_200", "dif_false_500", "dif_false_significant"),
            "dif_false_beside_another",
            *("q3_false_200", "q3_false_1000", "dimension_false"),
        )
        if figures[name] > MOST_FALSE
    ]
    missed += [
        f"{name}: only {figures[name]:.1%} are found"
        for name in ("dif_power_500", "q3_power", "dimension_power")
        if figures[name] < LEAST_POWER
    ]
    # What the simulation could not show, it could not find in the product either.
    for name, rule in (
        ("dif_false_unadjusted", "adjusted p-values"),
        ("dif_false_unpurified", "purification"),
    ):
        if figures[name] <= MOST_FALSE:
            missed.append(f"without {rule} it is as good: the simulation shows nothing")
    return missed
