"""Containers are made from what an installed server is made from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import copy, copytree
from typing import Any

import jsonschema
import pytest
import yaml

from provisioning.commands import ROOT
from provisioning.containers import configure
from provisioning.containers.engine import COMPOSE, CONTAINERFILE, targets
from provisioning.containers.trial import ONCE, PROGRAMS, SERVERS, WITH_SHELL
from provisioning.installation.environment import ROLES, path_of_program

TEXT = CONTAINERFILE.read_text()
# What Debian's installer brings to a server.
OF_A_SYSTEM = {"python3", "ca-certificates"}
# Of a server that containers leave to the platform.
LEFT_OUT = {"git", "pgbackrest", "restic"}
NAME = re.compile(r"\bGROUNDSWELL_[A-Z_]+\b")


@cache
def stages() -> dict[str, tuple[str, str]]:
    """Return each stage's base and instructions, with continued lines joined."""
    joined = TEXT.replace("\\\n", " ")
    parts = re.split(r"^FROM (\S+) AS (\S+)\n", joined, flags=re.MULTILINE)[1:]
    return {
        name: (base, text)
        for base, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def instructions(target: str) -> list[str]:
    """Return the lines of a target and of the stages below it, the lowest first."""
    if target not in stages():
        return []
    base, text = stages()[target]
    lines = [line for line in text.splitlines() if re.match("[A-Z]+ ", line)]
    return [*instructions(base), *lines]


def last(target: str, instruction: str) -> str:
    """Return what an instruction says last, as an engine takes it."""
    lines = [
        line for line in instructions(target) if line.startswith(f"{instruction} ")
    ]
    return lines[-1].removeprefix(f"{instruction} ") if lines else ""


def installed() -> set[str]:
    lists = re.findall(r"(?:RUN|&&) install_packages ([^&\n]+)", TEXT)
    return {name for text in lists for name in text.replace("\\", "").split()}


def services() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text())["services"])


def target_of(service: dict[str, Any]) -> str:
    return str(service["build"]["target"])


def test_debian_packages_are_those_of_the_roles():
    """A package that a role gains is missing in the images until it is added."""
    roles = ("common", "primary", "cache", "queue", "web", "worker", "certificate")
    listed = {
        line.split()[0]
        for role in roles
        for line in (ROLES / role / "packages.txt").read_text().splitlines()
    } - {"certbot"}
    fonts = {"fonts-noto-core", "fonts-noto-cjk"}
    assert set(re.findall(r"fonts-noto-\w+", configure_group_vars())) == fonts
    assert installed() == listed - LEFT_OUT | fonts | OF_A_SYSTEM


def configure_group_vars() -> str:
    folder = ROOT / "provisioning/ansible/group_vars/all"
    return "".join(path.read_text() for path in folder.glob("*.yml"))


def test_python_packages_are_the_locked_ones():
    """Nothing but the function of `provisioning/install` brings packages."""
    assert "pip" not in TEXT.replace("pipes", "")
    calls = re.findall(r"prepare_environment\((\w+)\)", TEXT)
    assert calls == ["PRODUCTION", "STACK"]


