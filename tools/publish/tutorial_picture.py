"""Draws the picture of the tutorial "Decide for real users" by running the tutorial's own code.

python -m tools.publish.tutorial_picture     # docs/pictures/decide_for_real_users.png
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from tools.publish.page_blocks import code_blocks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "tutorials" / "decide_for_real_users.md"
TARGET = DOCS / "pictures" / "decide_for_real_users.png"
LAST = "plt.show()"  # ends the block that draws


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    names: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in code_blocks(PAGE.read_text()):
                if block.language == "python":
                    exec(compile(block.text, PAGE.name, "exec"), names)
                    if LAST in block.text:
                        break
        finally:
            os.chdir(before)
    names["figure"].savefig(TARGET, dpi=150)
    print(f"written: {TARGET}")


if __name__ == "__main__":
    main()
