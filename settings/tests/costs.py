"""Show what each file of tests costs, in processor time: `provisioning/test --costs`.

With what its servers and all processes that its tests started took. A browser, and
what else a whole run shares, counts for the file that needed it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from django.conf import settings

SHOWN = 50


class Costs:
    """A pytest plugin for each test process, and for the one that directs them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: Counter[str] = Counter()
        self.before = processor_seconds()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now = processor_seconds()
            self.seconds[item.nodeid.partition("::")[0]] += now - self.before
            self.before = now
        return result

    def pytest_sessionfinish(self) -> None:
        # A process of pytest-xdist sends it to the one that directs it.
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["costs"] = dict(self.seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self.seconds.update(getattr(node, "workeroutput", {}).get("costs", {}))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        write = terminalreporter.write_line
        whole = sum(self.seconds.values())
        write(f"{whole:,.0f} s of processor time; the files that cost most:")
        for name, seconds in self.seconds.most_common(SHOWN):
            write(f"{seconds:8.1f}  {name}")


def processor_seconds() -> float:
    """Return what this process, its servers and all their children have taken."""
    total = 0.0
    for root in [psutil.Process(), *supervisors()]:
        for process in [root, *root.children(recursive=True)]:
            # Of one that has ended meanwhile its parent knows.
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
    return total


def supervisors() -> list[psutil.Process]:
    """Return the process that has started the servers of this test process."""
    file = f"--configuration={settings.SERVERS}/etc/supervisord.conf"
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if settings.SERVERS and file in (process.info["cmdline"] or [])
    ]
