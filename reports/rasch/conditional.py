"""Compute the conditional likelihood of thresholds, its gradient and information.

Its denominators are the elementary symmetric functions: for the items that somebody
answered, the sum over all ways to reach their score. Items are taken in blocks of a
few. A block is a polynomial, whose coefficients are the sums over the combinations
of its categories with equal scores; the product of the blocks' polynomials has the
symmetric functions. Given a block's score, its answers do not depend on the others,
so means and covariances follow from how likely each score of a block is, and each
pair of scores of two blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from reports.rasch.responses import Floats, Integers, ResponseTable

# Combinations of the categories of a block: four items of five categories, or nine
# of two.
MOST_COMBINATIONS = 640
# Rows are taken together as long as a product of polynomials stays in the
# processor's cache.
CHUNK = 512 * 1024


class ConditionalLikelihood:
    """The log-likelihood of thresholds, given the scores and the answered items.

    People with the same score on the same items are a group.
    """

    def __init__(self, table: ResponseTable, steps: Sequence[int]) -> None:
        pairs, group = np.unique(
            np.column_stack([table.pattern_of_row, table.scores]),
            axis=0,
            return_inverse=True,
        )
        pattern, self.scores = pairs.T
        counts = np.bincount(group.reshape(-1), weights=table.people)
        self.people: Floats = counts.astype(np.float64)
        self.thresholds = sum(steps)
        # How many people chose a category or a higher one, for each threshold.
        self.reached = np.concatenate(
            [
                np.cumsum(table.category_counts(item, most + 1)[::-1])[::-1][1:]
                for item, most in enumerate(steps)
            ]
        ).astype(np.float64)
        answered = table.patterns[pattern]
        self.blocks = [
            _Block.of_items(answered[:, first:end], steps, first)
            for first, end in _block_ranges(steps)
        ]

    def __call__(self, thresholds: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood and its gradient."""
        value, gradient, _ = self._evaluate(thresholds, with_information=False)
        return value, gradient

    def information(self, thresholds: Floats) -> Floats:
        """Return the information: the gradient's derivative, with its sign turned."""
        return self._evaluate(thresholds, with_information=True)[2]

    def _evaluate(
        self, thresholds: Floats, *, with_information: bool
    ) -> tuple[float, Floats, Floats]:
        functions = [block.functions(thresholds) for block in self.blocks]
        value = -float(self.reached @ thresholds)
        expected = np.zeros(self.thresholds)
        information = np.zeros((self.thresholds, self.thresholds))
        chances = [np.zeros_like(function.polynomials) for function in functions]
        for chunk in self._chunks():
            people = self.people[chunk]
            groups = [block.pattern_of_group[chunk] for block in self.blocks]
            polynomials = [
                function.polynomials[of_group]
                for function, of_group in zip(functions, groups, strict=True)
            ]
            chain = _Chain(polynomials, self.scores[chunk])
            shift = sum(
                function.shift[of_group]
                for function, of_group in zip(functions, groups, strict=True)
            )
            value -= float(people @ (np.log(chain.total) + shift))
            reached = np.empty((len(people), self.thresholds))
            for number, (block, function) in enumerate(
                zip(self.blocks, functions, strict=True)
            ):
                rest = chain.without(number)
                reached[:, block.thresholds] = np.matmul(
                    rest[:, None, :], function.reached[groups[number]]
                )[:, 0]
                if with_information:
                    np.add.at(chances[number], groups[number], people[:, None] * rest)
            expected += people @ reached
            if with_information:
                information -= reached.T @ (people[:, None] * reached)
                self._add_pairs(information, functions, groups, chain, people)
        if with_information:
            for block, function, chance in zip(
                self.blocks, functions, chances, strict=True
            ):
                block.add_moments(information, function, chance)
        return value, expected - self.reached, information

    def _add_pairs(
        self,
        information: Floats,
        functions: Sequence[_Functions],
        groups: Sequence[Integers],
        chain: _Chain,
        people: Floats,
    ) -> None:
        """Add how many people are expected to reach both of two thresholds."""
        for first, second, rest in chain.without_pairs():
            left, right = functions[first].reached, functions[second].reached
            both = np.add.outer(np.arange(left.shape[1]), np.arange(right.shape[1]))
            inner = np.matmul((people[:, None] * rest)[:, both], right[groups[second]])
            moments = np.tensordot(left[groups[first]], inner, axes=([0, 1], [0, 1]))
            rows = self.blocks[first].thresholds
            columns = self.blocks[second].thresholds
            information[rows, columns] += moments
            information[columns, rows] += moments.T

    def _chunks(self) -> Iterator[slice]:
        size = max(1, CHUNK // (8 * (self.thresholds + 1)))
        for start in range(0, len(self.people), size):
            yield slice(start, start + size)


def _block_ranges(steps: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first item of each block, and the one behind its last."""
    ranges, first, combinations = [], 0, 1
    for item, most in enumerate(steps):
        combinations *= most + 1
        if combinations > MOST_COMBINATIONS and item > first:
            ranges.append((first, item))
            first, combinations = item, most + 1
    return [*ranges, (first, len(steps))]


@dataclass(frozen=True)
class _Functions:
    """The polynomials of a block for each set of answered items.

    The coefficient of each score, divided by exp(`shift`); the same weighted with
    whether a threshold is reached; and the weight of each combination.
    """

    polynomials: Floats
    shift: Floats
    reached: Floats
    weights: Floats


@dataclass(frozen=True)
class _Block:
    """Some items, all combinations of their categories, and who answered which."""

    thresholds: slice
    reached: Floats
    score_of_combination: Integers
    # Whether a combination is possible: an unanswered item has category 0.
    is_possible: NDArray[np.bool_]
    pattern_of_group: Integers

    @classmethod
    def of_items(
        cls, answered: NDArray[np.bool_], steps: Sequence[int], first: int
    ) -> _Block:
        mine = steps[first : first + answered.shape[1]]
        combinations = np.array(list(product(*(range(most + 1) for most in mine))))
        patterns, pattern_of_group = np.unique(answered, axis=0, return_inverse=True)
        start = sum(steps[:first])
        item_of = np.repeat(np.arange(len(mine)), mine)
        step = np.concatenate([np.arange(1, most + 1) for most in mine])
        return cls(
            thresholds=slice(start, start + sum(mine)),
            reached=(combinations[:, item_of] >= step).astype(np.float64),
            score_of_combination=combinations.sum(axis=1),
            is_possible=(patterns[:, None, :] | (combinations == 0)).all(axis=2),
            pattern_of_group=pattern_of_group.reshape(-1),
        )

    def functions(self, thresholds: Floats) -> _Functions:
        logs = np.where(
            self.is_possible, -(self.reached @ thresholds[self.thresholds]), -np.inf
        )
        # Dividing by the largest weight keeps numbers in range.
        shift = logs.max(axis=1)
        weights = np.exp(logs - shift[:, None])
        has_score = np.eye(self.reached.shape[1] + 1)[self.score_of_combination]
        of_score = weights[:, None, :] * has_score.T
        return _Functions(of_score.sum(axis=2), shift, of_score @ self.reached, weights)

    def add_moments(
        self, information: Floats, functions: _Functions, chances: Floats
    ) -> None:
        """Add how many people are expected to reach both of two own thresholds."""
        people = (functions.weights * chances[:, self.score_of_combination]).sum(axis=0)
        moments = self.reached.T @ (people[:, None] * self.reached)
        information[self.thresholds, self.thresholds] += moments


class _Chain:
    """Products of the blocks' polynomials, with a row for each group.

    The coefficient of a group's score is its `total`. Without a block, or two, there
    is one coefficient for each score that the block could have, divided by the total.
    """

    def __init__(self, polynomials: Sequence[Floats], scores: Integers) -> None:
        self.polynomials = polynomials
        self.before = [np.ones((len(scores), 1))]
        for polynomial in polynomials:
            self.before.append(_multiply(self.before[-1], polynomial))
        rows = np.arange(len(scores))
        self.total = self.before[-1][rows, scores]
        # The derivative of the total with respect to each coefficient of the product
        # of all blocks up to a certain one.
        behind = np.zeros_like(self.before[-1])
        behind[rows, scores] = 1 / self.total
        self.behind = [behind]
        for polynomial in reversed(polynomials[1:]):
            self.behind.append(_differentiate(self.behind[-1], polynomial))
        self.behind.reverse()

    def without(self, block: int) -> Floats:
        return _differentiate(self.behind[block], self.before[block])

    def without_pairs(self) -> Iterator[tuple[int, int, Floats]]:
        for first in range(len(self.polynomials)):
            without_both = self.before[first]
            for second in range(first + 1, len(self.polynomials)):
                yield first, second, _differentiate(self.behind[second], without_both)
                without_both = _multiply(without_both, self.polynomials[second])


def _multiply(left: Floats, right: Floats) -> Floats:
    if left.shape[1] < right.shape[1]:
        left, right = right, left
    width = left.shape[1]
    result = np.zeros((len(left), width + right.shape[1] - 1))
    for power in range(right.shape[1]):
        result[:, power : power + width] += left * right[:, power, None]
    return result


def _differentiate(derivative: Floats, factor: Floats) -> Floats:
    """Return the derivative with respect to the other factor of a product."""
    width = derivative.shape[1] - factor.shape[1] + 1
    if width <= factor.shape[1]:
        columns = [
            np.einsum(
                "gs,gs->g", derivative[:, power : power + factor.shape[1]], factor
            )
            for power in range(width)
        ]
        return np.column_stack(columns)
    result = np.zeros((len(factor), width))
    for power in range(factor.shape[1]):
        result += derivative[:, power : power + width] * factor[:, power, None]
    return result
