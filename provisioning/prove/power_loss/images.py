"""Build images of a recorded disk, as power failures would leave it."""

from __future__ import annotations

import mmap
import os
import subprocess
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import NamedTuple

from provisioning.prove.power_loss.disk_plugin import HEADER
from provisioning.prove.power_loss.recorded_disk import BLOCK, SIZE

# Share of the blocks that were written after the last flush and are kept.
SHARES = (0.0, 0.25, 0.5, 0.5, 0.75, 1.0)
AT = attrgetter("at")


class Record(NamedTuple):
    at: float
    offset: int
    # 0 for a flush.
    length: int
    # Of its bytes in the log.
    position: int


def read_records(log: mmap.mmap | bytes) -> list[Record]:
    """Return the requests of a log, without the last one if that is cut."""
    records, position = [], 0
    while position + HEADER.size <= len(log):
        at, offset, length = HEADER.unpack_from(log, position)
        position += HEADER.size + length
        if position <= len(log):
            records.append(Record(at, offset, length, position - length))
    return records


class PowerLoss(NamedTuple):
    # The number of requests that had reached the disk.
    requests: int
    instant: float


def draw_losses(
    random: Random, records: Sequence[Record], begin: float, end: float, count: int
) -> list[PowerLoss]:
    """Draw instants between two moments, in order.

    A quarter is drawn by time. That seldom hits a disk that has much to lose, so
    the chance of the others grows with the blocks that are not flushed.
    """
    first, last = bisect_left(records, begin, key=AT), bisect_left(records, end, key=AT)
    unflushed, weights = 0, []
    for record in records[first : last - 1]:
        unflushed = record.length and unflushed + len(list(blocks_of(record)))
        weights.append(unflushed)
    by_time = [random.uniform(begin, end) for _ in range(count // 4)]
    by_blocks = [
        random.uniform(records[number].at, records[number + 1].at)
        for number in random.choices(
            range(first, last - 1), weights, k=count - len(by_time)
        )
    ]
    return [
        PowerLoss(bisect_right(records, instant, key=AT), instant)
        for instant in sorted(by_time + by_blocks)
    ]


@dataclass(frozen=True)
class Image:
    path: Path
    instant: float
    # Blocks that were written after the last flush, and how many are missing.
    unflushed: int
    dropped: int


def build_images(
    log: mmap.mmap | bytes,
    records: Sequence[Record],
    losses: Sequence[PowerLoss],
    folder: Path,
    random: Random,
) -> Iterator[Image]:
    """Build one image after another, each in the place of the one before.

    Everything before the last flush is there. Of what was written later, each
    block is kept or dropped at random, so that any order of writing is possible.
    """
    path, done = folder / "image", 0
    with (folder / "flushed").open("w+b", buffering=0) as flushed:
        flushed.truncate(SIZE)
        for requests, instant in losses:
            last_flush = requests
            while last_flush > done and records[last_flush - 1].length:
                last_flush -= 1
            for _, offset, length, position in records[done:last_flush]:
                os.pwrite(flushed.fileno(), log[position : position + length], offset)
            done = last_flush
            subprocess.run(["cp", "--sparse=always", flushed.name, path], check=True)
            written = [
                block
                for record in records[done:requests]
                for block in blocks_of(record)
            ]
            share = random.choice(SHARES)
            survivors = [block for block in written if random.random() < share]
            with path.open("r+b", buffering=0) as image:
                for offset, begin, end in survivors:
                    os.pwrite(image.fileno(), log[begin:end], offset)
            yield Image(path, instant, len(written), len(written) - len(survivors))


def blocks_of(record: Record) -> Iterator[tuple[int, int, int]]:
    """Yield the offset of each block, and where its bytes are in the log."""
    offset, end = record.offset, record.offset + record.length
    while offset < end:
        after = min(end, (offset // BLOCK + 1) * BLOCK)
        begin = record.position + offset - record.offset
        yield offset, begin, begin + after - offset
        offset = after
