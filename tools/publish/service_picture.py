"""Takes the picture of the service's page: a real service, its simulated customer, a real browser.

python -m tools.publish.service_picture     # docs/pictures/service.png, about two minutes
"""

import base64
import tempfile
import time
from pathlib import Path

from tests.browser import Chromium, Tab
from tests.service.serving import served

TARGET = Path(__file__).parents[2] / "docs" / "pictures" / "service.png"
WIDTH, HEIGHT = 1100, 1270
SECONDS = 90  # in which the best arm changes four times


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "data") as serving:
        browser = Chromium(Path(folder) / "profile")
        tab = Tab(browser)
        tab.open(serving.url, "document.querySelector('button')")
        tab.run("startDemo()")
        tab.resize(WIDTH)
        time.sleep(SECONDS)
        tab.run("location.hash = '#/bandit/demo'")
        tab.wait("document.querySelectorAll('.plot .line').length >= 4")
        time.sleep(3)
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_bytes(screenshot(tab))
        browser.close()
    print(f"written: {TARGET}")


def screenshot(tab: Tab) -> bytes:
    """Of everything above the list of decisions."""
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
    taken = tab.tell("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    main()
