from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.handbook_images import parser, wait_for_demo
from provisioning.processes import start_process


@pytest.mark.parametrize("text", ["../secrets", "Spanish", "", "es/", "e"])
def test_only_language_codes_are_folders(text, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args([f"--language={text}"])
    assert "is not a language" in capsys.readouterr().err


def test_the_usual_language_is_english():
    assert parser().parse_args([]).language == "en"
    assert parser().parse_args(["--language=zh-hans"]).language == "zh-hans"


def test_a_demonstration_that_ends_is_refused_with_its_reason(tmp_path):
    log = tmp_path / "demo.log"
    with log.open("w") as output:
        demo = start_process(["sh", "-c", "echo The disk is full"], output=output)
    demo.wait()
    with pytest.raises(Refusal, match="The disk is full"):
        wait_for_demo(demo, "http://127.0.0.1:9/", log)
