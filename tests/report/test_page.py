"""The report in a real browser: on a desk, on a phone, on paper."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from driftbandits import run_experiments, write_report
from tests.conftest import BROWSER
from tests.report.test_report import BOUND, DISCS, SWEPT, WORLDS
from tests.running.test_runner import tiny

PUBLISHED = Path(__file__).parents[2] / "docs" / "evidence" / "paper" / "report.html"

# Measures the page from within and leaves what it found in its title.
PROBE = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const root = document.documentElement, images = [...document.images];
  const size = element => element.getBoundingClientRect();
  document.title = "FOUND" + JSON.stringify({
    width: root.clientWidth,
    overflow: root.scrollWidth - root.clientWidth,
    broken: images.filter(image => !image.complete || !image.naturalWidth).length,
    images: images.length,
    smallest: Math.min(...[...document.querySelectorAll("figure img")].map(i => size(i).width)),
    first: document.querySelector(".overview li").textContent.trim(),
    badges: [...document.querySelectorAll(".overview .badge")].map(b => b.textContent.trim()),
    hidden: [...document.querySelectorAll(".badge, h2, img")].filter(e => !size(e).width).length,
    dangling: [...document.querySelectorAll('a[href^="#"]')].filter(
      a => !document.getElementById(a.getAttribute("href").slice(1))).length,
    resources: performance.getEntriesByType("resource").filter(
      entry => !entry.name.startsWith("data:")).length,
    headerBottom: size(document.querySelector("header")).bottom,
    fontSize: parseFloat(getComputedStyle(document.body).fontSize),
  }) + "END";
});</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    run_experiments([tiny(runs=20), SWEPT, WORLDS, DISCS, BOUND], folder)
    return write_report(folder)


def browse(page: Path, profile: Path, *flags: str) -> str:
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--hide-scrollbars", f"--user-data-dir={profile}", *flags,
        page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def look(page: Path, tmp_path: Path, width: int) -> dict:
    probed = tmp_path / "probed.html"
    probed.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    frame = tmp_path / "frame.html"  # a browser's window may not be as narrow as a phone
    frame.write_text(
        f'<body style="margin:0"><iframe src="probed.html" width="{width}" height="900" '
        'style="border:0"></iframe><script>addEventListener("load", () => setTimeout(() => {'
        "document.body.dataset.found = frames[0].document.title }, 200))</script>"
    )
    flags = ["--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom"]
    dom = browse(frame, tmp_path / "profile", *flags, "--window-size=1400,1000")
    found = re.search(r'data-found="FOUND(.*?)END"', dom)
    assert found, dom[:500]
    return json.loads(found.group(1).replace("&quot;", '"'))


@pytest.mark.parametrize("width", [1280, 768, 360])
def test_nothing_sticks_out_or_is_missing(page: Path, tmp_path: Path, width: int) -> None:
    found = look(page, tmp_path, width)
    assert found["width"] == width
    assert found["overflow"] == 0, "the page must not scroll sideways"
    assert found["images"] == 6, "one for each experiment, and one that the page opens with"
    assert found["broken"] == found["hidden"] == found["dangling"] == found["resources"] == 0
    assert found["smallest"] >= min(496, width), "figures stay readable"
    assert found["badges"] == ["✓ holds", "✗ does not hold"]
    assert found["first"] == "✓ holds tiny: A window beats chance."
    assert found["fontSize"] >= 15


@pytest.mark.parametrize("width", [1280, 360])
def test_the_published_report(tmp_path: Path, width: int) -> None:
    found = look(PUBLISHED, tmp_path, width)
    assert found["overflow"] == found["broken"] == found["resources"] == 0
    assert len(found["badges"]) == len(json.loads(PUBLISHED.with_name("claims.json").read_text()))
    assert width < 1000 or found["headerBottom"] < 900, "the summary fits one screen"


def test_it_prints(page: Path, tmp_path: Path) -> None:
    pdf = tmp_path / "report.pdf"
    browse(page, tmp_path / "profile", f"--print-to-pdf={pdf}")
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", content))
    assert 6 <= pages <= 12, "one for the summary, one or two for each experiment"
