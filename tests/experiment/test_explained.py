"""What changed between two captures, programs included; and what is left of it without them."""

from __future__ import annotations

from pathlib import Path

from builders_programs import AFTER, BEFORE, PLAIN, WITH_COPY, leave
from marin_profile.documents import markdown
from marin_profile.documents.model import Document
from marin_profile.experiment.explained import explained
from marin_profile.reports.hlo import hlo_answer


def test_the_newest_captures_below_two_folders(tmp_path: Path) -> None:
    leave(tmp_path / "before", BEFORE, PLAIN)
    leave(tmp_path / "after", AFTER, WITH_COPY, period=115)
    found = explained(str(tmp_path / "before"), str(tmp_path / "after"), warmup_steps=1)
    assert found is not None
    assert found.hlo is not None
    assert [row.kind for row in found.hlo.differences] == ["layout_copy"]
    told = markdown.render(Document("Answer", tuple(hlo_answer(found)), ()))
    assert "XLA: +10.00 us in `mlp`: f32" in told


def test_captures_that_are_gone(tmp_path: Path) -> None:
    leave(tmp_path / "before", BEFORE, PLAIN)
    assert explained(str(tmp_path / "before"), str(tmp_path / "gone"), warmup_steps=1) is None


def test_captures_that_cannot_be_read(tmp_path: Path) -> None:
    leave(tmp_path / "before", BEFORE, PLAIN)
    broken = leave(tmp_path / "broken", AFTER, WITH_COPY)
    (path,) = broken.rglob("*.xplane.pb")
    path.write_bytes(b"no protobuf")
    assert explained(str(tmp_path / "before"), str(broken), warmup_steps=1) is None
