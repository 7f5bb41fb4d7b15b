"""Draws the pictures of tutorials by running their own code.

python -m tools.publish.tutorial_picture [NAME ...]     # docs/pictures/NAME.png; all without names
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.publish.page_blocks import code_blocks

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = ["decide_for_real_users", "news"]
LAST = "plt.show()"  # ends the block that draws


def draw(name: str) -> None:
    page, target = DOCS / "tutorials" / f"{name}.md", DOCS / "pictures" / f"{name}.png"
    names: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in code_blocks(page.read_text()):
                if block.language == "python":
                    exec(compile(block.text, page.name, "exec"), names)
                    if LAST in block.text:
                        break
        finally:
            os.chdir(before)
    names["figure"].savefig(target, dpi=150)
    print(f"written: {target}")


def main(names: list[str]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    for name in names or TUTORIALS:
        draw(name)


if __name__ == "__main__":
    main(sys.argv[1:])
