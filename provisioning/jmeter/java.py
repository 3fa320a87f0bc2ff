"""JMeter's own command line: its settings, its memory, its key."""

from __future__ import annotations

import os
from pathlib import Path

from provisioning.commands import Refusal, output_of
from provisioning.jmeter.install import cache_folder

SETTINGS = {
    # No port of its own to be stopped by, and no wait for idle threads.
    "jmeterengine.nongui.port": "0",
    "summariser.interval": "10",
    # The dashboard's percentiles: of all samples, not of the last 20,000.
    "aggregate_rpt_pct1": "50",
    "aggregate_rpt_pct2": "95",
    "aggregate_rpt_pct3": "99",
    "jmeter.reportgenerator.statistic_window": "-1",
    "jmeter.reportgenerator.overall_granularity": "1000",
    "jmeter.reportgenerator.report_title": "Groundswell",
    # Columns that nobody reads cost the processor that is measured.
    "jmeter.save.saveservice.url": "false",
    "jmeter.save.saveservice.data_type": "false",
    "jmeter.save.saveservice.idle_time": "false",
    # Nothing is sent twice in secret. But whoever read a page for longer than
    # the server keeps a connection takes a new one, as a browser does.
    "httpclient4.retrycount": "0",
    "httpclient4.validate_after_inactivity": "900",
}


def java_command(java: str, home: Path, *, heap: str, scratch: Path) -> list[str]:
    """JMeter without a window; its folder is only read."""
    return [
        java,
        "-Xms256m",
        f"-Xmx{heap}",
        # One thread a person; none needs more than a little stack.
        "-Xss256k",
        "-XX:+UseSerialGC",
        "-Djava.awt.headless=true",
        f"-Djava.util.prefs.userRoot={scratch}",
        f"-Djava.io.tmpdir={scratch}",
        "-jar",
        str(home / "bin" / "ApacheJMeter.jar"),
        *(f"-J{name}={value}" for name, value in SETTINGS.items()),
    ]


def rmi_options(keystore: Path | None, *, address: str) -> list[str]:
    """Only who has the keystore can speak to this JMeter, at this address.

    Without TLS it would listen on every address, and run whatever it is sent.
    """
    path = (keystore or own_keystore()).absolute()
    if not path.is_file():
        raise Refusal(f"{path} is not there")
    options = [f"-Djava.rmi.server.hostname={address}"]
    for store in ("keystore", "truststore"):
        options.append(f"-Jserver.rmi.ssl.{store}.file={path}")
        options.append(f"-Jserver.rmi.ssl.{store}.type=PKCS12")
    return options


def own_keystore() -> Path:
    """For load servers on this machine; readable by its owner only."""
    path = cache_folder() / "load-servers.p12"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        command = ["keytool", "-genkeypair", "-alias", "rmi", "-keyalg", "RSA"]
        command += ["-keysize", "2048", "-validity", "3650", "-storetype", "PKCS12"]
        # The file is the secret; this is the password that JMeter expects.
        command += ["-dname", "CN=load server", "-storepass", "changeit"]
        output_of([*command, "-keystore", draft], failing="keytool can't make a key")
        draft.chmod(0o600)
        draft.rename(path)
    return path
