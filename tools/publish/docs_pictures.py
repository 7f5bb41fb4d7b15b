"""Draws the pictures of the site's pages on comparing policies, by following these pages.

`python -m tools.publish.docs_pictures` runs the examples of each page in an empty folder and copies
the figures that they draw to docs/pictures, so that a picture has the numbers of its page. It also
draws kinds_of_drift.png. With names after it (`comparison.png`), only those.
"""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from driftbandits.report.curves import save, styled
from tests.docs.reader import follow
from tools.publish.environment_pictures import GREY, lines, play

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "pictures"
DRAWN_BY_PAGES = {  # page: picture, and the file that the page's examples write
    "start/comparison.md": {"comparison.png": "comparison.png"},
    "tutorials/which_policy.md": {"gradual.png": "gradual.png", "sudden.png": "sudden.png"},
    "tutorials/check_claims.md": {"own_claims.png": "results/mine/mine/figure.png"},
    "tutorials/write_a_policy.md": {"own_policy.png": "own_policy.png"},
    "explanation/exact_probabilities.md": {"propensities.png": "propensities.png"},
}
KINDS = {  # of drift: environment, and the arms that are pulled over and over
    "none: bernoulli": ("bernoulli(num_arms=3)", (0,)),
    "gradual: sinusoidal": ("sinusoidal(num_arms=3, period=4000)", (0,)),
    "wandering: random_walk": ("random_walk(num_arms=3)", (0,)),
    "sudden: abrupt": ("abrupt(num_arms=3, hazard=0.001)", (0,)),
    "swapping: flipping": ("flipping(num_arms=3, every=800)", (0,)),
    "by pulling: rotting": ("rotting(num_arms=3, law='geometric', life=1500)", (0, 0, 1, 1, 1, 2)),
}
STEPS, SEED = 4000, 4


def kinds_of_drift() -> Figure:
    """A panel for each kind, the mean rewards of three arms over time."""
    figure = Figure(figsize=(7, 6.5), layout="constrained")
    panels = figure.subplots(3, 2, sharex=True, sharey=True).ravel()
    for axes, (title, (environment, pulls)) in zip(panels, KINDS.items(), strict=True):
        lines(axes, play(environment, STEPS, SEED, pulls).mean)
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, color=GREY)
        axes.set_ylim(0, 1.02)
        axes.set_xticks([0, 2000, 4000], ["0", "2,000", "4,000"])
    figure.supxlabel("pulls", fontsize=9)
    figure.supylabel("mean reward", fontsize=9)
    return figure


DRAWN_HERE: dict[str, Callable[[], Figure]] = {"kinds_of_drift.png": kinds_of_drift}


def draw_by_page(page: str, files: dict[str, str]) -> None:
    mpl.use("Agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        follow((DOCS / page).read_text(), page)
        for picture, file in files.items():
            shutil.copyfile(file, PICTURES / picture)


def main(wanted: list[str]) -> None:
    for picture, draw in DRAWN_HERE.items():
        if not wanted or picture in wanted:
            with styled():
                save(draw(), PICTURES / picture)
            print(f"drawn: {picture}")
    for page, files in DRAWN_BY_PAGES.items():
        if not wanted or set(wanted) & set(files):
            draw_by_page(page, files)
            print(f"drawn: {', '.join(files)}")


if __name__ == "__main__":
    main(sys.argv[1:])
