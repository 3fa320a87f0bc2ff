"""The tables of the real migrations distribute on Citus, where it was built."""

from __future__ import annotations

import pytest

from provisioning.prove.citus.nodes import Node
from survey.database.distribution import DISTRIBUTED, REFERENCE


@pytest.fixture
def node(nodes) -> Node:
    return nodes.coordinator


def test_each_table_lies_where_its_layout_says(node):
    kinds = node.sql(
        "SELECT logicalrelid, partmethod, repmodel FROM pg_dist_partition"
        " JOIN pg_class c ON c.oid = logicalrelid WHERE NOT relispartition"
    )
    sharded = {table for table, method, _ in kinds if method == "h"}
    copied = {table for table, method, model in kinds if (method, model) == ("n", "t")}
    assert sharded == {*DISTRIBUTED, "survey_coderoute"}
    assert copied == set(REFERENCE)


def test_a_code_belongs_to_one_person(node):
    add = "INSERT INTO survey_coderoute VALUES ('\\x01', {})"
    node.sql(add.format(1))
    with pytest.raises(Exception, match="duplicate key"):
        node.sql(add.format(2))


def test_a_page_of_nobody_is_refused(node):
    page = "7, 1, 1, 9, '{1}', '{a}', '{3}', '{}', true"
    assert node.sql(f"SELECT survey_save_page({page}) IS NULL") == [["t"]]
