"""`provisioning/run simulate_bands`: count bands that are wrong, or made of chance."""

from __future__ import annotations

from provisioning.commands import command_parser, conclude
from provisioning.prove.simulations.process import simulated_figures

# Of all schools.
MOST_WRONG = 0.10
# Of surveys in which schools do not differ: those that show bands.
MOST_OF_CHANCE = 0.05
# Of bands that name no other one: those that are not the true one.
MOST_WRONG_ALONE = 0.20


def main() -> int:
    options = command_parser(
        "Simulates surveys of schools with known true scores: between 2 and 10 % of"
        " the variance of people lies between schools, and 20 to 300 people answer in"
        " each; and surveys of 15 schools that do not differ at all. Bands of the"
        " product are compared with the true ones, beside those of the rule before:"
        " the deviation of observed means as the scale, and bands without doubt; and"
        " doubts with those of the rule before: all bands of the 95 % interval.",
        simulations=(40, "of surveys, for each share"),
    ).parse_args()
    figures = simulated_figures(
        "simulated_bands", "Simulating surveys", simulations=options.simulations
    )
    return conclude(figures, shortcomings(figures))


def shortcomings(figures: dict[str, float]) -> list[str]:
    wrong, undoubted = figures["two_steps_wrong"], figures["bands_without_doubt"]
    of_chance = figures["bands_of_identical_schools"]
    missed = []
    if wrong > MOST_WRONG:
        missed.append(f"{wrong:.1%} of bands are two steps wrong")
    if undoubted:
        missed.append(f"{undoubted} unreliable bands show no doubt")
    if of_chance > MOST_OF_CHANCE:
        missed.append(f"{of_chance:.1%} of surveys band schools that do not differ")
    if figures["wrong_without_doubt"] > MOST_WRONG_ALONE:
        missed.append(f"{figures['wrong_without_doubt']:.1%} of bands alone are wrong")
    # What the simulation could not show, it could not find in the product either.
    if figures["two_steps_wrong_before"] <= wrong:
        missed.append("the rule before is not worse: the simulation shows nothing")
    return missed
