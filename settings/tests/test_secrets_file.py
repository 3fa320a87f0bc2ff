from __future__ import annotations

import stat
import threading

from settings.secrets_file import load_feed_keys, load_secrets
from settings.tests.patience import patience


def test_secrets_are_generated_once(tmp_path):
    path = tmp_path / "secrets.json"
    made = load_secrets(path)
    assert len(made.secret_key) >= 50
    assert load_secrets(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_installations_have_different_secrets(tmp_path):
    first = load_secrets(tmp_path / "first.json")
    second = load_secrets(tmp_path / "second.json")
    assert first.secret_key != second.secret_key
    assert first.access_code_keys != second.access_code_keys


def test_two_processes_that_start_together_get_the_same_secrets(tmp_path, monkeypatch):
    # Both find no file; only then does either write.
    both_have_looked = threading.Barrier(2)
    draft = iter(("one", "two"))
    names = {}

    def number() -> str:
        both_have_looked.wait(timeout=patience(10))
        return names.setdefault(threading.get_ident(), next(draft))

    monkeypatch.setattr("settings.secrets_file.os.getpid", number)
    loaded = []
    threads = [
        threading.Thread(
            target=lambda: loaded.append(load_secrets(tmp_path / "secrets.json"))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 2
    assert loaded[0] == loaded[1]
    assert len(list(tmp_path.iterdir())) == 1


def test_older_installations_get_a_key_for_feeds(tmp_path):
    load_secrets(tmp_path / "secrets.json")
    keys = load_feed_keys(tmp_path / "feed_keys.json")
    assert [len(key) >= 40 for key in keys] == [True]
    assert load_feed_keys(tmp_path / "feed_keys.json") == keys
    assert stat.S_IMODE((tmp_path / "feed_keys.json").stat().st_mode) == 0o600
