#!/usr/bin/python
"""Write folders and files of one role in one call; return the changed files.

The template module costs half a second for each file, and there are forty.
"""

from __future__ import annotations

import grp
import os
import pwd
import tempfile
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISGID, S_ISLNK

from ansible.module_utils.basic import AnsibleModule

Ids = tuple[int, int]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "str", "required": True},
            "files": {"type": "dict", "default": {}},
            "folders": {"type": "list", "elements": "str", "default": []},
            # Of the folders, which nobody else may enter, and of the files.
            "owner": {"type": "str", "default": ""},
            "mode": {"type": "str", "default": "0600"},
            # Files that stay the caller's, and what the supervisor reads.
            "kept": {"type": "list", "elements": "str", "default": []},
            # Folders that others may enter: "user:group mode".
            "shared": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    given = module.params
    folder = Path(given["folder"])
    files = {folder / name: text for name, text in given["files"].items()}
    caller = (os.geteuid(), os.getegid())
    ids = pwd.getpwnam(given["owner"])[2:4] if given["owner"] else caller
    kept = {"supervisor.ini", *given["kept"]}
    owners = {path: caller if path.name in kept else ids for path in files}
    mode = int(given["mode"], 8)
    # Whoever owns a folder can replace the files in it: others may only enter.
    entered = 0o711 if caller[0] == 0 else 0o700
    folders = {path.parent: (caller, entered) for path in files}
    folders |= {folder / name: (ids, 0o700) for name in given["folders"]}
    folders |= {folder / name: parsed(text) for name, text in given["shared"].items()}
    changed = [
        path
        for path, text in files.items()
        if not path.exists()
        or path.stat().st_uid != owners[path][0]
        or S_IMODE(path.stat().st_mode) != mode
        or path.read_text() != text
    ]
    made = [path for path, (owner, its) in folders.items() if differs(path, owner, its)]
    if not module.check_mode:
        for path in made:
            make_folder(path, *folders[path])
        for path in changed:
            write(path, files[path], owners[path], mode)
    module.exit_json(
        changed=bool(changed or made),
        names=[str(path.relative_to(folder)) for path in changed],
    )


def parsed(text: str) -> tuple[Ids, int]:
    names, _, mode = text.partition(" ")
    user, _, group = names.partition(":")
    return (pwd.getpwnam(user).pw_uid, grp.getgrnam(group).gr_gid), int(mode, 8)


def differs(path: Path, ids: Ids, mode: int) -> bool:
    if not path.exists():
        return True
    now = path.lstat()
    return ((now.st_uid, now.st_gid), S_IMODE(now.st_mode)) != (ids, mode)


def make_folder(path: Path, ids: Ids, mode: int) -> None:
    """Make a folder; hand over what is in one that had another user or group."""
    if path.is_dir():
        before = path.lstat()
        if S_ISLNK(before.st_mode):
            raise ValueError(f"{path} is a symbolic link")
        had_user = before.st_uid not in (ids[0], os.geteuid())
        if (mode == 0o700 and had_user) or (mode == 0o2770 and before.st_gid != ids[1]):
            for place, folders, files in os.walk(path):
                for name in [*folders, *files]:
                    hand_over(Path(place, name), ids, shared=bool(mode & S_ISGID))
    else:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    os.chown(path, *ids, follow_symlinks=False)
    path.chmod(mode)


def hand_over(path: Path, ids: Ids, *, shared: bool) -> None:
    os.chown(path, *ids, follow_symlinks=False)
    mode = path.lstat().st_mode
    if shared and not S_ISLNK(mode):
        of_group = (mode & 0o700) >> 3
        path.chmod(S_IMODE(mode) | of_group | (S_ISGID if S_ISDIR(mode) else 0))


def write(path: Path, text: str, ids: Ids, mode: int) -> None:
    """Replace a file in one step, because a server may be reading it."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.chown(draft, *ids)
    os.chmod(draft, mode)
    os.replace(draft, path)


if __name__ == "__main__":
    main()
