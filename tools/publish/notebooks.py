"""Tutorials as notebooks, made from their pages: prose becomes text, what a reader runs, cells."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.publish.page_blocks import Block, split


def notebook_of(page: str) -> str:
    cells = [cell_of(block) for block in split(page)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # random unless given
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.writes(new_notebook(cells=cells, metadata={"kernelspec": kernel})) + "\n"


def cell_of(block: Block) -> nbformat.NotebookNode:
    if block.language and block.file:
        return new_code_cell(f"%%writefile {block.file}\n{block.text}".rstrip())
    if block.language == "python":
        return new_code_cell(block.text.rstrip())
    if block.language == "sh":
        return new_code_cell(f"%%sh\n{block.text}".rstrip())
    if block.language:
        return new_markdown_cell(f"```{block.language}\n{block.text}```")
    return new_markdown_cell(block.text.strip())
