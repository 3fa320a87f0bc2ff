from __future__ import annotations

import pytest

from provisioning.handbook_images import parser


@pytest.mark.parametrize("text", ["../secrets", "Spanish", "", "es/", "e"])
def test_only_language_codes_are_folders(text, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args([f"--language={text}"])
    assert "is not a language" in capsys.readouterr().err


def test_the_usual_language_is_english():
    assert parser().parse_args([]).language == "en"
    assert parser().parse_args(["--language=zh-hans"]).language == "zh-hans"
