"""Menus of the console."""

from __future__ import annotations

from playwright.sync_api import Page


def choose_action(page: Page, name: str) -> None:
    """Open the menu "More actions" of a page, and follow one of its links."""
    # The page before may have such a menu too, without this link.
    link = page.get_by_role("link", name=name, include_hidden=True)
    menu = page.locator(".menu", has_text="More actions", has=link)
    menu.locator("summary").click()
    menu.get_by_role("link", name=name).click()


def navigate(page: Page, section: str, name: str = "") -> None:
    """Open a section of the navigation, which a narrow screen folds, and a page."""
    if page.locator(".console-menu").is_visible():
        page.locator(".console-menu").click()
    navigation = page.get_by_role("navigation", name="Console")
    navigation.get_by_role("link", name=section).click()
    if name:
        page.locator(".tabs").get_by_role("link", name=name, exact=True).click()
