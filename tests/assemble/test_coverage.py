"""What a reader must know first."""

from __future__ import annotations

from builders_xspace import Space, summary_of


def test_of_impossible_ops_the_longest_is_the_example():
    """At 1 TFLOP/s 10 ** 9 flops take 1 ms."""
    space = Space()
    tpu = space.tpu(0, peak_teraflops_per_second=1.0, peak_hbm_bw_gigabytes_per_second=1.0)
    tpu.op("add.9", 0, 500, flops=1_000, bytes_accessed=1, category="loop fusion")
    for at, (name, length) in enumerate((("dot.1", 10), ("dot.2", 30), ("dot.3", 20))):
        tpu.op(name, 500 + 50 * at, length, flops=10**9, bytes_accessed=1, category="convolution")
    (found,) = [
        note
        for note in summary_of(space.analyse()).trace_overview.quality_warnings
        if "exceed" in note
    ]
    assert found.startswith("3 ops would exceed the device's peaks (for example dot.2): ")
