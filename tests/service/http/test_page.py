"""The service's page in a real browser, against a small app that speaks the HTTP contract."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

import driftbandits
from tests.browser import Server, Tab, browser, eventually, tab

__all__ = ["browser", "tab"]  # fixtures: pytest finds them by name

PAGE = Path(driftbandits.__file__).parent / "service" / "http" / "pages" / "page.html"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)
HOSTILE = "<script>hacked=1;<img src=x onerror='hacked=1'> \"it's\" 🛍️ %2e & ?#" + "long" * 30
ARMS = ["<b onclick='hacked=1'>bold</b>", "__proto__", "old/one"]
POINTS, SPAN = 60, 600.0


class Shop:
    """The contract's answers from memory; tests look at what arrived, and change what it says."""

    def __init__(self) -> None:
        self.bandits = {HOSTILE: ARMS}
        self.key: str | None = None
        self.forbidden = False
        self.columns: dict[str, object] = {"context": [], "features": []}
        self.requests: list[str] = []
        self.created: list[dict] = []
        self.decided: dict[str, str] = {}
        self.rewards: dict[str, float] = {}
        self.alarms = [{"time": -SPAN / 4, "raised": -140.0, "before": 0.7, "after": 0.2}]
        paths = {"": self.bandits_, "/{name}": self.bandit_, "/{name}/series": self.series_}
        posts = {"/{name}/decisions/batch": self.decide_, "/{name}/rewards/batch": self.reward_}
        routes = [Route("/", self.page_), Route("/v1/bandits", self.create_, methods=["POST"])]
        routes += [Route("/v1/bandits" + path, answer) for path, answer in paths.items()]
        routes += [Route("/v1/bandits" + p, a, methods=["POST"]) for p, a in posts.items()]
        self.app = Starlette(routes=routes)

    def page_(self, _request: Request) -> Response:
        return HTMLResponse(PAGE.read_text(), headers={"Content-Security-Policy": POLICY})

    def bandit(self, name: str) -> dict:
        arms = [{"name": arm, "retired": arm == "old/one"} for arm in self.bandits[name]]
        counts = {"decisions": 1200, "rewards": 1100, "expired": 60, "open": 40}
        about = {"policy": "tracker", "window": 60, "reward_range": [0, 1]}
        return {"name": name, "arms": arms, **about, **self.columns, **counts}

    def bandits_(self, request: Request) -> Response:
        self.requests.append(request.url.path)
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return refusal(401, "key must be given, got none")
        if self.forbidden:
            return refusal(403, "role must be read or admin, got decide")
        return JSONResponse({"bandits": [self.bandit(name) for name in self.bandits]})

    def bandit_(self, request: Request) -> Response:
        return JSONResponse(self.bandit(request.path_params["name"]))

    async def create_(self, request: Request) -> Response:
        asked = await request.json()
        self.created.append(asked)
        self.bandits[asked["name"]] = asked["arms"]
        return JSONResponse(self.bandit(asked["name"]), status_code=201)

    def series_(self, request: Request) -> Response:
        name, now = request.path_params["name"], 1_800_000_000.0
        arms = self.bandits[name]
        some = [None if 20 <= i < 23 else 1 / len(arms) for i in range(POINTS)]
        reward = {"mean": some, "low": [v and v - 0.1 for v in some], "count": [5] * POINTS}
        reward["high"] = [v and v + 0.1 for v in some]
        alarms = [{**a, "time": now + a["time"], "raised": now + a["raised"]} for a in self.alarms]
        last = {"id": "<i>", "time": now, "arm": arms[0], "probability": 0.5, "reward": None}
        return JSONResponse({
            **{"name": name, "now": now, "arms": arms, "retired": [a == "old/one" for a in arms]},
            **{"from": now - SPAN, "to": now, "decisions": [20] * POINTS},
            "times": [now - SPAN + SPAN * (i + 1) / POINTS for i in range(POINTS)],
            **{"share": dict.fromkeys(arms, some), "probability": dict.fromkeys(arms, some)},
            **{"reward": reward, "arm_reward": dict.fromkeys(arms, reward)},
            **{"open": 40, "expired": 60, "decisions_total": 1200, "rewards_total": 1100},
            **{"alarms": {arms[0]: alarms}, "last": [{**last, "status": "open"}]},
        })  # fmt: skip

    async def decide_(self, request: Request) -> Response:
        asked, arms = await request.json(), self.bandits[request.path_params["name"]]
        ids = [str(len(self.decided) + i) for i in range(len(asked["decisions"]))]
        made = [{"id": i, "arm": arms[int(i) % len(arms)], "probability": 1 / 3} for i in ids]
        self.decided |= {decision["id"]: decision["arm"] for decision in made}
        return JSONResponse({"decisions": made})

    async def reward_(self, request: Request) -> Response:
        sent = (await request.json())["rewards"]
        self.rewards |= {reward["id"]: reward["reward"] for reward in sent}
        return JSONResponse({"rewards": [{**reward, "status": "learned"} for reward in sent]})


def refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": "no", "message": message, "remedy": ""}}, status)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def server(shop: Shop) -> Iterator[Server]:
    server = Server(shop.app)
    yield server
    server.stop()


LIST = "document.querySelector('.bandits tbody tr')"
CHARTS = "document.querySelectorAll('.plot .line').length >= 7"


def show_bandit(tab: Tab, server: Server) -> None:
    tab.open(server.url, LIST)
    tab.run("document.querySelector('.bandits a').click()")
    tab.wait(CHARTS)


def test_hostile_names_are_text_and_nothing_is_fetched_from_elsewhere(tab, server) -> None:
    tab.open(server.url, LIST)
    assert tab.run("document.querySelector('.bandits a').textContent") == HOSTILE
    show_bandit(tab, server)
    assert tab.run("document.querySelector('h1').textContent") == HOSTILE
    names = tab.run("[...document.querySelectorAll('.arm-head bdi')].map(e => e.textContent)")
    assert names == ARMS
    assert tab.run("document.querySelector('td.id').textContent") == "<i>"
    assert tab.run("document.scripts.length + document.images.length") == 1
    assert tab.run("typeof hacked") == "undefined"
    urls = [event["request"]["url"] for event in tab.events("Network.requestWillBeSent")]
    assert len(urls) >= 4
    assert [u for u in urls if not u.startswith((server.url + "/", "data:"))] == []
    assert tab.complaints() == []


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"context": [], "features": []}, "no context"),
        ({"context": ["age", "hour"], "features": ["size"]}, "context age, hour · features size"),
        (
            {"context": {"age": "number()", "hour": "cyclic(24)"}, "features": {"topic": "flag()"}},
            "context age, hour · features topic",
        ),
    ],
)
def test_it_says_what_comes_with_a_decision(tab, server, shop, columns, said: str) -> None:
    shop.columns = columns
    show_bandit(tab, server)
    about = tab.run("document.querySelector('.about').textContent")
    assert about == f"tracker · 2 arms · {said} · rewards may take 1 min"
    assert tab.complaints() == []


def test_charts_mark_the_change_and_fade_the_retired(tab, server) -> None:
    show_bandit(tab, server)
    assert tab.run("document.querySelectorAll('.plot').length") == 3 + len(ARMS)
    place = "(e => (e.x1.baseVal.value - 42) / (e.ownerSVGElement.clientWidth - 50))"
    marks = tab.run(f"[...document.querySelectorAll('.alarm')].map({place})")
    assert marks == pytest.approx([0.75] * 4, abs=0.01), "three charts, and that of the arm"
    assert tab.run("document.querySelectorAll('.flag').length") == 3
    assert "fell from 0.70 to 0.20" in tab.run("document.querySelector('.history').textContent")
    faded = "[...document.querySelectorAll('.arms .plot .line')].map(e => e.parentNode.getAttribute"
    assert tab.run(f"{faded}('opacity'))") == [None, None, "0.35"]
    stretches = tab.run("document.querySelector('.plot .line').getAttribute('d').split('M').length")
    assert stretches == 3, "a gap where nothing was decided"
    tiles = tab.run("[...document.querySelectorAll('.tile dd:not(.note)')].map(e => e.innerText)")
    assert tiles == ["1,200", "1,100", "40", "60"]


