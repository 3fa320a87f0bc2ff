from __future__ import annotations

import os
import stat

import pytest

from provisioning import run_demo
from provisioning.commands import Refusal

PEOPLE = {
    "cards": [
        {"role": "student", "code": "ABC-DEF", "name": "Maya", "school": "Lincoln"}
    ],
    "staff": [{"email": "chen@groundswell.example", "role": "school, Lincoln"}],
    "open_codes": [
        {"code": "KLM-NPQ", "label": "Poster", "school": "Lincoln", "limit": None},
        {"code": "RST-UVW", "label": "Evening", "school": "Lincoln", "limit": 25},
    ],
    "staff_email": "engineer@groundswell.example",
    "staff_password": "a long password",
}


def test_the_welcome_names_codes_logins_and_addresses():
    text = run_demo.welcome("http://127.0.0.1:8001/", PEOPLE)
    assert "Groundswell is running: http://127.0.0.1:8001/" in text
    assert "student  ABC-DEF  Maya, Lincoln" in text
    assert "http://127.0.0.1:8001/open/#KLM-NPQ  Poster, Lincoln (for anyone)" in text
    assert "open/#RST-UVW  Evening, Lincoln (for 25 people)" in text
    assert "as anybody may: http://127.0.0.1:8001/results/" in text
    assert "http://127.0.0.1:8001/schools/?q=lincoln" in text
    assert "console/, all with the password a long password" in text
    assert "chen@groundswell.example" in text


def test_a_password_given_earlier_is_not_repeated():
    text = run_demo.welcome("http://127.0.0.1:8001/", {**PEOPLE, "staff_password": ""})
    assert "(the password given when it was made)" in text


def test_fresh_data_delete_only_what_the_demo_wrote(tmp_path):
    for name in ("groundswell.sqlite3", "demo.lock", "my-notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "export.csv").touch()
    run_demo.delete_data(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"demo.lock", "my-notes.txt"}


def test_the_data_serve_one_demo_at_a_time(tmp_path):
    data = tmp_path / "data"
    with run_demo.locked(data):
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        with (
            pytest.raises(Refusal, match="Another demo is running on the data in"),
            run_demo.locked(data),
        ):
            pass
    with run_demo.locked(data) as lock:
        # Only the demo's own processes inherit it, by name.
        assert os.get_inheritable(lock) is False


def test_the_usual_port_is_8000():
    options = run_demo.parser().parse_args([])
    assert (options.port, options.fresh) == (8000, False)
