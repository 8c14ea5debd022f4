#!/usr/bin/env python3
"""Fails when cargo would compile a library twice: for the program and for build scripts.

The snapshot's build script needs deno_runtime, and so does the program. They share one
build only as long as features and profiles agree (Cargo.toml says how); without this
check a slip doubles the build time without a visible reason. Asks cargo for its unit graph,
which costs no compilation. Arguments go to cargo.
"""
import collections
import json
import os
import subprocess
import sys

graph = json.loads(
    subprocess.run(
        ["cargo", "build", "--workspace", "--unit-graph", "-Z", "unstable-options", *sys.argv[1:]],
        env={**os.environ, "RUSTC_BOOTSTRAP": "1"},
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
)

libraries = collections.defaultdict(list)
for unit in graph["units"]:
    target = unit["target"]
    if unit["mode"] == "build" and not {"bin", "custom-build"} & set(target["kind"]):
        libraries[unit["pkg_id"], target["name"]].append(unit)
twice = [(name, units) for (_, name), units in libraries.items() if len(units) > 1]

print(f"{sum(map(len, libraries.values()))} library units, {len(twice)} compiled twice")
for name, (first, second, *_) in twice[:20]:
    features = set(first["features"]) ^ set(second["features"])
    profile = {key for key in first["profile"] if first["profile"][key] != second["profile"][key]}
    print(f"  {name}: differs in features {sorted(features)}, profile {sorted(profile)}")
sys.exit(bool(twice))
