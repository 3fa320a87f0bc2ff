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
  const open = (tag, key, clock) => store.openStore({
    tag, key, digest: "d1", changed: () => {}, ...(clock ? { clock } : {}),
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
  const clockAt = (now) => ({ now: () => now });
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
    found = run(second, f'return adopt(await open("maya", "{KEY}"));')
    assert [page for page, _ in found] == [3]
    assert found[0][1]["save"] == {"revision": 7, "content": f'{{"why":"{SECRET}"}}'}
    # Only the new tab keeps it.
    assert run(second, "return (await rows()).length;") == 1


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
    assert keys == ["digest", "iv", "page", "sealed", "tab", "tag", "time"]
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
    found = run(tab(device), f'return adopt(await open("maya", "{KEY}"));')
    assert [page for page, _ in found] == [3]


@pytest.mark.parametrize(
    ("hours", "left"), [(0, 1), (23.9, 1), (24.1, 0), (-23.9, 1), (-24.1, 0)]
)
def test_all_answers_are_deleted_after_a_day(device, hours, left):
    """Also if the device's clock was wrong and was corrected."""
    first = tab(device)
    keep_a_page(first)
    first.close()
    assert (
        run(
            tab(device),
            f"""
            await store.wipeOld(clockAt(Date.now() + {hours} * 3600000));
            return (await rows()).length;
            """,
        )
        == left
    )


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
    assert counts == [2, 1, 0, 0]


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
              await store.wipeOld();
              return [opened.durable, await store.countKept("maya")];
            }}"""
    ) == [False, 0]


def test_a_full_disk_is_noticed(device):
    page = tab(device)
    assert run(
        page,
        f"""
        let calls = 0;
        const opened = await store.openStore({{
          tag: "maya", key: "{KEY}", digest: "d1", changed: () => (calls += 1),
        }});
        IDBObjectStore.prototype.put = () => {{
          throw new DOMException("", "QuotaExceededError");
        }};
        await opened.write(1, {{}});
        return [opened.durable, calls];
        """,
    ) == [False, 1]
