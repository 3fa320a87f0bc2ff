"""Send e-mails to a mail server that refuses, hangs and closes connections.

On private servers, because the workers of a running stack would send the e-mails too.
The mail server (aiosmtpd) is a process of its own: it refuses every tenth recipient,
closes connections before and after the text, and leaves some texts without a reply.
One worker sends, slice by slice, as in production. The last line is JSON. Exits 1 below
the required rate, if an e-mail was doubled or is missing, or if memory grew.
"""

from __future__ import annotations

import json
import subprocess

from provisioning.commands import (
    ROOT,
    command_parser,
    conclude,
    missed,
    print_figures,
    step,
)
from provisioning.measure.benchmarks.stack import Application, private_application

REQUIRED_PER_S = 150
# Of the worker, from the first tenth of the run to its end.
MOST_GROWTH_MB = 30


def main() -> int:
    options = command_parser(__doc__, mails=(5_000, "100,000 in full")).parse_args()
    with private_application() as application:
        details, _ = application.open_rehearsal(
            f"--respondents={options.mails}", "--pages=1", "--items=1"
        )
        with step(f"Sending {options.mails:,} e-mails"):
            figures = send(application, details["administration"])
    most = {"doubled": 0, "missing": 0, "memory_growth_mb": MOST_GROWTH_MB}
    print_figures(figures)
    least = {"per_s": REQUIRED_PER_S}
    return conclude(figures, missed(figures, least=least, most=most))


def send(application: Application, administration: str) -> dict:
    server = subprocess.Popen(
        [application.python, "-m", "provisioning.measure.benchmarks.mail_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin and server.stdout  # noqa: S101
    try:
        port = int(server.stdout.readline())
        sent = application.call(
            "measure.benchmarks.email_worker.send_emails",
            administration=administration,
            port=port,
        )
        server.stdin.close()
        received = json.loads(server.stdout.read())
    finally:
        server.kill()
        server.wait()
    return figures_of(sent, received)


def figures_of(sent: dict, received: dict) -> dict:
    doubled = sum(n for times, n in received["times"].items() if int(times) > 1)
    # A person is accounted for whose e-mail arrived, or whose row says why not.
    known = received["received"] + sent["bounced"] + sent["failed_unreceived"]
    handled = sent["sent"] + sent["bounced"] + sent["failed"]
    return {
        "mails": sent["people"],
        "per_s": round(handled / sent["seconds"], 1),
        "seconds": round(sent["seconds"], 1),
        "sent": sent["sent"],
        "bounced": sent["bounced"],
        "unconfirmed": sent["unconfirmed"],
        "tried_again": sent["tried_again"],
        "doubled": doubled,
        "missing": sent["people"] - known,
        "refused": received.get("refused", 0),
        "closed": received.get("closed", 0) + received.get("closed_after", 0),
        "hung": received.get("hung", 0),
        "memory_mb": sent["memory_mb"],
        "memory_growth_mb": sent["memory_growth_mb"],
        "worker_cpu_ms": round(1000 * sent["cpu_seconds"] / max(handled, 1), 2),
    }
