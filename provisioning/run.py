"""Run a command by its name: `provisioning/run NAME [ARGUMENTS]`."""

from __future__ import annotations

import sys
from importlib import import_module

from provisioning.commands import VERSION, print_table, run_command

# Each name with its module and what it does. A module is imported once its command is
# called: most need more than the standard library after they have prepared `.venv`.
COMMANDS = {
    "agreement": (
        "prove.rasch_agreement.compare",
        "Compares the Rasch model with eRm, an independent program",
    ),
    "capacity": (
        "measure.capacity",
        "Computes servers, pools and memory for a day to come",
    ),
    "check_formats": (
        "prove.format_check",
        "Reads exports with R's haven, and compares each cell",
    ),
    "check_pdf": (
        "prove.pdf_check.check",
        "Checks PDF files against PDF/UA-1 with veraPDF",
    ),
    "cluster": (
        "prove.citus.run",
        "Runs the product on a Citus cluster, after a migration under load",
    ),
    "cluster_fleet": (
        "prove.citus.fleet_start",
        "Builds a fleet with a Citus cluster, and kills its primaries under load",
    ),
    "cluster_restore": (
        "prove.citus.restore_drill",
        "Backs up the nodes of a Citus cluster, and restores them to one point",
    ),
    "dashboards": (
        "monitoring.dashboards",
        "Writes alerts for Prometheus and a dashboard for Grafana from the metrics",
    ),
    "drill_fleet": (
        "prove.fleet.start",
        "Sets up a whole fleet on this machine, and loses a host of each kind",
    ),
    "drill_fleet_upgrade": (
        "prove.failovers.upgrade_start",
        "Upgrades PostgreSQL on all database hosts of a fleet, while people answer",
    ),
    "drill_postgresql_upgrade": (
        "installation.upgrades.drill",
        "Upgrades a stack's database to another PostgreSQL and compares it",
    ),
    "drill_restore": (
        "installation.backups.drill",
        "Restores a database from its backups and compares it",
    ),
    "emails": (
        "measure.benchmarks.emails",
        "Measures how fast e-mails are sent, and that none is doubled or lost",
    ),
    "failovers": (
        "prove.failovers.start",
        "Makes the primary of a fleet fail, again and again, under load",
    ),
    "feeds": (
        "measure.benchmarks.feeds",
        "Measures a night of roster feeds, and that nobody is doubled or lost",
    ),
    "finder": (
        "measure.benchmarks.finder",
        "Measures the public school finder and its cache",
    ),
    "handbook": (
        "handbook_images",
        "Takes the screenshots of the handbook for school coordinators",
    ),
    "help_site": (
        "help_site.build",
        "Builds the help site, and checks its links",
    ),
    "instructions": (
        "measure.benchmarks.instructions",
        "Counts instructions and system calls of a worker, by kind of request",
    ),
    "licences": (
        "release.licences",
        "Writes the licences of everything of others",
    ),
    "measure_destruction": (
        "measure.benchmarks.destruction",
        "Destroys the answers of an administration beside page saves of another",
    ),
    "measure_editor": (
        "measure.benchmarks.editor",
        "Times the survey editor: opening drafts, and edits",
    ),
    "measure_firewall": (
        "prove.firewall.start",
        "Measures a stack with the fleet's firewall, and a full table of connections",
    ),
    "measure_rates": (
        "measure.benchmarks.rates",
        "Times the roll-up of response rates, the board, and saves meanwhile",
    ),
    "measure_school_reports": (
        "measure.benchmarks.school_reports",
        "Times a ZIP file with the reports of all schools",
    ),
    "messages": (
        "measure.benchmarks.messages",
        "Climbs a ladder of message platforms' requests, beside an empty view",
    ),
    "pages": (
        "measure.benchmarks.pages",
        "Times every page of the console that links lead to, as each role",
    ),
    "peers": (
        "measure.peers.compare",
        "Compares page saves with those of oTree and of a plain Django survey",
    ),
    "power_loss": (
        "prove.power_loss.start",
        "Cuts the power under PostgreSQL, and counts lost answers",
    ),
    "previous_release": (
        "prove.previous_release",
        "Runs the release before on the schema of this one",
    ),
    "queries": (
        "measure.queries",
        "Says which statements a survey costs, on both database servers",
    ),
    "release_archive": (
        "release.archive",
        "Writes the archive of a release, and signs it",
    ),
    "rosters": (
        "measure.benchmarks.rosters",
        "Times a roster of a whole state, and the one a year after it",
    ),
    "sbom": (
        "release.bill_of_materials",
        "Writes a software bill of materials of this version",
    ),
    "simulate_bands": (
        "prove.simulations.bands",
        "Counts bands of simulated schools that are wrong, or made of chance",
    ),
    "simulate_dif": (
        "prove.simulations.diagnostics",
        "Counts false and missed findings about items of simulated measures",
    ),
    "simulate_drift": (
        "prove.simulations.drift",
        "Counts items of simulated waves that are called drifted by mistake",
    ),
    "test_containers": (
        "containers.trial",
        "Builds container images, starts them all, and answers a survey there",
    ),
    "test_in_root": (
        "installation.debian_roots",
        "Runs the tests in a root folder with another release of Debian",
    ),
    "upgrade_data_folder": (
        "installation.upgrades.host",
        "Upgrades the data folder of a fleet's database host to another PostgreSQL",
    ),
}


def main() -> int:
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print("usage: provisioning/run NAME [ARGUMENTS]; each has --help\n")
        print_table(
            ("name", "what it does"),
            [(name, sentence) for name, (_, sentence) in COMMANDS.items()],
        )
        return 0
    if name == "--version":
        print(VERSION)
        return 0
    if name not in COMMANDS:
        print(
            f"provisioning/run: there is no command {name};"
            " provisioning/run without a name lists them",
            file=sys.stderr,
        )
        return 2
    sys.argv = [f"provisioning/run {name}", *arguments]
    module = import_module(f"provisioning.{COMMANDS[name][0]}")
    return run_command(sys.argv[0], module.main)
