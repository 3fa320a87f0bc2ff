#!/usr/bin/python
"""Write folders and files of one role in one call; return the changed files.

The template module costs half a second for each file, and there are forty. With
Ansible's own library, which is compiled anew in each call, this one would cost 0.3 s.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISGID, S_ISLNK

# Ansible puts the arguments there. JSON never has three quotation marks in a row.
ARGUMENTS = r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>"""

Ids = tuple[int, int]


def main() -> None:
    given = json.loads(ARGUMENTS)
    options = {name: given[name] for name in given if not name.startswith("_ansible_")}
    try:
        result = write_files(**options, only_checks=given["_ansible_check_mode"])
    except Exception as error:
        result = {"failed": True, "msg": f"{type(error).__name__}: {error}"}
    print(json.dumps(result))


def write_files(
    *,
    folder: str,
    files: Mapping[str, str] | None = None,
    folders: Sequence[str] = (),
    owner: str = "",
    mode: str = "0600",
    caller_files: Sequence[str] = (),
    shared: Mapping[str, str] | None = None,
    only_checks: bool = False,
) -> dict[str, object]:
    """Write files with this mode, and make folders that nobody but the owner may enter.

    `caller_files` names files that stay the caller's, as does what the supervisor
    reads, and `shared` folders that others may enter: "user:group mode".
    """
    home = Path(folder)
    texts = {home / name: text for name, text in (files or {}).items()}
    caller = (os.geteuid(), os.getegid())
    ids = pwd.getpwnam(owner)[2:4] if owner else caller
    callers = {"supervisor.ini", *caller_files}
    owners = {path: caller if path.name in callers else ids for path in texts}
    bits = int(mode, 8)
    # Whoever owns a folder can replace the files in it: others may only enter.
    entered = 0o711 if caller[0] == 0 else 0o700
    wanted = {path.parent: (caller, entered) for path in texts}
    wanted |= {home / name: (ids, 0o700) for name in folders}
    wanted |= {home / name: parsed(text) for name, text in (shared or {}).items()}
    changed = [
        path
        for path, text in texts.items()
        if not path.exists()
        or path.stat().st_uid != owners[path][0]
        or S_IMODE(path.stat().st_mode) != bits
        or path.read_text() != text
    ]
    made = [path for path, (user, its) in wanted.items() if differs(path, user, its)]
    if not only_checks:
        for path in made:
            make_folder(path, *wanted[path])
        for path in changed:
            write(path, texts[path], owners[path], bits)
    return {
        "changed": bool(changed or made),
        "names": [str(path.relative_to(home)) for path in changed],
    }


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
