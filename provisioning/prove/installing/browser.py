"""Answer a survey in Chromium over TLS, in a process of its own.

`browser ORIGIN CODE KEY PAGES` with `KEY` the digest of the certificate's public key,
the only one that Chromium takes besides those of authorities that it knows.
Prints how many answers the page showed as saved.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit


def main(origin: str, code: str, key: str, pages: str) -> None:
    import django

    django.setup()
    # By name: the tests have no annotations to check.
    chromium: Any = import_module("survey.tests.chromium")
    person_module: Any = import_module("survey.tests.browser.person")

    host = urlsplit(origin).hostname
    chromium.FLAGS += [
        f"--host-resolver-rules=MAP {host} 127.0.0.1",
        f"--ignore-certificate-errors-spki-list={key}",
    ]
    with chromium.open_chromium() as browser:
        page = browser.new_context(base_url=origin, locale="en-US").new_page()
        person = person_module.Person(page, seed=7)
        page.goto("/")
        page.fill("#code", code)
        page.click("button[type=submit]")
        page.wait_for_selector("#page section.page")
        for _ in range(int(pages)):
            person.answer_page()
            person.next()
        person.sees("saved")
        answers = [answer for answer in person.answers.values() if answer is not None]
    print(json.dumps(len(answers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
