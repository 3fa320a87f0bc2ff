from __future__ import annotations

import importlib.util
import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from stat import S_IMODE

import pytest

from provisioning.installation.playbook import ANSIBLE


@pytest.fixture(scope="module")
def write_files():
    place = ANSIBLE / "library" / "write_files.py"
    spec = importlib.util.spec_from_file_location("write_files", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ME = (os.geteuid(), os.getegid())


def mode_of(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_with_its_mode(tmp_path, write_files):
    path = tmp_path / "file"
    for text, mode in (("one", 0o600), ("two", 0o644)):
        write_files.write(path, text, ME, mode)
        assert (path.read_text(), mode_of(path)) == (text, mode)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_its_owner_is_closed_again(tmp_path, write_files):
    folder = tmp_path / "a" / "b"
    write_files.make_folder(folder, ME, 0o700)
    assert not write_files.differs(folder, ME, 0o700)
    folder.chmod(0o755)
    assert write_files.differs(folder, ME, 0o700)
    write_files.make_folder(folder, ME, 0o700)
    assert mode_of(folder) == 0o700


def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path, write_files):
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ValueError, match="symbolic link"):
        write_files.make_folder(tmp_path / "link", ME, 0o700)


def test_any_text_can_be_put_into_the_module(tmp_path):
    """Ansible replaces a mark in the module's text by the arguments."""
    text = 'a \\ and \\n, "", """, \'\'\' and ü\n'
    files = {"folder/file": text, "quoted": '"""', "empty": ""}
    asked = {"folder": str(tmp_path), "files": files, "_ansible_check_mode": False}
    module = (ANSIBLE / "library" / "write_files.py").read_text()
    mark = "<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>"
    assert module.count(mark) == 1
    program = module.replace(mark, json.dumps(asked))
    printed = subprocess.check_output([sys.executable, "-c", program])
    assert json.loads(printed) == {"changed": True, "names": [*files]}
    assert {name: (tmp_path / name).read_text() for name in files} == files


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
class TestHandingOver:
    @pytest.fixture
    def former(self, tmp_path):
        """A folder of another user, with a private file in a private folder."""
        folder = tmp_path / "files"
        (folder / "exports").mkdir(parents=True)
        (folder / "exports" / "1.csv").touch()
        for path in (folder, folder / "exports", folder / "exports" / "1.csv"):
            os.chown(path, 12345, 12345)
            path.chmod(0o700 if path.is_dir() else 0o600)
        return folder

    def test_a_new_user_gets_what_is_in_it(self, former, write_files):
        nobody = pwd.getpwnam("nobody")
        ids = (nobody.pw_uid, nobody.pw_gid)
        write_files.make_folder(former, ids, 0o700)
        file = former / "exports" / "1.csv"
        assert {path.stat().st_uid for path in (former, file)} == {nobody.pw_uid}
        assert mode_of(file) == 0o600

    def test_a_group_can_read_what_is_in_a_shared_one(self, former, write_files):
        write_files.make_folder(former, (0, 54321), 0o2770)
        file = former / "exports" / "1.csv"
        assert (file.stat().st_gid, mode_of(file)) == (54321, 0o660)
        assert mode_of(file.parent) == 0o2770

    def test_what_lies_in_roots_folders_keeps_its_owner(self, former, write_files):
        """Sockets and data of running servers, for example."""
        write_files.make_folder(former, (0, 0), 0o711)
        assert (former / "exports").stat().st_uid == 12345
