"""Let the rows of people who may not be in a file any more leave it in batches.

The pages go on to show a release with all of its people. If the row of one person left
alone, the page minus the file would be the answers of this person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from reports.answers.people import Ints
from survey.models import Administration

Flags = NDArray[np.bool_]


def without_batches(
    administration: Administration, keys: Ints, classes: Ints, absent: Flags
) -> Flags:
    """Return whose rows leave: all people of each batch in which somebody is absent.

    `classes` are of everybody in a release who shows the same cells, whatever else was
    chosen for a file, so that a person is in the same batch in every file.
    """
    minimum = administration.minimum_group
    if minimum <= 1:
        return absent
    leaves = absent.copy()
    # Batches are needed only where somebody is absent; hashing everybody takes long.
    for number in np.unique(classes[absent]).tolist():
        rows = np.flatnonzero(classes == number)
        ranks = batch_ranks(administration, keys[rows].tolist())
        batches = ranks * max(1, len(rows) // minimum) // len(rows)
        leaves[rows] = np.isin(batches, batches[absent[rows]])
    return leaves


def batch_ranks(administration: Administration, keys: Iterable[int]) -> Ints:
    """Return the places of people in an order that only the server can repeat.

    Keys follow the roster: in their order, a batch could be a single classroom.
    """
    salt = hashlib.blake2b(
        f"export batches {administration.pk}".encode(),
        key=hashlib.sha256(settings.SECRET_KEY.encode()).digest(),
    ).digest()
    digests = [
        hashlib.blake2b(str(key).encode(), key=salt, digest_size=16).digest()
        for key in keys
    ]
    order = sorted(range(len(digests)), key=digests.__getitem__)
    ranks = np.empty(len(digests), dtype=np.int64)
    ranks[order] = np.arange(len(digests))
    return ranks
