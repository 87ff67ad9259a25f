"""Checks the licences of the crates we build with, or writes those of the crates in the wheel: `licences.py [--write]`.

Every licence must be in `allow` of deny.toml, and THIRD-PARTY-LICENSES must have the crates that Cargo.lock has. `cargo deny
check` looks for advisories besides. No registry has it built, so only the workflow on the forge runs it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY-LICENSES"
PLATFORMS = "aarch64-apple-darwin aarch64-unknown-linux-gnu x86_64-pc-windows-msvc x86_64-unknown-linux-gnu".split()
IN_WHEEL = ["--no-default-features", "--features", "gradiron/python,gradiron/gpu"]
HEAD = """\
The library of gradiron is compiled from its own source, which is under the licence in LICENSE, and from these crates. `OR`
leaves the choice of one licence, MIT where it is among them. `scripts/licences.py --write` writes this file.
"""
LINE = "=" * 100


def metadata(*options: str) -> dict[str, Any]:
    """What cargo knows of all crates."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", *options]
    told: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return told


def crates_in_wheel(*platforms: str) -> list[dict[str, Any]]:
    """The crates of others whose code is in the library: neither macros nor what only builds or tests it."""
    told = metadata(*IN_WHEEL, *(word for platform in platforms for word in ("--filter-platform", platform)))
    packages = {package["id"]: package for package in told["packages"]}
    needs = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for node in told["resolve"]["nodes"]
    }
    found: dict[str, dict[str, Any]] = {}
    waiting = [told["resolve"]["root"]]
    while waiting:
        name = waiting.pop()
        if name not in found and not any("proc-macro" in target["kind"] for target in packages[name]["targets"]):
            found[name] = packages[name]
            waiting += needs[name]
    return sorted((crate for crate in found.values() if crate["source"]), key=lambda crate: (crate["name"], crate["version"]))


def texts(crate: dict[str, Any]) -> list[str]:
    """The texts that a crate's licence wants to see given away: of MIT alone, where that may be chosen."""
    folder, licence = Path(crate["manifest_path"]).parent, crate["license"]
    files = sorted(path for path in folder.iterdir() if re.match(r"licen[cs]e|copy|notice|unlicense", path.name, re.IGNORECASE))
    chosen = [path for path in files if "mit" in path.name.lower()]
    if chosen and "MIT" in licence:
        files = [path for path in files if path in chosen or re.match(r"notice|.*unicode", path.name, re.IGNORECASE)]
    return [re.sub(r"[ \t]+$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE).strip() for path in files]


def mit(holders: str) -> str:
    """The text of the MIT licence, for those who leave it out of what they publish."""
    own = (ROOT / "LICENSE").read_text(encoding="utf-8")
    return re.sub(r"^Copyright .*$", f"Copyright (c) {holders}", own, flags=re.MULTILINE).strip()


def written() -> str:
    """The file, for all platforms that wheels are built for."""
    crates = crates_in_wheel(*PLATFORMS)
    apache = next(text for crate in crates if crate["license"] == "Apache-2.0" for text in texts(crate))
    users = defaultdict(list)
    users[mit("The Rust Project Contributors")] = ["Rust's standard library"]
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        absent = apache if crate["license"] == "Apache-2.0" else mit(f"The authors of {crate['name']}")
        for text in texts(crate) or [absent]:
            users[text].append(name)
    lines = [
        f"{crate['name']} {crate['version']} ({crate['license']}) {crate['repository'] or ''}".rstrip() for crate in crates
    ]
    parts = [f"{LINE}\n{', '.join(names)}\n{LINE}\n\n{text}\n" for text, names in users.items()]
    return "\n".join([HEAD, "\n".join(lines), "", *parts])


def is_allowed(licence: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with what is allowed."""
    either = licence.replace("/", " OR ")
    terms = re.sub(r"\b(?!(?:AND|OR)\b)[\w.+-]+(?: WITH [\w.+-]+)?", lambda term: str(term[0] in allowed), either)
    return bool(eval(terms.replace("AND", "and").replace("OR", "or")))


def complaints() -> list[str]:
    """What is not allowed, and where the file differs from Cargo.lock."""
    host = re.search(
        r"^host: (.*)$", subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout, re.MULTILINE
    )
    assert host is not None
    allow = re.search(r"^allow = (\[[^]]*\])", (ROOT / "deny.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert allow is not None
    allowed = {*json.loads(allow[1])}
    found = [
        f"{crate['name']} {crate['version']} is under {crate['license']}, which deny.toml does not allow"
        for crate in metadata("--all-features", "--filter-platform", host[1])["packages"]
        if crate["source"] and not is_allowed(crate["license"] or "nothing", allowed)
    ]
    told = set(re.findall(r"^(\S+ \d\S*) \(", FILE.read_text(encoding="utf-8"), re.MULTILINE))
    locked = re.findall(r'^name = "(.*)"\nversion = "(.*)"$', (ROOT / "Cargo.lock").read_text(encoding="utf-8"), re.MULTILINE)
    here = {f"{crate['name']} {crate['version']}" for crate in crates_in_wheel(host[1])}
    found += [f"{FILE.name} has no {name}" for name in sorted(here - told)]
    found += [f"Cargo.lock has no {name}" for name in sorted(told - {" ".join(pair) for pair in locked})]
    return found


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(written(), encoding="utf-8")
    elif found := complaints():
        sys.exit("\n".join([*found, "`scripts/licences.py --write` writes the file anew."]))


if __name__ == "__main__":
    main()
