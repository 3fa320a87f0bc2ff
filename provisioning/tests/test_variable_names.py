"""The check of names that say nothing about their variable."""

from __future__ import annotations

import pytest

from provisioning import variable_names

PLANTED = [
    "found = 1",
    "for one in []: pass",
    "[one for one in []]",
    "def f(other): pass",
    "def f(*others): pass",
    "lambda own: 1",
    "def kept(): pass",
    "class A:\n    said: str",
    "self.again = 1",
    "import a as whose",
    "with a as (b, who): pass",
    "try: pass\nexcept A as whom: pass",
    "if found := 1: pass",
]


@pytest.mark.parametrize("source", PLANTED)
def test_each_way_to_name_a_variable_is_found(source):
    assert len(list(variable_names.banned_names(source))) == 1


def test_names_that_say_more_and_uses_of_other_names_are_fine():
    source = "schools_found = f(other=1, kept=a.own)\n'found'\n# one"
    assert not list(variable_names.banned_names(source))


@pytest.mark.parametrize(
    ("bounds", "status", "output"),
    [
        ((0, 1), 1, "accounts, source: 1 names say nothing; 0 may:\n"),
        ((1, 0), 1, "  accounts/tests/test_b.py:1: one\n"),
        ((1, 1), 0, ""),
        ((1, 3), 0, "accounts, tests: lower the bound 3 to 1.\n"),
    ],
)
def test_bounds_only_go_down(tmp_path, monkeypatch, capsys, bounds, status, output):
    for path, source in (
        ("a.py", "found = 1"),
        ("tests/test_b.py", "one = 1"),
        ("migrations/0001_c.py", "other = 1"),
    ):
        file = tmp_path / "accounts" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    monkeypatch.setattr(variable_names, "MOST", {"accounts": bounds})
    assert variable_names.main(tmp_path) == status
    printed = capsys.readouterr().out
    assert output in printed if output else not printed
