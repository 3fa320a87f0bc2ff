"""Storage of unsaved answers on a shared computer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

# Maya's key and another child's: 32 bytes in base64url, without padding.
KEY = "A" * 43
OTHER_KEY = "B" * 42 + "A"
SECRET = "nobody at home listens"
HELPERS = """
  const store = await import("/js/store.js");
  const open = (tag, key) => store.openStore({
    tag, key, digest: "d1", closesAt: "2030-06-01T12:00:00Z", changed: () => {},
  });
  const rows = () => new Promise((resolve, reject) => {
    const request = indexedDB.open("groundswell", 1);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const all = request.result.transaction("kept").objectStore("kept").getAll();
      all.onsuccess = () => resolve(all.result);
    };
  });
  const found = [];
  const adopt = async (opened) => {
    await opened.adopt(async (page, record) => {
      await opened.write(page, record);
      found.push([page, record]);
    });
    return found;
  };
  // Puts refuse while `refusing` is set, like a full disk.
  let refusing = false;
  const keptPut = IDBObjectStore.prototype.put;
  IDBObjectStore.prototype.put = function (row) {
    if (refusing) throw new DOMException("", "QuotaExceededError");
    return keptPut.call(this, row);
  };
"""


@pytest.fixture
def device(chromium: Browser, modules: str) -> Iterator[BrowserContext]:
    context = chromium.new_context(base_url=modules)
    yield context
    context.close()


def tab(device: BrowserContext) -> Page:
    page = device.new_page()
    page.goto("/")
    return page


def run(page: Page, body: str) -> object:
    return page.evaluate(f"async () => {{ {HELPERS} {body} }}")


def keep_a_page(page: Page, tag: str = "maya", key: str = KEY, n: int = 3) -> None:
    run(
        page,
        f"""
        const opened = await open("{tag}", "{key}");
        await opened.write({n}, {{ before: "{{}}", save: {{ revision: 7,
          content: '{{"why":"{SECRET}"}}' }}, later: null }});
        """,
    )


def test_the_next_tab_takes_over_answers_of_a_closed_tab(device):
    first = tab(device)
    keep_a_page(first)
    first.close()
    second = tab(device)
    records = run(second, f'return adopt(await open("maya", "{KEY}"));')
    assert [page for page, _ in records] == [3]
    assert records[0][1]["save"] == {"revision": 7, "content": f'{{"why":"{SECRET}"}}'}
    # Only the new tab keeps it.
    assert run(second, "return (await rows()).length;") == 1


def test_nothing_is_left_of_answers_that_are_saved_while_they_are_taken_over(device):
    first = tab(device)
    keep_a_page(first)
    first.close()
    left = run(
        tab(device),
        f"""
        const opened = await open("maya", "{KEY}");
        await opened.adopt(async (page, record) => {{
            await opened.write(page, record);
            // The server's reply comes before the closed tab's record is erased.
            opened.remove(page);
        }});
        await opened.settled();
        return (await rows()).length;
        """,
    )
    assert left == 0


def test_answers_of_an_open_tab_are_taken_over_only_after_it_closes(device):
    first, second = tab(device), tab(device)
    keep_a_page(first)
    early = run(
        second,
        f"""
        globalThis.adopting = adopt(await open("maya", "{KEY}"));
        await new Promise((resolve) => setTimeout(resolve, 300));
        return found.length;
        """,
    )
    first.close()
    assert early == 0
    assert len(second.evaluate("globalThis.adopting")) == 1


def test_nothing_on_the_device_can_be_read_without_the_key(device):
    page = tab(device)
    keep_a_page(page)
    rows = page.evaluate(
        f"""async () => {{ {HELPERS}
          const bytes = (value) => new TextDecoder("latin1").decode(value);
          return (await rows()).map((row) => [Object.keys(row).sort(),
            bytes(row.sealed), bytes(row.iv), JSON.stringify(row)]);
        }}"""
    )
    ((keys, sealed, iv, text),) = rows
    assert keys == ["digest", "iv", "page", "sealed", "tab", "tag", "until"]
    for part in (SECRET, "why", "revision", "content"):
        assert part not in sealed + iv + text
    # There was something to leak.
    assert len(sealed) > len(SECRET)


def test_another_childs_login_cannot_read_the_answers_and_keeps_them(device):
    first = tab(device)
    keep_a_page(first)
    first.close()
    second = tab(device)
    assert run(second, f'return adopt(await open("noor", "{OTHER_KEY}"));') == []
    assert run(second, "return (await rows()).length;") == 1
    third = tab(device)
    assert len(run(third, f'return adopt(await open("maya", "{KEY}"));')) == 1


def test_the_wrong_key_opens_nothing_with_the_right_tag(device):
    first = tab(device)
    keep_a_page(first)
    first.close()
    assert run(tab(device), f'return adopt(await open("maya", "{OTHER_KEY}"));') == []


def test_records_cannot_be_exchanged_between_pages(device):
    """The ciphertext is bound to person, survey and page."""
    first = tab(device)
    keep_a_page(first, n=3)
    run(
        first,
        """
        const [row] = await rows();
        const request = indexedDB.open("groundswell", 1);
        await new Promise((resolve) => (request.onsuccess = resolve));
        const change = request.result.transaction("kept", "readwrite");
        const put = change.objectStore("kept").put({ ...row, page: 4 });
        await new Promise((resolve) => (put.onsuccess = resolve));
        """,
    )
    assert run(first, "return (await rows()).length;") == 2
    first.close()
    records = run(tab(device), f'return adopt(await open("maya", "{KEY}"));')
    assert [page for page, _ in records] == [3]


@pytest.mark.parametrize(
    ("now", "left"),
    [
        ("2030-06-08T11:59:00Z", 1),
        ("2030-06-08T12:01:00Z", 0),
        ("2020-01-01T00:00:00Z", 1),
        ("no time", 1),
    ],
)
def test_answers_are_deleted_a_week_after_the_survey_closed(device, now, left):
    first = tab(device)
    keep_a_page(first)
    first.close()
    assert (
        run(
            tab(device),
            f"""
            await store.wipeEnded(Date.parse("{now}"));
            return (await rows()).length;
            """,
        )
        == left
    )


@pytest.mark.parametrize("years", [-8, -1, 1, 8])
def test_a_corrected_clock_of_the_device_deletes_nothing(device, years):
    """Only the server's time counts, which the page brings."""
    first = tab(device)
    keep_a_page(first)
    first.close()
    later = tab(device)
    assert run(
        later,
        f"""
            const now = Date.now;
            Date.now = () => now() + {years} * 365 * 86400000;
            document.documentElement.dataset.now = "2030-05-31T12:00:00Z";
            await store.wipeEnded();
            const kept = (await rows()).length;
            document.documentElement.dataset.now = "2030-06-09T12:00:00Z";
            await store.wipeEnded();
            return [kept, (await rows()).length];
            """,
    ) == [1, 0]


