"""A real browser and a served application, for the tests of pages that need both."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def opened_browser() -> Iterator["Browser"]:
    """Start Chromium; skip where there is none, or no playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine; apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def listening(app: Flask) -> Iterator[str]:
    """Serve an application from this process, each request in a thread; yields its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        # Also when a test fails: the thread would keep its process for ever.
        server.shutdown()
        thread.join()
        server.server_close()


def wait_until(page: "Page", holds: Callable[[], bool]) -> None:
    """Wait until something holds that the page comes to by itself.

    Asked again and again from outside: wait_for_function evaluates inside the page, which its policy may refuse.
    """
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "what was waited for did not come"
        page.wait_for_timeout(20)


def focused(page: "Page") -> str:
    """Return what has the focus, by its id, its name or its words; only with script."""
    return str(
        page.evaluate("document.activeElement.id || document.activeElement.name || document.activeElement.innerText")
    )


def wait_for_focus(page: "Page", where: str) -> None:
    """Wait until an element has the focus; a page that has just come may still set it."""
    wait_until(page, lambda: focused(page).startswith(where))
