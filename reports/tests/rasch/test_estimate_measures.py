import csv
import io
import re

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from reports.tests.rasch.simulated import simulate

AGREEMENT = [[-1.0, 0.0, 1.0], [-0.5, 0.5, 1.2], [-1.2, -0.3, 0.4]]


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["school", "a", "b", "c", "d"])
        for row in simulate(AGREEMENT, people=400):
            writer.writerow(["Lincoln", *row, ""])
        writer.writerow(["Lincoln", "", "", "", ""])
        writer.writerow(["Lincoln", "2"])
    return path


def estimate(path, items="a,b,c", **options):
    out, err = io.StringIO(), io.StringIO()
    folder = path.parent / "estimates"
    call_command(
        "estimate_measures",
        path,
        items=items,
        output=folder,
        stdout=out,
        stderr=err,
        **options,
    )
    tables = {}
    for table in folder.iterdir():
        with table.open(newline="") as file:
            tables[table.stem] = list(csv.DictReader(file))
    return tables, err.getvalue()


def test_a_file_gives_thresholds_items_and_persons(answers):
    tables, warnings = estimate(answers)
    assert warnings.startswith("1 of 402 people answered none of these items")
    assert [(row["item"], row["step"]) for row in tables["thresholds"]] == [
        (item, step) for item in "abc" for step in "123"
    ]
    total = sum(float(row["threshold"]) for row in tables["thresholds"])
    assert total == pytest.approx(0, abs=1e-4)
    assert list(tables["items"][0]) == ["item", "infit", "outfit", "n"]
    assert len(tables["persons"]) == 402
    blank, one_answer = tables["persons"][-2:]
    assert blank == {
        "row": "401",
        "score": "",
        "mle": "",
        "wle": "",
        "standard_error": "",
    }
    assert one_answer["score"] == "2"
    assert float(one_answer["standard_error"]) > 0.5


def test_an_item_without_answers_is_left_out_by_name(answers):
    tables, warnings = estimate(answers, "a,b,c,d")
    assert "d: nobody answered it" in warnings
    assert {row["item"] for row in tables["items"]} == {"a", "b", "c"}


def test_a_category_that_nobody_chose_has_no_threshold(answers):
    answers.write_text(re.sub(r"\b1\b", "0", answers.read_text()))
    tables, warnings = estimate(answers)
    assert "nobody chose category 1" in warnings
    steps = [row["step"] for row in tables["thresholds"] if row["item"] == "b"]
    assert steps == ["2", "3"]


@pytest.mark.parametrize(
    ("text", "items", "message"),
    [
        ("a,b\n1,0\n", "a,q", "has no column q"),
        ("a,b\n1,0\n", "a,a", "names an item twice"),
        ("a,b\n1,0\n", "a,,b", "a name that is blank"),
        ("a,a,b\n0,1,0\n", "a,b", "more than one column a"),
        ("a;b\n1;0\n", "a,b", "separated by commas"),
        ("", "a,b", "is empty"),
        ("a,b\n1,0\n1,0,2\n", "a,b", "line 3: there are more cells than columns"),
        (f"a,b\n1,{'9' * 5000}\n", "a,b", "b: '9{40}' is not a category"),
        ("a,b\n", "a,b", "has no people"),
        ("a,b\n1,0\n1,often\n", "a,b", "line 3, b: often is not a category"),
        ("a,b\n1,-1\n", "a,b", "-1 is not a category"),
        ("a,b\n1,1.5\n", "a,b", "1.5 is not a category"),
        ("a,b\n1,0\n1,0\n", "a,b", "At least two items"),
        ("a,b\n1,0\n1,1\n0,0\n", "a,b", "no maximum"),
    ],
)
def test_a_file_that_cannot_be_estimated_says_why(tmp_path, text, items, message):
    path = tmp_path / "answers.csv"
    path.write_text(text)
    with pytest.raises(CommandError, match=message):
        estimate(path, items)
    assert not (tmp_path / "estimates").exists()


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    with pytest.raises(CommandError, match="none.csv cannot be read: No such file"):
        estimate(tmp_path / "none.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes("a,b\n1,é\n".encode("latin-1"))
    with pytest.raises(CommandError, match="latin.csv is not UTF-8"):
        estimate(path, "a,b")


def test_an_output_that_cannot_be_written_is_refused_and_nothing_is_half_written(
    answers,
):
    folder = answers.parent / "estimates"
    folder.write_text("a file")
    with pytest.raises(CommandError, match="estimates is not a folder"):
        estimate(answers)
    folder.unlink()
    (folder / "persons.csv").mkdir(parents=True)
    with pytest.raises(CommandError, match=r"persons.csv is a folder"):
        estimate(answers)
    assert [each.name for each in folder.iterdir()] == ["persons.csv"]


def test_the_answers_are_not_overwritten_by_the_estimates(answers):
    folder = answers.parent / "estimates"
    folder.mkdir()
    source = answers.rename(folder / "persons.csv")
    with pytest.raises(CommandError, match="would be overwritten"):
        call_command("estimate_measures", source, items="a,b,c", output=folder)
