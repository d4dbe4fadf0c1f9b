"""Looks for secrets in the files that git tracks: `python scripts/check_secrets.py [FILE...]`.

Private keys, tokens in the known forms of services, passwords in URLs, and long random-looking
texts that are given to a name like `api_key`. Needs no network. Exits 1 and names each place, never
the secret. A line that only looks like one says why it is none: `# no secret: ...`.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

EXEMPT = "# no secret: "
LARGEST = 5_000_000  # bytes; larger files hold data
SHORTEST_VALUE, LEAST_ENTROPY = 20, 3.0  # characters; bits per character
KINDS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY"),
    "an AWS key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}\b"),
    "a Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    "a PyPI token": re.compile(r"\bpypi-[A-Za-z0-9_-]{50,}"),
    "an OpenAI or Anthropic key": re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"),
    "a password in a URL": re.compile(r"\b[a-z][a-z0-9+]*://[^\s/:@{}<>$]+:[^\s/:@{}<>$]{3,}@"),
}
ASSIGNED = re.compile(
    r"(?:(?:api|access|secret|private)[_-]?key|token|secret|passw(?:or)?d)\w*"
    rf"""["']?\s*[:=]\s*["']?([A-Za-z0-9+/_-]{{{SHORTEST_VALUE},}})""",
    re.IGNORECASE,
)


def secrets_in(text: str) -> Iterator[tuple[int, str]]:
    """(line number, kind) of what looks like a secret."""
    for number, line in enumerate(text.splitlines(), start=1):
        if EXEMPT in line:
            continue
        yield from ((number, kind) for kind, pattern in KINDS.items() if pattern.search(line))
        if any(_looks_random(found[1]) for found in ASSIGNED.finditer(line)):
            yield number, "a value of a secret's name"


def _looks_random(value: str) -> bool:
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return entropy >= LEAST_ENTROPY and any(c.isdigit() for c in value) and not value.isdigit()


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout
    return [Path(name) for name in listed.decode().split("\0") if name]


def main(names: list[str]) -> int:
    found = [
        f"{path}:{number}: looks like {kind}"
        for path in (map(Path, names) if names else tracked())
        if path.is_file() and path.stat().st_size <= LARGEST
        for number, kind in secrets_in(path.read_text(errors="replace"))
    ]
    print("\n".join([*found, f"Found {len(found)}." if found else "No secrets found."]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
