"""Adds the generated pages to the site: the reference, the list of PyTorch's names, CONTRIBUTING and the changelog."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

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


def of_root(name: str) -> str:
    """A page of the repository's root, whose links go into docs/."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
