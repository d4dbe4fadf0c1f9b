"""The check that `make lint` makes: what looks like a secret is found, and what does not is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/check_secrets.py"
RANDOM = "q7Zt9" + "Lw2xVb4" + "Rn8kPc3"


def checked(path: Path) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-----BEGIN RSA " + "PRIVATE KEY-----", "a private key"),
        ("AKIA" + "Q7ZT9LW2XVB4RN8K", "an AWS key"),
        ("ghp_" + 2 * RANDOM, "a GitHub token"),
        ("hf_" + 2 * RANDOM, "a Hugging Face token"),
        ("https://me:" + "hunter22@host/x", "a password in a URL"),
        ("WANDB_API_KEY=" + 2 * RANDOM, "a value of a secret's name"),
        ('"client_secret": "' + RANDOM + RANDOM + '"', "a value of a secret's name"),
    ],
)
def test_what_looks_like_a_secret(tmp_path: Path, line: str, kind: str) -> None:
    path = tmp_path / "file"
    path.write_text(f"first\n  {line}\n{line}  # no secret: an example\n")
    code, said = checked(path)
    assert (code, said) == (1, [f"{path}:2: looks like {kind}", "Found 1."])
    assert RANDOM not in "".join(said)


def test_what_is_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(
        "api_key = os.environ['WANDB_API_KEY']\n"
        "num_tokens = 12345678901234567890123\n"
        "password=xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
        "https://user@host/x {scheme}://{user}:{password}@{host}\n"
    )
    assert checked(path) == (0, ["No secrets found."])
