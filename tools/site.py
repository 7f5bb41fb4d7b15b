"""What `mkdocs build` adds to the pages in docs/: changelog, notebooks, Markdown, llms.txt."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from tools.publish.notebooks import notebook_of

ROOT = Path(__file__).parents[1]

_pages: list[Page] = []  # in the order of the navigation


GENERATED = ("reference/policies", "reference/environments")  # folders with a page for each name


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the pages of all policies and environments below their indexes."""
    for section in config.nav:
        for pages in section.values():
            pages[:] = [with_pages_of(entry) for entry in pages]
    return config


def with_pages_of(entry: Any) -> Any:
    for folder in GENERATED:
        if entry == f"{folder}/README.md":
            pages = sorted((ROOT / "docs" / folder).glob("[a-z]*.md"))
            names = [{page.stem: f"{folder}/{page.name}"} for page in pages]
            return {Path(folder).name.capitalize(): [entry, *names]}
    return entry


def is_tutorial(file: File) -> bool:
    return file.src_uri.startswith("tutorials/") and file.name != "index"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page in [*files.documentation_pages()]:
        if is_tutorial(page):
            target = page.src_uri.removesuffix(".md") + ".ipynb"
            files.append(File.generated(config, target, content=notebook_of(page.content_string)))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        files.append(File.generated(config, name.lower(), content=from_root(name)))
    return files


def from_root(name: str) -> str:
    """A page of the repository, with its links as they are from the site."""
    text = (ROOT / name).read_text().replace("](docs/", "](")
    for other in ("CHANGELOG.md", "CONTRIBUTING.md"):
        text = text.replace(f"]({other}", f"]({other.lower()}")
    return text


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    _pages[:] = nav.pages
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.startswith(GENERATED) and page.file.name != "index":
        page.meta["search"] = {"boost": 4}  # who looks for a policy wants its page first
    if page.file.src_uri.startswith("evidence/"):
        page.meta["search"] = {"boost": 0.2}  # long tables that name everything
    if is_tutorial(page.file):
        notebook = f"{Path(page.file.src_uri).stem}.ipynb"
        heading, _, rest = markdown.partition("\n")
        markdown = f"{heading}\n\n[Download this page as a notebook]({notebook})\n{rest}"
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Pages as Markdown, and a list of them, for language models (llmstxt.org)."""
    site = Path(config.site_dir)
    lines = [f"# {config.site_name}\n", f"> {config.site_description}\n"]
    section = ""
    for page in _pages:
        top = page.ancestors[-1].title if page.ancestors else ""
        if top != section:
            lines.append(f"\n## {top}\n")
            section = top
        text, target = page.markdown or "", page.file.src_uri
        (site / target).write_text(text)
        if re.search(r"^:::", text, re.MULTILINE):  # made from the source: only HTML has it all
            target = page.url
        lines.append(f"- [{page.title}]({target})")
    (site / "llms.txt").write_text("\n".join(lines) + "\n")
