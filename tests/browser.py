"""A real browser, driven through its debugging pipe, and a server on a thread for it."""

import json
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import uvicorn
from starlette.applications import Starlette

from tests.conftest import BROWSER


class Server:
    """The app on a port of its own, which it keeps when it is stopped and started again."""

    def __init__(
        self, app: Starlette, lifespan: Literal["on", "off"] = "off", http: Any = "auto"
    ) -> None:
        self.app, self.lifespan, self.http, self.port = app, lifespan, http, 0
        self.start()

    def start(self) -> None:
        life = self.lifespan
        config = uvicorn.Config(
            self.app, port=self.port, log_level="error", log_config=None, lifespan=life,
            http=self.http,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        eventually(lambda: self.server.started)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def eventually(holds: Any, patience: float = 20.0) -> None:
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.03)


class Chromium:
    """The browser, told what to do through its debugging pipe."""

    def __init__(self, profile: Path) -> None:
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}",
        ]  # fmt: skip
        # The pipe is descriptors 3 and 4; a shell moves them there, as forking with JAX warns.
        command = 'exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1'
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = subprocess.Popen(["sh", "-c", command, str(BROWSER), *flags], **pipes)
        self.unread, self.sent, self.events = b"", 0, []

    def tell(self, method: str, session: str | None = None, **params: Any) -> dict:
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.sent:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    return {"result": {}}  # the page that was asked has gone
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def read(self) -> dict:
        while b"\0" not in self.unread:
            assert select.select([self.process.stdout], [], [], 60)[0], "the browser is silent"
            self.unread += self.process.stdout.read(1 << 20)
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def close(self) -> None:
        self.tell("Browser.close")
        self.process.wait(20)
        self.process.stdin.close()
        self.process.stdout.close()


class Tab:
    """A page with a storage of its own."""

    def __init__(self, browser: Chromium) -> None:
        self.browser = browser
        self.context = browser.tell("Target.createBrowserContext")["browserContextId"]
        wanted = {"url": "about:blank", "browserContextId": self.context}
        target = browser.tell("Target.createTarget", **wanted)["targetId"]
        attached = browser.tell("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")
        self.resize(1280)

    def tell(self, method: str, **params: Any) -> dict:
        return self.browser.tell(method, self.session, **params)

    def resize(self, width: int) -> None:
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **size)

    def run(self, script: str) -> Any:
        done = self.tell("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def wait(self, script: str) -> None:
        eventually(lambda: self.run(script))

    def open(self, url: str, ready: str) -> None:
        self.tell("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && Boolean({ready})")

    def events(self, *methods: str) -> list[dict]:
        mine = (e for e in self.browser.events if e.get("sessionId") == self.session)
        return [event["params"] for event in mine if event["method"] in methods]

    def complaints(self) -> list[dict]:
        found = self.events("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return found + self.events("Log.entryAdded")


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def tab(browser: Chromium) -> Iterator[Tab]:
    tab = Tab(browser)
    yield tab
    browser.tell("Target.disposeBrowserContext", browserContextId=tab.context)