def test_a_new_alarm_is_announced_and_keys_read_the_charts(tab, server, shop) -> None:
    show_bandit(tab, server)
    assert tab.run("byId('live').textContent") == ""
    shop.alarms.append({"time": -9.0, "raised": -2.0, "before": 0.2, "after": 0.6})
    tab.wait("byId('live').textContent.includes('rose from 0.20 to 0.60')")
    assert tab.run("document.title").startswith("⚠")
    tab.run("document.querySelector('.plot').focus()")
    tab.tell("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    assert "33%" in tab.run("document.querySelector('.tip:not([hidden])').textContent")


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_and_is_readable(tab, server, dark: bool) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    tab.tell("Emulation.setEmulatedMedia", features=[scheme])
    tab.resize(360)
    sideways = "document.documentElement.scrollWidth - innerWidth"
    tab.open(server.url, LIST)
    assert tab.run(sideways) == 0
    show_bandit(tab, server)
    assert tab.run("innerWidth") == 360
    assert tab.run(sideways) == 0
    lights = tab.run("['--paper', '--card', '--ink', '--soft', '--warn'].map(luminance)".replace(
        "luminance", """name => { const hex = getComputedStyle(document.documentElement)
        .getPropertyValue(name).trim().slice(1), full = hex.length < 6 ? hex.replace(/./g, "$&$&")
        : hex, parts = [0, 2, 4].map(i => parseInt(full.slice(i, i + 2), 16) / 255).map(
        v => v < .04 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2]; }"""
    ))  # fmt: skip
    assert (lights[0] < 0.05) == dark
    for ground in lights[:2]:
        for ink in lights[2:]:
            assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5


def test_the_simulated_customer_plays_against_the_api(tab, server, shop) -> None:
    shop.bandits.clear()
    tab.open(server.url, "document.querySelector('[data-demo]')")
    assert f"curl '{server.url}/v1/bandits'" in tab.run("document.querySelector('pre').textContent")
    tab.run("Math.random = () => 0.5")  # the second of the others is best; it alone pays
    tab.run("document.querySelector('[data-demo]').click()")
    eventually(lambda: len(shop.rewards) >= 60)
    demo = {"name": "demo", "arms": ["red", "green", "blue"], "policy": "tracker", "window": 60}
    assert shop.created == [demo]
    assert "green" in tab.run("byId('best').textContent")
    assert tab.run("location.hash") == "#/bandit/demo"
    assert all(shop.rewards[i] == (shop.decided[i] == "green") for i in list(shop.rewards)[:60])
    tab.run("demo.until = 0")
    tab.wait("byId('change').textContent.includes('changed from green to blue')")
    tab.run("byId('stop').click()")
    eventually(lambda: tab.run("!demo.running") and len(shop.rewards) == len(shop.decided))
    played = len(shop.decided)
    time.sleep(0.5)
    assert len(shop.decided) == played
    assert tab.run("byId('demo').hidden && !document.querySelector('[data-demo]').hidden")
    assert tab.complaints() == []


def test_it_says_when_the_server_is_away_and_goes_on(tab, server) -> None:
    show_bandit(tab, server)
    assert tab.run("byId('notice').hidden")
    server.stop()
    tab.wait("byId('notice').textContent.includes('The server is away')")
    assert tab.run("byId('pill').textContent") == "away"
    assert tab.run(CHARTS), "what was known stays"
    server.start()
    tab.wait("byId('notice').hidden && byId('pill').textContent.startsWith('live')")


def test_it_asks_for_a_key_and_keeps_it(tab, server, shop) -> None:
    shop.key = "open-sesame"
    enter = "byId('key').value = '{}'; byId('ask').querySelector('form').requestSubmit()"
    tab.open(server.url, "byId('ask').open")
    tab.run(enter.format("wrong"))
    tab.wait("byId('ask').open && byId('ask-why').textContent.includes('not accepted')")
    tab.run(enter.format("open-sesame"))
    tab.wait(LIST + " && byId('notice').hidden")
    assert "401" in str(tab.complaints()), "the browser's console is heard"
    tab.open(server.url + "/?again", LIST)
    assert tab.run("byId('ask').open") is False
    shop.forbidden = True
    tab.wait("byId('notice').textContent.includes('This key may not do that')")
    assert "got decide" in tab.run("byId('notice').textContent")


def test_it_rests_while_hidden(tab, server, shop) -> None:
    tab.open(server.url, LIST)
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true}); "
    tab.run(hide % "true" + "document.dispatchEvent(new Event('visibilitychange'))")
    assert tab.run("byId('pill').textContent") == "paused"
    time.sleep(0.3)  # a question may have been on its way
    asked = len(shop.requests)
    time.sleep(2)  # longer than from one question to the next
    assert len(shop.requests) == asked
    tab.run(hide % "false" + "document.dispatchEvent(new Event('visibilitychange'))")
    eventually(lambda: len(shop.requests) > asked)
