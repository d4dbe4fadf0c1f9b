"""A host's part goes to bytes and back without a change, and what is none is refused."""

from pathlib import Path

import numpy as np
import pytest

from builders_capture import leave_capture
from builders_xspace import STAMP, Space
from marin_profile.capture.sources import Capture, resolve
from marin_profile.pipeline import SummarizeOptions, read_host, summarize_capture
from marin_profile.pipeline.host_parts import HostRead, decode_host, encode_host

MADE = {"tool_version": "1.2", "warmup_steps": 1}


def read(folder: Path) -> tuple[Capture, HostRead]:
    capture, _ = resolve(profile_dir=str(folder))
    (host_file,) = capture.hosts
    return capture, read_host(host_file, SummarizeOptions())


def there_and_back(found: HostRead) -> HostRead:
    data = encode_host(found, **MADE)
    back = decode_host(data, **MADE)
    assert encode_host(back, **MADE) == data
    return back


def test_a_part_gives_the_summary_of_its_file(tmp_path):
    leave_capture(tmp_path)
    capture, found = read(tmp_path)
    back = there_and_back(found)
    assert isinstance(back.part.steps.start, np.ndarray)
    assert back.part.steps.start.dtype == np.int64
    known = {capture.hosts[0].path: back}
    assert summarize_capture(capture, known=known) == summarize_capture(capture)


def test_parts_of_real_captures(traces):
    for name in ("tpu_v6e_4dev", "cpu_8dev", "gpu_mi300x_conv"):
        capture, found = read(traces / name)
        known = {capture.hosts[0].path: there_and_back(found)}
        assert summarize_capture(capture, known=known) == summarize_capture(capture), name


def test_the_causes_of_slow_steps_survive(tmp_path):
    """Step 9 of twenty takes 500 us more."""
    space = Space()
    tpu = space.tpu(0)
    for step in range(20):
        tpu.step(step, 1_000 * step + (500 if step > 9 else 0), 990)
        tpu.op("fusion.1", 1_000 * step + (500 if step > 9 else 0), 600)
    space.write(tmp_path / "plugins/profile" / STAMP / "host-0.xplane.pb")
    capture, found = read(tmp_path)
    back = there_and_back(found)
    assert list(back.part.slow_steps) == [9]
    assert back.part.slow_steps == found.part.slow_steps
    known = {capture.hosts[0].path: back}
    summary = summarize_capture(capture, known=known)
    assert summary == summarize_capture(capture)
    assert [one.cause for one in summary.step_time.outliers] == ["gap"]


def test_program_ids_of_64_bits_survive(tmp_path):
    leave_capture(tmp_path)
    _, found = read(tmp_path)
    large = 2**64 - 5
    object.__setattr__(found.part.ops[0], "program_id", large)
    assert there_and_back(found).part.ops[0].program_id == large


@pytest.mark.parametrize("damage", [b"", b"\x81\xa1a", b"no part", bytes(100)])
def test_damage_is_refused(damage):
    with pytest.raises(ValueError, match="no host part"):
        decode_host(damage, **MADE)


def test_a_cut_part_is_refused_wherever_it_is_cut(tmp_path):
    leave_capture(tmp_path)
    _, found = read(tmp_path)
    data = encode_host(found, **MADE)
    for length in range(0, len(data) - 1, 37):
        with pytest.raises(ValueError, match="no host part"):
            decode_host(data[:length], **MADE)


@pytest.mark.parametrize("other", [{"tool_version": "1.3"}, {"warmup_steps": 2}])
def test_a_part_made_otherwise_is_refused(tmp_path, other):
    leave_capture(tmp_path)
    _, found = read(tmp_path)
    with pytest.raises(ValueError, match="another version"):
        decode_host(encode_host(found, **MADE), **(MADE | other))
