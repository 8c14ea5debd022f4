#!/usr/bin/env python3
"""Checks the subjects of commits: `area: imperative summary`, at most 72 characters (CONTRIBUTING.md).

Checks the range given as an argument, or all commits since the rule was introduced. A shallow clone
without that commit has nothing to check.
"""

import re
import subprocess
import sys

# The last commit before the rule.
BEFORE_THE_RULE = "bc14eefc33"
LONGEST_SUBJECT = 72
# `area` names a folder, a crate or a part of the program; several are separated by commas.
SUBJECT = re.compile(r"[a-z0-9_./-]+(, [a-z0-9_./-]+)*: \S.*[^.]$")
# A summary says what the commit does ("add"), not what was done ("added") or is done ("adds").
NOT_IMPERATIVE = re.compile(r": (\w+ed|\w+ing|adds|fixes|makes|moves|removes|renames|uses) ", re.IGNORECASE)
EXCEPTIONS = {"embed", "feed", "need", "seed", "speed", "bring", "ring", "string"}


def git(*arguments: str) -> subprocess.CompletedProcess:
    # The checkout may belong to another user, as in containers of CI.
    return subprocess.run(["git", "-c", "safe.directory=*", *arguments], capture_output=True, text=True)


def commits() -> list[str]:
    if len(sys.argv) > 1:
        range_ = [sys.argv[1]]
    elif git("cat-file", "-e", BEFORE_THE_RULE + "^{commit}").returncode == 0:
        range_ = [BEFORE_THE_RULE + "..HEAD"]
    else:
        print(f"the history since {BEFORE_THE_RULE} is not here, so no commit is checked")
        return []
    log = git("log", "--no-merges", "--format=%h %s", *range_)
    if log.returncode != 0:
        sys.exit(log.stderr)
    return log.stdout.splitlines()


def problem(subject: str) -> str | None:
    if len(subject) > LONGEST_SUBJECT:
        return f"{len(subject)} characters, at most {LONGEST_SUBJECT}"
    if not SUBJECT.match(subject):
        return "not of the form `area: imperative summary`, without a full stop"
    word = NOT_IMPERATIVE.search(subject)
    if word and word.group(1).lower() not in EXCEPTIONS:
        return f"`{word.group(1)}` is not imperative"
    return None


found = 0
for line in commits():
    hash_, subject = line.split(" ", 1)
    why = problem(subject)
    if why:
        found += 1
        print(f"{hash_}: {why}: {subject}")
sys.exit(1 if found else 0)