def test_packages_and_help_are_made_from_what_is_copied(tmp_path):
    """The step before it installs packages; this one builds the help site."""
    _base, text = stages()["packages"]
    for line in re.findall(r"^COPY (.+)$", text, flags=re.MULTILINE):
        *sources, target = line.split()
        for source in (path for name in sources for path in ROOT.glob(name)):
            is_folder = target.endswith("/")
            place = tmp_path / target / source.name if is_folder else tmp_path / target
            place.parent.mkdir(parents=True, exist_ok=True)
            (copytree if source.is_dir() else copy)(source, place)
    program = (
        "from pathlib import Path;"
        "from provisioning.installation.environment import build_if_changed;"
        f"build_if_changed(Path({sys.executable!r}))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / ".help" / "site" / "en" / "index.html").exists()


@pytest.mark.parametrize("target", targets())
def test_no_process_runs_as_root_or_needs_a_shell(target):
    assert last(target, "USER") == "2000:2000"
    for instruction in ("ENTRYPOINT", "CMD"):
        assert last(target, instruction).startswith("["), "a shell would run it"
    health = last(target, "HEALTHCHECK")
    assert 'CMD ["python3", "-I",' in health or target in ONCE
    assert not re.search(r"^(ADD|VOLUME)|https?://", "\n".join(instructions(target)))


def test_images_have_no_secret_and_no_file_that_is_not_named():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    allowed = {line[1:].split("/")[0] for line in lines if line.startswith("!")}
    assert allowed == {
        *("manage.py", "pyproject.toml", "requirements.txt", "accounts", "survey"),
        *("reports", "settings", "templates", "static", "provisioning", "docs"),
    }
    keys = [line for line in TEXT.splitlines() if "KEY" in line]
    assert all("unused" in line for line in keys)


def test_each_service_has_an_image_and_is_locked_down():
    for name, service in services().items():
        assert target_of(service) in targets(), name
        assert service["image"].endswith(f"/{target_of(service)}:${{VERSION:-latest}}")
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service and "user" not in service, name
    assert {*services()} == {*ONCE, *PROGRAMS, *SERVERS}


def test_services_wait_for_what_can_become_healthy():
    for name, service in services().items():
        for needed, how in service.get("depends_on", {}).items():
            target = target_of(services()[needed])
            if needed in ONCE:
                assert how == {"condition": "service_completed_successfully"}, name
            else:
                assert how == {"condition": "service_healthy"}, name
                assert last(target, "HEALTHCHECK"), needed


def test_volumes_are_declared_and_no_program_mounts_the_secrets_of_another():
    declared = {*yaml.safe_load(COMPOSE.read_text())["volumes"]}
    mounted: dict[str, set[str]] = {}
    for name, service in services().items():
        for volume in service.get("volumes", []):
            source, _, rest = volume.partition(":")
            place, *mode = rest.split(":")
            if not place:
                continue
            mounted.setdefault(source, set()).add(name)
            if place == "/srv/groundswell/etc":
                assert mode == ["ro"], name
    assert {*mounted} == declared
    assert mounted["secrets"] == {"configure"}
    configurations = {*configure.MOUNTED}
    for source in configurations:
        users = {target_of(services()[each]) for each in mounted[source]}
        assert users == {"configure", source}, source


def test_only_nginx_is_published_and_databases_have_no_way_out():
    published = {name for name, each in services().items() if "ports" in each}
    assert published == {"nginx"}
    networks = yaml.safe_load(COMPOSE.read_text())["networks"]
    assert networks["database"] == networks["servers"] == {"internal": True}
    for name in ("postgresql", "pgbouncer", "taking", "redis", "rabbitmq"):
        assert "outside" not in services()[name]["networks"], name
    # Sessions and answers do not even meet.
    assert not {*services()["taking"]["networks"]} & {"database", "outside"}


def test_variables_are_those_of_the_settings():
    """In both directions: a setting that nobody could set is missing here."""
    environment = services()["configure"]["environment"]
    handled = {*configure.VARIABLES, *configure.LISTS, configure.FURTHER}
    # Of the image.
    assert {*environment} == handled - {"GROUNDSWELL_VERSION"}
    for name, value in environment.items():
        assert value.startswith(f"${{{name}:"), "another variable than its name"
    read = {
        name
        for path in (ROOT / "settings").glob("*.py")
        if path.stem not in ("embedded", "development", "sqlite", "test")
        for name in NAME.findall(path.read_text())
        if "_TEST_" not in name
    }
    template = (ROLES / "application/templates/environment.j2").read_text()
    written = {*NAME.findall(template)}
    assert handled - {configure.FURTHER} <= read & written
    assert read <= written
    variables = {*configure.VARIABLES.values(), *configure.LISTS.values()}
    assert all(re.search(rf"\b{each}\b", template) for each in variables)


def problems(document: dict[str, Any]) -> list[str]:
    """Return what is not as the specification of compose files has it."""
    schema = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
    errors = jsonschema.Draft202012Validator(schema).iter_errors(document)
    return ["/".join(map(str, each.absolute_path)) for each in errors]


def test_the_compose_file_is_as_its_specification_has_it():
    assert problems(yaml.safe_load(COMPOSE.read_text())) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stop_grace", "30s"),
        ("ports", "443:8443"),
        ("depends_on", {"taking": {"condition": "healthy"}}),
        ("restart", True),
    ],
)
def test_a_wrong_line_of_it_is_noticed(name, value):
    document = yaml.safe_load(COMPOSE.read_text())
    document["services"]["nginx"][name] = value
    assert any(each.startswith("services/nginx") for each in problems(document))


def test_a_compose_program_takes_the_file():
    if not path_of_program("docker-compose"):
        pytest.skip("no docker-compose here")
    command = ["docker-compose", "--file", str(COMPOSE), "config", "--quiet"]
    environment = {"PATH": "/usr/bin:/bin", "GROUNDSWELL_TIME_ZONE": "UTC"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    # The zone of the state has no default.
    environment.pop("GROUNDSWELL_TIME_ZONE")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode and "America/Chicago" in done.stderr


def test_only_debians_own_scripts_need_a_shell():
    """The trial runs all others without one."""
    assert set(WITH_SHELL) <= set(SERVERS)
    source = (Path(configure.__file__).parent / "start.py").read_text()
    assert re.findall(r'"sh", str\(ETC / "(\w+)/', source) == ["primary", "primary"]
