#!/usr/bin/env python3
"""Installs the published extensions of tests/conformance with pi and with npm, and prints time and disk space.

Both get an empty folder and, unlike a second installation by npm, no cache. PI names the program, which is that of
a release build otherwise. Run it with nothing else running:

    cargo build --release
    python3 scripts/install_times.py
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PI = os.environ.get("PI", str(TARGET / "release/pi"))
RUNS = int(os.environ.get("RUNS", "3"))


def packages() -> list[str]:
    found = []
    for file in sorted((ROOT / "tests/conformance/scenarios").glob("*.json")):
        found += json.loads(file.read_text()).get("packages", [])
    return found


def size(folder: pathlib.Path) -> tuple[int, int]:
    """Files and kilobytes on the disk."""
    files = sum(len(names) for _, _, names in os.walk(folder))
    kilobytes = subprocess.run(["du", "-sk", folder], check=True, capture_output=True, text=True)
    return files, int(kilobytes.stdout.split()[0])


def measure(command: list[str], folder: pathlib.Path, environment: dict[str, str]) -> float:
    start = time.monotonic()
    subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True)
    return time.monotonic() - start


def run(package: str, by_npm: bool) -> tuple[float, int, int]:
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        environment = {**os.environ, "npm_config_cache": str(folder / "cache")}
        work = folder / "work"
        work.mkdir()
        if by_npm:
            (work / "package.json").write_text('{"private": true}')
            # The flags of the original, and no scripts.
            flags = ["--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"]
            command = ["npm", "install", package, *flags]
        else:
            environment["PI_CODING_AGENT_DIR"] = str(work)
            command = [PI, "install", f"npm:{package}"]
        seconds = measure(command, work, environment)
        return (seconds, *size(work))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    print("| package | pi: s | files | MB | npm: s | files | MB |")
    print("|---|---|---|---|---|---|---|")
    totals = [0.0] * 6
    for package in packages():
        row = []
        for by_npm in [False, True]:
            runs = [run(package, by_npm) for _ in range(RUNS)]
            seconds = statistics.median(it[0] for it in runs)
            row += [seconds, runs[0][1], runs[0][2] / 1000]
        totals = [total + value for total, value in zip(totals, row)]
        print(line(f"`{package}`", row), flush=True)
    print(line("all", totals))


def line(name: str, row: list[float]) -> str:
    cells = [f"{value:.1f}" if index % 3 != 1 else f"{value:.0f}" for index, value in enumerate(row)]
    return "| " + " | ".join([name, *cells]) + " |"


main()
