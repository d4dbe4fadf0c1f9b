"""Real captures masked: the same numbers, none of the secrets, and the summary that masking the
original's summary gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from marin_profile.redact import Redactor, capture_host_names, redact_capture, redact_summary
from marin_profile.schema import ProfileSummary
from real.captures import CPU8, GPU_CONV, GPU_GTX, GPU_LEGACY, V6E, VLLM_BEFORE, summarize

# What stands in a file, replaced by as many bytes of somebody's home, so that there is one.
PLANTED = {
    b"/workspace/": b"/home/caro/",
    b"/tmp/w/agent_peer/": b"/home/carol_ann/p/",
}
USERS = ("amandaliang_google_com", "avik-pal", "davelacey", "carol_ann")

FILES = [
    (CPU8, "cpu8.xplane.pb", (b"carol_ann", b"cpu8")),
    (CPU8, "cpu8.trace.json.gz", (b"cpu8",)),
    (V6E, "host0.xplane.pb", (b"davelacey", b"host0", b"_launcher")),
    (V6E, "host0.trace.json.gz", (b"davelacey", b"_launcher")),
    (VLLM_BEFORE, "t1v-n-9eb622fc-w-0.trace.json.gz", (b"amandaliang", b"9eb622fc")),
    (GPU_CONV, "tw003.xplane.pb", (b"/home/caro/", b"tw003", b"<module>")),
    (GPU_CONV, "tw003.trace.json.gz", (b"tw003",)),
    (GPU_GTX, "cyclops.xplane.pb", (b"avik-pal", b"cyclops")),
    (GPU_LEGACY, "mi300x.xplane.pb", (b"/home/caro/", b"mi300x", b"vultr")),
]


def unpacked(file: Path) -> bytes:
    content = file.read_bytes()
    return gzip.decompress(content) if file.suffix == ".gz" else content


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return [at for key in left for at in differences(left[key], right[key], f"{path}.{key}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return [at for index, (a, b) in pairs for at in differences(a, b, f"{path}[{index}]")]
    return [] if left == right else [path]


def plain(summary: ProfileSummary) -> Any:
    return json.loads(summary.to_json())


@pytest.mark.parametrize(("folder", "name", "secrets"), FILES)
def test_masked_files_give_the_same(traces, tmp_path, folder, name, secrets):
    original = tmp_path / "original" / folder / name
    original.parent.mkdir(parents=True)
    content = unpacked(traces / folder / name)
    for old, new in PLANTED.items():
        content = content.replace(old, new)
    original.write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    redactor = Redactor(users=USERS, hosts=tuple(capture_host_names([original])))

    (copy,) = redact_capture([original], tmp_path / "masked" / folder, redactor)
    masked = unpacked(copy)
    assert len(masked) == len(content)
    for secret in secrets:
        assert secret in content or secret.decode() in name
        assert secret not in masked
        assert secret.decode() not in copy.name

    before, after = summarize(original.parent), summarize(copy.parent)
    expected = redact_summary(before, redactor)
    differing = differences(plain(expected), plain(after))
    assert differing == [".hosts[0].sha256", ".trace_provenance.trace_sha256"]
    assert not any(secret.decode() in after.to_json() for secret in secrets)

    (again,) = redact_capture([copy], tmp_path / "again", redactor)
    assert (again.name, again.read_bytes()) == (copy.name, copy.read_bytes())
    assert redact_summary(after, redactor) == after


@pytest.mark.parametrize("folder", [CPU8, V6E, VLLM_BEFORE, GPU_CONV, GPU_GTX, GPU_LEGACY])
def test_names_of_ops_and_scopes_stay(traces, folder):
    """Of somebody whose names stand nowhere: only what is private whoever looks at it is masked."""
    summary = summarize(traces / folder)
    masked = redact_summary(summary, Redactor(users=("somebody",), hosts=("somewhere",)))

    def names(one: ProfileSummary) -> list[Any]:
        ops = [(op.name, op.canonical_name, op.tf_op_path, op.hlo_op) for op in one.hot_ops]
        groups = [(row.canonical_name, row.scope) for row in one.op_groups]
        return [ops, groups, [region.path for region in one.hierarchical_regions]]

    assert names(masked) == names(summary)
