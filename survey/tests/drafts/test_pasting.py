"""Pasted lists lose their bullets and numbers, and keep everything else."""

from __future__ import annotations

import pytest

from survey.instrument.drafts.pasting import read_pasted, repeated_texts


@pytest.mark.parametrize(
    "text",
    [
        "· My teachers\n· My friends",
        "•\tMy teachers\r\n•\tMy friends\r\n",
        "o\tMy teachers\no\tMy friends",
        "- My teachers\n– My friends",
        "1. My teachers\n2. My friends",
        "1)\tMy teachers\n2)\tMy friends",
        "a. My teachers\nb. My friends",
        "My teachers\n\n  My   friends ",
    ],
)
def test_bullets_and_numbers_of_lists_are_left_out(text):
    pasted = read_pasted(text, 1)
    assert pasted.rows == [["My teachers"], ["My friends"]]
    assert pasted.has_marks == ("My teachers\n\n" not in text)
    assert not pasted.has_more_columns


@pytest.mark.parametrize(
    "lines",
    [
        ["1st period", "2nd period"],
        ["2.5 hours", "3.5 hours"],
        ["1. Always"],
        ["1. Always", "Never"],
        ["7. Always", "9. Never"],
        ["-5", "-4"],
        ["o clock", "A. Lincoln"],
    ],
)
def test_what_is_no_list_stays(lines):
    pasted = read_pasted("\n".join(lines), 1)
    assert pasted.rows == [[line] for line in lines]
    assert not pasted.has_marks


def test_the_second_column_is_the_second_language():
    text = "Yes\tSí\tx\nNo\tNo\t"
    assert read_pasted(text, 2).rows == [["Yes", "Sí"], ["No", "No"]]
    assert read_pasted(text, 1).rows == [["Yes"], ["No"]]
    assert read_pasted(text, 1).has_more_columns
    assert not read_pasted("Yes\tSí\nNo\t", 2).has_more_columns


def test_texts_that_are_there_twice():
    assert repeated_texts([["Grade 8"], ["Grade 9"], ["grade 8"]]) == ["grade 8"]
