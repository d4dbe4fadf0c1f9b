"""Names and metadata of the published artifacts: the same through every tracker.

Contract: imports no tracker; the metadata are plain JSON values, None where the summary has none.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from marin_profile.facts.step_time import typical_and_mean
from marin_profile.schema import ProfileSummary

CAPTURE_TYPE = "jax_profile"
SUMMARY_TYPE = "profile_summary"
MOST_CHARACTERS = 128  # that W&B takes in an artifact's name
_DIGEST_DIGITS = 10


def summary_artifact_name(run_id: str) -> str:
    """The name under which a run's summaries are kept; what W&B refuses in names becomes "-"."""
    return _fitting("profile-summary-", run_id, "")


def capture_artifact_name(run_id: str) -> str:
    """The name that Levanter gave a run's captures."""
    return _fitting("run-", run_id, "-profiler")


def _fitting(before: str, run_id: str, after: str) -> str:
    """A name that W&B takes. Of a run id that is too long the beginning stays, with a hash of the
    whole, so that no two runs share a name."""
    allowed = re.sub(r"[^\w.-]", "-", run_id, flags=re.ASCII)
    room = MOST_CHARACTERS - len(before) - len(after)
    if len(allowed) > room:
        digest = hashlib.sha256(run_id.encode()).hexdigest()[:_DIGEST_DIGITS]
        allowed = f"{allowed[: room - len(digest) - 1]}-{digest}"
    return f"{before}{allowed}{after}"


def artifact_metadata(summary: ProfileSummary) -> dict[str, Any]:
    """What a list of artifacts can show without a download; microseconds and shares."""
    run, shares = summary.run_metadata, summary.time_breakdown
    steady = summary.step_time.steady_state_steps
    length = typical_and_mean(summary)
    slow = summary.step_time.outlier_causes[0] if summary.step_time.outlier_causes else None
    gap = summary.gap_before_ops[0] if summary.gap_before_ops else None
    return {
        "schema_version": summary.schema_version,
        "generated_at_utc": summary.generated_at_utc,
        "source_format": summary.source_format,
        "source_path": summary.source_path,
        "run_path": run.run_path,
        "run_id": run.run_id,
        "source_artifact_ref": run.artifact_ref,
        "hardware_type": run.hardware_type,
        "mesh_or_topology": run.mesh_or_topology,
        "git_sha": run.git_sha,
        "config_hash": run.config_hash,
        "num_devices": run.num_devices,
        "num_hosts": run.num_hosts,
        "step_median": steady.median,
        "step_p90": steady.p90,
        "num_steps": steady.count,
        "step_typical": length.typical if length else None,
        "step_mean": length.mean if length else None,
        "num_outlier_steps": len(summary.step_time.outliers),
        "top_outlier_cause": slow.cause if slow else None,
        "top_outlier_cause_name": slow.cause_name or slow.before_op if slow else None,
        "top_outlier_excess": slow.total_excess if slow else None,
        "compute_share": shares.compute.share_of_total,
        "communication_share": shares.communication.share_of_total,
        "host_share": shares.host.share_of_total,
        "stall_share": shares.stall.share_of_total,
        "other_share": shares.other.share_of_total,
        "top_pre_gap_op": gap.name if gap else None,
        "top_pre_gap_total": gap.total_gap_duration if gap else None,
        "num_hot_ops": len(summary.hot_ops),
        "num_hierarchical_regions": len(summary.hierarchical_regions),
        "num_gap_region_contexts": len(summary.gap_region_contexts),
    }
