"""What each crate occupies in the library, by its symbols: `sizes.py target/release/libgradiron.so`.

Build it with `CARGO_PROFILE_RELEASE_STRIP=false`; the wheel holds the same, packed to about half.
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys

STANDARD = {"core", "alloc", "std"}


def crate_of(symbol: str) -> str:
    """The first crate that a demangled name mentions beside the standard library's."""
    crates = [name for name in re.findall(r"(?<![:\w])([a-z_][a-z0-9_]*)::", symbol) if name not in STANDARD]
    return crates[0] if crates else "std"


def main(library: str) -> None:
    listing = subprocess.run(["nm", "-S", "-C", library], capture_output=True, text=True, check=True).stdout
    totals: collections.Counter[str] = collections.Counter()
    for line in listing.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and len(parts[0]) == len(parts[1]) == 16:
            totals[crate_of(parts[3])] += int(parts[1], 16)
    for crate, size in totals.most_common(30):
        print(f"{size / 1024:9.1f} KiB  {crate}")
    print(f"{sum(totals.values()) / 1024:9.1f} KiB  in all")


if __name__ == "__main__":
    main(sys.argv[1])
