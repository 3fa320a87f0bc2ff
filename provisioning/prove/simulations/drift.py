"""`provisioning/run simulate_drift`: count items that are called drifted wrongly."""

from __future__ import annotations

from provisioning.commands import command_parser, conclude
from provisioning.prove.simulations.process import simulated_figures

# Of items that have not moved.
MOST_FLAGGED = 0.05
# Of an item that has moved by one logit, with 300 people in each wave.
LEAST_POWER = 0.8
# Of 95 % intervals of trends: how many hold the true one.
LEAST_HELD = 0.9


def main() -> int:
    options = command_parser(
        "Simulates pairs of waves of which the truth is known. Counts the items that"
        " the product calls drifted although none has moved, and those it finds that"
        " have moved by one logit; beside the rule before, by which 0.3 logits were"
        " drift. Then moves all items a little, and counts how many 95 % intervals of"
        " the change between the waves hold the true one, with the linking error and"
        " without.",
        replications=(200, "of each pair of waves"),
    ).parse_args()
    figures = simulated_figures(
        "simulated_drift", "Simulating waves", replications=options.replications
    )
    return conclude(figures, shortcomings(figures))


def shortcomings(figures: dict[str, dict[str, float]]) -> list[str]:
    missed = [
        f"{share:.1%} of items are called drifted with {people} people"
        for people, share in figures["flagged_without_drift"].items()
        if share > MOST_FLAGGED
    ]
    if figures["found"]["300"] < LEAST_POWER:
        missed.append(f"{figures['found']['300']:.1%} of drifted items are found")
    held = figures["trends_held"]
    if held["now"] < LEAST_HELD:
        missed.append(f"{held['now']:.1%} of intervals hold the true change")
    # What the simulation could not show, it could not find in the product either.
    if held["before"] >= LEAST_HELD:
        missed.append("without the linking error, as many do: nothing is shown")
    return missed
