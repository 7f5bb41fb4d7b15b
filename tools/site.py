"""What `mkdocs build` adds to the pages in docs/: the changelog, notebooks and llms.txt."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tools.publish.notebooks import notebook_of

ROOT = Path(__file__).parents[1]
TUTORIALS = "tutorials/"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page in [*files.documentation_pages()]:
        if page.src_uri.startswith(TUTORIALS) and page.name != "index":
            target = page.src_uri.removesuffix(".md") + ".ipynb"
            files.append(File.generated(config, target, content=notebook_of(page.content_string)))
    files.append(File.generated(config, "changelog.md", content=changelog()))
    return files


def changelog() -> str:
    """As in the repository, with links from here."""
    return (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
