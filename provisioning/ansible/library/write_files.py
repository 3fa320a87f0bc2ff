#!/usr/bin/python
"""Write folders and files of one role in one call; return the changed files.

The template module costs half a second for each file, and there are forty.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path
from stat import S_IMODE

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "str", "required": True},
            "files": {"type": "dict", "required": True},
            "folders": {"type": "list", "elements": "str", "default": []},
            "owner": {"type": "str", "default": ""},
            # Of folders and files that others than their owner may enter or read.
            "modes": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["folder"])
    folders = [folder / name for name in module.params["folders"]]
    files = {folder / name: text for name, text in module.params["files"].items()}
    owner = module.params["owner"]
    ids = pwd.getpwnam(owner)[2:4] if owner else (os.geteuid(), os.getegid())
    modes = {
        folder / name: int(mode, 8) for name, mode in module.params["modes"].items()
    }
    changed = [
        path
        for path, text in files.items()
        if not path.exists() or path.stat().st_uid != ids[0] or path.read_text() != text
    ]
    made = [path for path in folders if not path.is_dir()]
    opened = [
        path
        for path, mode in modes.items()
        if not path.exists() or S_IMODE(path.stat().st_mode) != mode
    ]
    if not module.check_mode:
        for path in [*folders, *(path.parent for path in files)]:
            make_folder(path, ids)
        for path in folders:
            # Another host may have made it first.
            os.chown(path, *ids)
        for path in changed:
            write(path, files[path], ids)
        for path, mode in modes.items():
            path.chmod(mode)
    module.exit_json(
        changed=bool(changed or made or opened),
        names=[str(path.relative_to(folder)) for path in changed],
    )


def make_folder(path: Path, ids: tuple[int, int]) -> None:
    """Make a folder that only its owner may enter: it holds sockets and secrets."""
    if not path.is_dir():
        make_folder(path.parent, ids)
        path.mkdir(mode=0o700)
        os.chown(path, *ids)


def write(path: Path, text: str, ids: tuple[int, int]) -> None:
    """Replace a private file in one step, because a server may be reading it."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.chown(draft, *ids)
    os.replace(draft, path)


if __name__ == "__main__":
    main()
