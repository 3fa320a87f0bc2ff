"""The help site is built with every link checked, and names commands that exist."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from provisioning.commands import ROOT, Refusal
from provisioning.help_site import build as help_site
from provisioning.installation.environment import PYTHON
from provisioning.installation.server import options as install_options
from provisioning.installation.server import upgrade
from provisioning.installation.stack import parser
from provisioning.run import COMMANDS

HELP = ROOT / "docs" / "help"
GUIDES = ROOT / "docs" / "guides"
# A command as a person would type it, in a text or in an example.
COMMAND = re.compile(r"provisioning/([a-z_]+)(?: ([a-z_]+))?(?: ([a-z_]+))?")
MANAGE = re.compile(r"manage\.py ([a-z_]+)")
# With all that is typed behind it.
CALL = re.compile(
    r"(manage\.py|provisioning/(?:stack manage|stack|install|upgrade))"
    r"(?: ([a-z_]+))?([^`|;&\n]*)"
)
LOADED = re.compile(
    r"<(?:link|script|img|iframe|source|form)\b[^>]*\b(?:href|src|action)=\"([^\"]*)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("help") / "site"
    help_site.build(PYTHON, folder, strict=True)
    return folder


@pytest.fixture
def copied(tmp_path, monkeypatch) -> Path:
    """Copy what the site is made of, to break it."""
    for source in help_site.SOURCES:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / source)
        else:
            (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, tmp_path / source)
    monkeypatch.setattr(help_site, "HERE", tmp_path / "provisioning" / "help_site")
    return tmp_path


def test_all_pages_of_both_languages_are_there(site):
    for page in HELP.rglob("*.md"):
        place = page.relative_to(HELP).with_suffix("")
        folder = place.parent if place.name == "index" else place
        assert (site / folder / "index.html").exists(), place
    # Nothing of the generator's own.
    assert {path.name for path in site.iterdir()} == {"assets", "en", "es"}


def test_every_guide_is_on_the_site_but_those_about_the_code(site):
    guides = {path.stem for path in GUIDES.glob("*.md")} - {"browser-modules"}
    assert guides <= {path.name for path in (site / "en" / "operators").iterdir()}
    assert not (site / "en" / "operators" / "browser-modules").exists()


# What a link leads to -> what is reported about it.
BAD_LINKS = {
    "nothing.md": "a link 'nothing.md', but the target",
    "index.md#nothing": "does not contain an anchor '#nothing'",
    "../../../guides/backups.md#nothing": "backups.md' does not contain an anchor",
}


def test_bad_links_and_a_page_that_no_navigation_lists_are_refused_together(copied):
    """And a new guide is none of them: it follows the operators' pages by itself."""
    guide = copied / "docs" / "guides" / "new-guide.md"
    guide.write_text(
        "# A new guide\n\n[Why](../decisions/0083-x.md), [map](../../x.md)\n"
    )
    authors = copied / "docs" / "help" / "en" / "authors"
    page = authors / "editor.md"
    links = " ".join(f"[this]({link})" for link in BAD_LINKS)
    page.write_text(f"{page.read_text()}\nRead {links}.\n")
    (authors / "lost.md").write_text("# Lost\n")
    with pytest.raises(Refusal) as refused:
        help_site.build(PYTHON, copied / "site", strict=True)
    reason = str(refused.value)
    assert [problem for problem in BAD_LINKS.values() if problem not in reason] == []
    assert 'not included in the "nav" configuration' in reason
    assert "new-guide" not in reason
    # Without the check, readers would meet them.
    help_site.build(PYTHON, copied / "site", strict=False)
    shown = (copied / "site/en/authors/editor/index.html").read_text()
    assert shown.count("this</a>") == len(BAD_LINKS)
    page = (
        copied / "site" / "en" / "operators" / "new-guide" / "index.html"
    ).read_text()
    # What is not on the site is named, without a link.
    assert "Why (decision 0083), map (<code>x.md</code>)" in page
    start = (copied / "site" / "en" / "operators" / "index.html").read_text()
    assert ">A new guide</a>" in start


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        addresses = LOADED.findall(text)
        assert len(addresses) > 3
        assert not [place for place in addresses if ":" in place or place[:2] == "//"]
        # The product's policy refuses both.
        assert " style=" not in text and not re.search(r" on[a-z]+=", text)
        assert not re.search(r"<script(?![^>]*src=)", text)
    css = (site / "assets" / "css" / "help.css").read_text()
    assert "http" not in css and "@import" not in css


def test_an_interrupted_build_leaves_the_old_site(copied, monkeypatch):
    (copied / "site" / "en").mkdir(parents=True)
    (copied / "site" / "en" / "index.html").touch()

    def fail(*_arguments: object, **_options: object) -> str:
        raise Refusal("interrupted")

    monkeypatch.setattr(help_site, "run_generator", fail)
    with pytest.raises(Refusal):
        help_site.build(PYTHON, copied / "site", strict=True)
    assert (copied / "site" / "en" / "index.html").exists()


