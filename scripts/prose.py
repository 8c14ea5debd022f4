#!/usr/bin/env python3
"""Checks comments and docs: prints each line that breaks a rule of CONTRIBUTING.md, fails if there is one.

A comment is read alone, in an editor's hover or a search result, so it begins with its subject. A paragraph of
the docs has at most 600 characters; above that a list or a table says it better.
"""

import re
import subprocess
import sys

FRAGMENT = re.compile(
    r"^\s*(//[/!]?|/?\*\*?)\s+(Of|They|Those|The same|Its?|What|Who|Which|Whoever|Nobody|Anybody)\b"
)
PARTY = re.compile(r"^\s*(//|\*|/\*\*).*\b([Ww]hoever|[Aa]nybody|[Nn]obody)\b")
LONGEST_PARAGRAPH = 600


def tracked(*patterns: str) -> list[str]:
    # The checkout may belong to another user, as in containers of CI.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", *patterns]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return [path for path in found.stdout.split("\0") if path]


def lines_of(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def comments() -> list[str]:
    found = []
    for path in tracked("*.rs", "*.ts", "*.mjs", "*.mts"):
        for number, line in enumerate(lines_of(path), 1):
            if FRAGMENT.match(line):
                found.append(f"{path}:{number}: the comment has no subject of its own: {line.strip()}")
            elif PARTY.match(line):
                found.append(f"{path}:{number}: name the caller, the user or the extension: {line.strip()}")
    return found


def paragraphs() -> list[str]:
    found = []
    for path in tracked("README.md", "CONTRIBUTING.md", "docs/*.md"):
        code = False
        for number, line in enumerate(lines_of(path), 1):
            if line.lstrip().startswith("```"):
                code = not code
            if not code and not line.startswith("|") and len(line) > LONGEST_PARAGRAPH:
                found.append(f"{path}:{number}: a paragraph of {len(line)} characters; make it a list or a table")
    return found


problems = comments() + paragraphs()
print("\n".join(problems))
sys.exit(1 if problems else 0)
