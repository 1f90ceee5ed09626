"""Storing what stands on the screen of a browser as a small picture."""

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

FOLDER = Path(__file__).parent
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


def take(page: Page, name: str, *, whole: bool = False) -> None:
    """Store what stands on the screen, or the `whole` page, with as few colours as it needs."""
    page.wait_for_timeout(300)
    shot = Image.open(io.BytesIO(page.screenshot(full_page=whole)))
    shot.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)
