"""Where each real capture lies, and how the tests read it."""

from __future__ import annotations

from pathlib import Path

from marin_profile.capture.formats import format_ending
from marin_profile.capture.sources import resolve_path
from marin_profile.events.timeline import Timeline
from marin_profile.pipeline import SummarizeOptions, summarize_capture
from marin_profile.readers import read_timeline
from marin_profile.schema import DeviceLedger, ProfileSummary

V6E = "tpu_v6e_4dev/plugins/profile/2025_03_11_00_00_00"
VLLM_BEFORE = "tpu_vllm_serving/plugins/profile/2026_01_11_21_26_41"
VLLM_AFTER = "tpu_vllm_serving/plugins/profile/2026_01_12_00_26_20"
CPU8 = "cpu_8dev/plugins/profile/2026_11_27_20_31_00"
GPU_CONV = "gpu_mi300x_conv/plugins/profile/2025_10_01_00_00_00"
GPU_GEMM = "gpu_mi300x_gemm/plugins/profile/2025_10_01_00_00_00"
GPU_LEGACY = "gpu_mi300x_legacy/plugins/profile/2025_09_10_00_00_00"
GPU_GTX = "gpu_gtx1080ti/plugins/profile/2025_02_05_11_05_24"
CPU_HOST_ONLY = "cpu_host_only/plugins/profile/2025_05_15_16_04_13"


def summarize(path: Path, **options: object) -> ProfileSummary:
    """Summarise a capture folder or a single file."""
    capture, _ = resolve_path(str(path))
    return summarize_capture(capture, SummarizeOptions(**options))  # type: ignore[arg-type]


def read(path: Path) -> Timeline:
    file_format = format_ending(path.name)
    assert file_format is not None
    with path.open("rb") as stream:
        return read_timeline(stream, path=path.name, source_format=file_format.name)


def ledgers(summary: ProfileSummary, window: str) -> dict[str, DeviceLedger]:
    return {row.device: row for row in summary.device_ledger if row.window == window}


def terms(row: DeviceLedger) -> float:
    """The sum of the five terms, microseconds."""
    return (
        row.compute_duration
        + row.exposed_communication_duration
        + row.exposed_transfer_duration
        + row.unattributed_duration
        + row.idle_duration
    )


def share(part: float, row: DeviceLedger) -> float:
    """Per cent of the window, two decimals."""
    return round(100 * part / row.window_duration, 2)
