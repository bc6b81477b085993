"""A headless Chromium from Debian's packages, driven over WebDriver."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Self

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from pathlib import Path

DESKTOP = (1280, 900)
PHONE = (360, 740)


def missing() -> str:
    """Say what a machine lacks for these tests; nothing when it has all."""
    wanted = {"chromium": "chromium", "chromedriver": "chromium-driver"}
    lacking = [package for program, package in wanted.items() if not shutil.which(program)]
    return f"install Debian's {' and '.join(lacking)}" if lacking else ""


class Browser:
    """One Chromium; what a test changes (colours, width, scripts) `fresh` puts back."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        options.add_argument("--disable-dev-shm-usage")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(60)

    def command(self, name: str, **parameters: object) -> object:
        """Send a DevTools command."""
        answer: object = self.driver.execute_cdp_cmd(name, parameters)
        return answer

    def fresh(
        self, *, size: tuple[int, int] = DESKTOP, dark: bool = False, scripts: bool = True
    ) -> None:
        """Begin anew: an empty page, an empty log, these settings."""
        self.driver.get("about:blank")
        self.complaints()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.resize(*size)
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window's content in CSS pixels."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width <= PHONE[0],
        )

    def run(self, script: str, *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Run a function body in the page and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def text(self) -> str:
        """Return what a reader sees."""
        return str(self.run("return document.body.innerText"))

    def complaints(self) -> list[str]:
        """Return what the browser has complained of since last asked: errors, CSP violations."""
        return [f"{line['level']}: {line['message']}" for line in self.driver.get_log("browser")]

    def picture(self, path: Path) -> None:
        """Write a PNG of the whole page."""
        width, height = self.run(
            "const e = document.documentElement; return [innerWidth, e.scrollHeight]"
        )
        self.resize(width, max(height, 400))
        self.driver.save_screenshot(str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.quit()
