from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from provisioning.commands import Refusal
from provisioning.installation.upgrades import operation
from provisioning.installation.upgrades.data_folder import DataUpgrade


class FakeSupervisor:
    """Programs of a stack; remembers which were started."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.calls = SimpleNamespace(
            startProcess=lambda name, waits: self.started.append(name)
        )

    def programs(self, name: str) -> list[str]:
        return [name] if name in ("primary", "replica", "backup") else []


@pytest.fixture
def data(tmp_path) -> Path:
    for name in ("primary/global", "replica", "upgraded"):
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "data/primary/here").write_text("old")
    (tmp_path / "data/replica/here").write_text("replica")
    (tmp_path / "data/replica/standby.signal").touch()
    (tmp_path / "data/upgraded/here").write_text("new")
    return tmp_path / "data"


def upgrade_of(data: Path, *, link: bool) -> DataUpgrade:
    return DataUpgrade(
        old=data / "primary",
        new=data / "upgraded",
        work=data.parent / "work",
        old_programs=Path("/usr/lib/postgresql/15/bin"),
        new_programs=Path("/usr/lib/postgresql/17/bin"),
        user=None,
        link=link,
    )


def test_a_copied_folder_is_kept_and_the_replica_is_made_anew(data):
    upgrade = upgrade_of(data, link=False)
    former = operation.put_in_place(data.parent, upgrade, data / "replica")
    assert (data / "primary/here").read_text() == "new"
    assert (former / "here").read_text() == "old"
    assert former.name.startswith("postgresql-15-")
    assert not (data / "replica").exists()
    include = (data / "primary/postgresql.conf").read_text()
    assert include == f"include '{data.parent}/etc/primary/postgresql.conf'\n"


def test_after_linking_the_replica_is_what_is_kept(data):
    upgrade = upgrade_of(data, link=True)
    former = operation.put_in_place(data.parent, upgrade, data / "replica")
    assert (data / "primary/here").read_text() == "new"
    assert (former / "here").read_text() == "replica"
    assert {path.name for path in data.iterdir()} == {"primary", former.name}


def test_after_a_failure_the_old_version_serves_again(data, capsys):
    supervisor = FakeSupervisor()
    operation.serve_again(upgrade_of(data, link=False), supervisor, data / "replica")
    assert supervisor.started == ["primary", "replica", "backup"]
    assert (data / "primary/here").read_text() == "old"
    assert (data / "replica/standby.signal").exists()


def test_a_primary_that_was_linked_is_replaced_by_the_replica(data):
    """Its files may have been written by the new version already."""
    (data / "primary/global/pg_control.old").touch()
    supervisor = FakeSupervisor()
    operation.serve_again(upgrade_of(data, link=True), supervisor, data / "replica")
    assert (data / "primary/here").read_text() == "replica"
    assert not (data / "primary/standby.signal").exists()
    assert not (data / "replica").exists()
    assert supervisor.started == ["primary", "replica", "backup"]


@pytest.mark.parametrize(
    ("rehearse", "link", "copies"),
    [(True, False, 2), (True, True, 1), (False, False, 1), (False, True, 1)],
)
def test_a_full_disk_is_refused_before_anything_stops(
    data, monkeypatch, rehearse, link, copies
):
    monkeypatch.setattr(
        operation.subprocess,
        "run",
        lambda *each, **more: SimpleNamespace(stdout=f"{10 * 2**30}\t/data/primary\n"),
    )

    def check(gigabytes: float) -> None:
        free = SimpleNamespace(free=int(gigabytes * 2**30))
        monkeypatch.setattr(operation.shutil, "disk_usage", lambda path: free)
        operation.refuse_without_room(data, rehearse=rehearse, link=link)

    check(copies * 11)
    with pytest.raises(Refusal, match="GB free, and this needs"):
        check(copies * 11 - 0.1)


def test_a_replica_that_lacks_saves_is_no_way_back(data, monkeypatch):
    points = {"primary": "0/5000028", "replica": "0/4000028"}
    monkeypatch.setattr(
        operation,
        "control_of",
        lambda upgrade, folder: {"Latest checkpoint location": points[folder.name]},
    )
    upgrade, replica = upgrade_of(data, link=True), data / "replica"
    with pytest.raises(Refusal, match="There is no replica"):
        operation.refuse_older_replica(upgrade, replica)
    (replica / "PG_VERSION").write_text("15\n")
    with pytest.raises(Refusal, match="lacks what was saved last"):
        operation.refuse_older_replica(upgrade, replica)
    points["replica"] = points["primary"]
    operation.refuse_older_replica(upgrade, replica)
