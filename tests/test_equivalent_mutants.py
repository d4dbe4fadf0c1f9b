"""The list of mutants that mean the same as the code speaks of the code as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_listed_line_is_there_and_has_a_reason():
    listed = tomllib.loads((ROOT / "tests" / "equivalent_mutants.toml").read_text())["mutant"]
    assert listed
    for row in listed:
        code = (ROOT / "src" / "marin_profile" / row["file"]).read_text()
        lines = "\n".join(line.strip() for line in code.splitlines())
        assert row["was"] in lines, f"{row['file']} no longer holds {row['was']!r}"
        assert row["becomes"] != row["was"]
        assert row["reason"]
    assert len({(row["file"], row["was"], row["becomes"]) for row in listed}) == len(listed)