def test_saved_answers_are_deleted_even_if_writing_was_slow(device):
    page = tab(device)
    assert (
        run(
            page,
            f"""
            const opened = await open("maya", "{KEY}");
            opened.write(1, {{ save: "x".repeat(2000000) }});
            opened.remove(1);
            await opened.settled();
            return (await rows()).length;
            """,
        )
        == 0
    )


def test_waiting_pages_are_counted_per_respondent(device):
    page = tab(device)
    keep_a_page(page, n=1)
    keep_a_page(page, n=2)
    keep_a_page(page, tag="maya2", key=OTHER_KEY)
    counts = run(
        page,
        """
        const tags = ["maya", "maya2", "may", "noor"];
        return Promise.all(tags.map((tag) => store.countKept(tag)));
        """,
    )
    assert [sum(count.values()) for count in counts] == [2, 1, 0, 0]


def test_pages_of_open_and_of_closed_tabs_are_told_apart(device):
    """What a crashed tab left must not keep the others from finishing."""
    crashed, watching = tab(device), tab(device)
    keep_a_page(crashed, n=1)
    keep_a_page(watching, n=2)
    count = 'return store.countKept("maya");'
    assert run(watching, count) == {"open": 2, "closed": 0}
    crashed.close()
    watching.wait_for_timeout(200)
    assert run(watching, count) == {"open": 1, "closed": 1}
    # Whoever opens the login page is told of everybody's.
    assert run(watching, "return store.countKept();") == {"open": 1, "closed": 1}


@pytest.mark.parametrize(
    "missing",
    [
        "Object.defineProperty(crypto, 'subtle', { value: undefined });",
        "Object.defineProperty(globalThis, 'indexedDB', { value: undefined });",
        "indexedDB.open = () => { throw new Error('private window'); };",
        "indexedDB.open = () => ({});",
    ],
)
def test_without_storage_answers_stay_in_memory_and_the_tab_knows(device, missing):
    page = device.new_page()
    page.add_init_script(missing)
    page.goto("/")
    assert page.evaluate(
        f"""async () => {{ {HELPERS}
              const opened = await open("maya", "{KEY}");
              await opened.write(1, {{}});
              await store.wipeEnded();
              const {{ open: left }} = await store.countKept("maya");
              return [opened.durable, left];
            }}"""
    ) == [False, 0]


def test_a_full_disk_is_noticed_until_every_page_is_kept(device):
    """A later page that fits says nothing about the one that did not."""
    page = tab(device)
    assert run(
        page,
        f"""
        const opened = await open("maya", "{KEY}");
        const seen = [];
        opened.changed = () => seen.push(opened.durable);
        refusing = true;
        await opened.write(1, {{ save: "first" }});
        // Removing needs no space, and succeeds.
        await opened.remove(2);
        const full = [opened.durable, (await rows()).length];
        refusing = false;
        await opened.write(3, {{ save: "third" }});
        return [full, opened.durable, (await rows()).map((row) => row.page), seen];
        """,
    ) == [[False, 0], True, [1, 3], [False, True]]


def test_the_browser_is_asked_once_to_keep_what_waits(device):
    page = tab(device)
    assert run(
        page,
        f"""
            let asked = 0;
            navigator.storage.persist = async () => {{ asked += 1; return false; }};
            const opened = await open("maya", "{KEY}");
            await opened.write(1, {{}});
            const before = asked;
            opened.protect();
            opened.protect();
            return [before, asked];
            """,
    ) == [0, 1]
