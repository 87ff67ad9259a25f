"""Adds the generated pages to the site: the reference, the list of PyTorch's names, CONTRIBUTING and the changelog."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from missing import comparison
from public import ROOT
from reference import Reference

GENERATED: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    reference = Reference()
    GENERATED.update(reference.pages())
    if reference.without:
        raise PluginError(f"public names without a docstring: {', '.join(reference.without)}")
    GENERATED["coming-from-pytorch.md"] = comparison()
    GENERATED["contributing.md"] = of_root("CONTRIBUTING.md")
    GENERATED["changelog.md"] = of_root("CHANGELOG.md")
    for part in config.nav or []:
        if "Reference" in part:
            part["Reference"] = reference.navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in GENERATED.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """No page may tell where it was built."""
    for folder in (str(ROOT), str(Path(os.__file__).parent)):
        if folder in output:
            raise PluginError(f"{page.file.src_uri} tells of {folder}")


def of_root(name: str) -> str:
    """A page of the repository's root, whose links go into docs/."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
