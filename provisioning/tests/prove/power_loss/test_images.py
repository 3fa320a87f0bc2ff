"""Images of a disk hold what was flushed, and any part of what was not."""

from __future__ import annotations

from random import Random

import pytest

from provisioning.prove.power_loss import images
from provisioning.prove.power_loss.disk_plugin import HEADER
from provisioning.prove.power_loss.images import (
    BLOCK,
    PowerLoss,
    build_images,
    draw_losses,
    read_records,
)

FLUSH = b""


@pytest.fixture(autouse=True)
def small_disk(monkeypatch):
    monkeypatch.setattr(images, "SIZE", 8 * BLOCK)


def log_of(*requests):
    """A log with one request a second: a flush, or blocks and their place."""
    return b"".join(
        HEADER.pack(second, place * BLOCK, len(data)) + data
        for second, (place, data) in enumerate(requests)
    )


def contents(log, instant, count=40):
    records = read_records(log)
    requests = sum(record.at <= instant for record in records)
    return lambda folder: [
        (image, image.path.read_bytes())
        for image in build_images(
            log, records, [PowerLoss(requests, instant)] * count, folder, Random(1)
        )
    ]


def test_what_was_flushed_is_in_every_image(tmp_path):
    log = log_of((0, b"a" * BLOCK), (0, FLUSH), (1, b"b" * BLOCK))
    pairs = contents(log, 2.5)(tmp_path)
    assert all(content[:BLOCK] == b"a" * BLOCK for _, content in pairs)
    assert {content[BLOCK] for _, content in pairs} == {0, ord("b")}


def test_without_a_flush_it_is_missing_in_some(tmp_path):
    log = log_of((0, b"a" * BLOCK), (1, b"b" * BLOCK))
    pairs = contents(log, 2.5)(tmp_path)
    assert {content[0] for _, content in pairs} == {0, ord("a")}


def test_a_flush_after_the_instant_does_not_count(tmp_path):
    log = log_of((0, b"a" * BLOCK), (0, FLUSH))
    pairs = contents(log, 0.5)(tmp_path)
    assert {content[0] for _, content in pairs} == {0, ord("a")}


def test_a_page_of_two_blocks_may_be_torn(tmp_path):
    log = log_of((0, b"old!" * 2048), (0, FLUSH), (0, b"new!" * 2048))
    pairs = contents(log, 2.5)(tmp_path)
    assert {(content[0], content[BLOCK]) for _, content in pairs} == {
        (old, new) for old in b"on" for new in b"on"
    }
    torn = [image for image, content in pairs if content[0] != content[BLOCK]]
    assert all((image.unflushed, image.dropped) == (2, 1) for image in torn)


def test_an_older_write_may_stay_when_a_newer_one_is_lost(tmp_path):
    log = log_of((0, b"1" * BLOCK), (0, b"2" * BLOCK))
    pairs = contents(log, 2.5)(tmp_path)
    assert {content[0] for _, content in pairs} == {0, ord("1"), ord("2")}


def test_images_follow_one_another_in_one_log(tmp_path):
    log = log_of((0, b"1" * BLOCK), (0, FLUSH), (0, b"2" * BLOCK), (0, FLUSH))
    losses = [PowerLoss(2, 1.5), PowerLoss(4, 3.5)]
    built = build_images(log, read_records(log), losses, tmp_path, Random(1))
    assert [chr(image.path.read_bytes()[0]) for image in built] == ["1", "2"]


def test_a_write_that_is_no_multiple_of_a_block_ends_where_it_did(tmp_path):
    log = log_of((0, b"a" * (BLOCK + 1)), (0, FLUSH))
    ((_, content),) = contents(log, 1.5, count=1)(tmp_path)
    assert content == b"a" * (BLOCK + 1) + bytes(7 * BLOCK - 1)


def test_a_request_that_was_cut_is_left_out():
    log = log_of((0, b"a" * BLOCK), (1, b"b" * BLOCK))
    assert len(read_records(log)) == 2
    assert len(read_records(log[:-1])) == 1
    assert len(read_records(log[: BLOCK + HEADER.size + 3])) == 1


def test_instants_are_drawn_within_the_period_and_in_order():
    log = log_of(*[(0, b"a" * BLOCK), (0, FLUSH)] * 50)
    records = read_records(log)
    losses = draw_losses(Random(3), records, 20, 80, 30)
    assert len(losses) == 30
    assert losses == sorted(losses)
    assert all(20 <= loss.instant <= 80 for loss in losses)
    for requests, instant in losses:
        assert records[requests - 1].at <= instant < records[requests].at


def test_three_quarters_of_the_instants_find_blocks_that_are_not_flushed():
    # A burst of one second in an hour.
    requests = [(0, FLUSH)] * 3600
    requests[1800:1801] = [(0, b"a" * BLOCK)]
    records = read_records(log_of(*requests))
    losses = draw_losses(Random(3), records, 0, 3599, 20)
    assert sum(1800 <= loss.instant <= 1801 for loss in losses) >= 15