def test_the_site_is_built_once_for_each_change(copied, monkeypatch):
    calls = []

    def built(python: Path, folder: Path, *, strict: bool) -> None:
        calls.append(strict)
        folder.mkdir(exist_ok=True)

    monkeypatch.setattr(help_site, "ROOT", copied)
    monkeypatch.setattr(help_site, "SITE", copied / ".help" / "site")
    monkeypatch.setattr(help_site, "build", built)
    help_site.build_if_changed(PYTHON)
    help_site.build_if_changed(PYTHON)
    # A bad link keeps nobody from serving the rest.
    assert calls == [False]
    page = copied / "docs" / "help" / "en" / "index.md"
    page.write_text(f"{page.read_text()}\nMore.\n")
    help_site.build_if_changed(PYTHON)
    assert calls == [False, False]


def unknown_commands(text: str) -> list[str]:
    """Return the commands of a text that nobody could run."""
    [subcommands] = parser()._subparsers._group_actions
    stack = set(subcommands.choices)
    managed = set(get_commands())
    unknown = [name for name in MANAGE.findall(text) if name not in managed]
    for name, second, third in COMMAND.findall(text):
        file = ROOT / "provisioning" / name
        if not file.exists():
            unknown.append(f"provisioning/{name}")
        elif name == "run" and second and second not in COMMANDS:
            unknown.append(f"provisioning/run {second}")
        elif name == "stack" and second and second not in stack:
            unknown.append(f"provisioning/stack {second}")
        elif name == "stack" and second == "manage" and third not in {*managed, ""}:
            unknown.append(f"provisioning/stack manage {third}")
    return unknown


def options_of(program: str, name: str) -> set[str]:
    """Return the options of a command, as its --help has them."""
    if program in ("manage.py", "provisioning/stack manage"):
        command = load_command_class(get_commands()[name], name)
        parser_of = command.create_parser("manage.py", name)
    elif program == "provisioning/stack":
        [subcommands] = parser()._subparsers._group_actions
        parser_of = subcommands.choices[name] if name else parser()
    else:
        parser_of = {
            "provisioning/install": install_options.parser,
            "provisioning/upgrade": upgrade.parser,
        }[program]()
    return set(parser_of._option_string_actions)


def unknown_options(text: str) -> list[str]:
    """Return the options in a text that its commands do not have."""
    return [
        f"{program} {name} {option}".replace("  ", " ")
        for program, name, rest in CALL.findall(text.replace("\\\n", " "))
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest)
        if option not in options_of(program, name)
    ]


@pytest.mark.parametrize(
    "page",
    [*sorted(HELP.rglob("*.md")), *sorted(GUIDES.glob("*.md"))],
    ids=lambda page: str(page.relative_to(ROOT / "docs")),
)
def test_commands_of_pages_and_their_options_exist(page):
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", page.read_text(), re.DOTALL))
    assert unknown_commands(code) == []
    assert unknown_options(code) == []


def test_options_that_do_not_exist_are_named():
    text = """provisioning/stack restore --at latest --into /srv/new; manage.py
    sudo provisioning/install --host a.example.org \\
        --mails smtp://b.example.org
    provisioning/stack manage survey_day on --till 16:00 | cat --number
    provisioning/upgrade 1.2.0 --yes"""
    assert unknown_options(text) == [
        "provisioning/stack restore --into",
        "provisioning/install --mails",
        "provisioning/stack manage survey_day --till",
        "provisioning/upgrade --yes",
    ]


def test_pages_in_spanish_have_the_sections_of_those_in_english():
    """The console's links lead to sections, and to the reader's language."""
    pages, english = (
        {page.relative_to(HELP / language): page.read_text() for page in each}
        for language, each in (
            (name, (HELP / name).rglob("*.md")) for name in ("es", "en")
        )
    )
    assert pages.keys() == english.keys()
    assert len(pages) > 15
    for name, text in pages.items():
        ids = [re.findall(r"\{: #([\w-]+)", each) for each in (text, english[name])]
        assert ids[0] == ids[1], name


# How the form says it in each language.
CONFORMANCE = {
    "Supports": "Cumple",
    "Partially supports": "Cumple parcialmente",
    "Not applicable": "No se aplica",
    "Not evaluated": "Sin evaluar",
}


def test_the_conformance_report_says_the_same_in_both_languages():
    english, spanish = (
        re.findall(
            r"^\| ([0-9.]+) [^|]*\| ([^|]+?) \|",
            (HELP / language / "security" / "accessibility.md").read_text(),
            re.MULTILINE,
        )
        for language in ("en", "es")
    )
    assert len(english) > 70
    assert spanish == [(number, CONFORMANCE[level]) for number, level in english]


def test_commands_that_do_not_exist_are_named():
    text = (
        "provisioning/nothing, provisioning/run nothing, provisioning/stack nothing,"
        " provisioning/stack manage nothing, manage.py nothing, provisioning/run sbom"
    )
    assert len(unknown_commands(text)) == 5


def test_servers_do_not_import_what_builds_the_site():
    imported = re.compile(r"^\s*(?:import|from) (?:properdocs|markdown|jinja2|yaml)\b")
    sources = [
        path
        for app in ("accounts", "survey", "reports", "settings")
        for path in (ROOT / app).rglob("*.py")
    ]
    assert len(sources) > 500
    for path in sources:
        lines = path.read_text().splitlines()
        assert not list(filter(imported.match, lines)), path
