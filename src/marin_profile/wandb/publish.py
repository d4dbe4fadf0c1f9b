"""A summary and its report -> a W&B artifact of type `profile_summary`.

Contract
* The artifact holds the two files under fixed names, and `artifact_metadata`. Both are redacted
  unless `redact` is off, which uploads them byte for byte.
* The upload is a run of its own: the run that was profiled stays as it is.
* A dry run needs no account and uploads nothing. Offline, the artifact is kept in the run's folder
  and `wandb sync` uploads it later. Online, `publish` returns when W&B has the artifact, else it
  raises RemoteError, at the latest UPLOAD_SECONDS and FINISH_SECONDS after the login.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from marin_profile.base.errors import UsageError
from marin_profile.base.storage import open_file
from marin_profile.capture.filenames import REPORT_FILE, SUMMARY_FILE
from marin_profile.redact import Redactor, redact_summary
from marin_profile.schema import ProfileSummary, load_summary
from marin_profile.wandb.artifacts import (
    SUMMARY_TYPE,
    artifact_metadata,
    summary_artifact_name,
)
from marin_profile.wandb.session import load_wandb, remote_errors, request_seconds
from marin_profile.wandb.upload import Upload, log_artifacts

UPLOAD_SECONDS = 120
FINISH_SECONDS = 30
_JOB_TYPE = "profile-summary-publish"


def publish(
    summary_path: str,
    report_path: str | None = None,
    *,
    aliases: Sequence[str] = (),
    entity: str | None = None,
    project: str | None = None,
    artifact_name: str | None = None,
    dry_run: bool = False,
    redact: bool = True,
) -> dict[str, Any]:
    """Publish, and report the outcome: `status` is "published", "offline" or "dry_run".

    Entity and project default to those of the run that was profiled, then to $WANDB_ENTITY and
    $WANDB_PROJECT. Raises UsageError, NotFoundError, BrokenInputError or RemoteError.
    """
    summary = load_summary(summary_path)
    redactor = Redactor.here(host.host for host in summary.hosts) if redact else None
    if redactor is not None:
        summary = redact_summary(summary, redactor)
    own_entity, own_project = _place_of(summary)
    project = project or own_project or os.environ.get("WANDB_PROJECT")
    if not project:
        raise UsageError("The summary names no run, so name the W&B project with --project.")
    entity = entity or own_entity or os.environ.get("WANDB_ENTITY")
    paths = {SUMMARY_FILE: summary_path} | ({REPORT_FILE: report_path} if report_path else {})
    upload = Upload(
        name=artifact_name or _default_name(summary),
        type=SUMMARY_TYPE,
        metadata=artifact_metadata(summary),
        files=_contents(paths, summary, redactor),
        aliases=tuple(dict.fromkeys(("latest", *aliases))),
    )
    outcome = {"status": "dry_run"} if dry_run else _send(upload, entity, project)
    return {
        "entity": entity,
        "project": project,
        "artifact_name": upload.name,
        "artifact_type": upload.type,
        "aliases": upload.aliases,
        "files": paths,
        "metadata": upload.metadata,
        "redacted": redact,
    } | outcome


def _place_of(summary: ProfileSummary) -> tuple[str | None, str | None]:
    parts = (summary.run_metadata.run_path or "").split("/")
    return (parts[0], parts[1]) if len(parts) == 3 else (None, None)


def _default_name(summary: ProfileSummary) -> str:
    """After the run; without one after the trace, so that the same profile has the same name."""
    name = summary.run_metadata.run_id or (summary.trace_provenance.trace_sha256 or "")[:12]
    if not name:
        raise UsageError("The summary names no run, so name the artifact with --artifact-name.")
    return summary_artifact_name(name)


def _contents(
    paths: Mapping[str, str], summary: ProfileSummary, redactor: Redactor | None
) -> dict[str, bytes]:
    contents = {name: _read(path) for name, path in paths.items()}
    if redactor is None:
        return contents
    masked = {name: redactor.bytes(content) for name, content in contents.items()}
    return masked | {SUMMARY_FILE: summary.to_json().encode()}


def _read(path: str) -> bytes:
    with open_file(path) as stream:
        return stream.read()


def _send(upload: Upload, entity: str | None, project: str) -> dict[str, Any]:
    wandb = load_wandb()
    with remote_errors(f"The artifact {upload.name}", looked_up=False):
        run = wandb.init(
            entity=entity,
            project=project,
            job_type=_JOB_TYPE,
            name=f"publish-{upload.name}",
            reinit="create_new",
            settings=_settings(wandb),
        )
        if run.disabled:
            raise UsageError(
                "W&B is switched off here (WANDB_MODE=disabled), so nothing is published."
            )
        try:
            (logged,) = list(log_artifacts(run, [upload], seconds=UPLOAD_SECONDS))
            outcome = _outcome(run, logged)
        except BaseException:  # as its own `with` does, which also prints the traceback
            with suppress(Exception):  # the first error explains more
                run.finish(exit_code=1)
            raise
        run.finish()
    return outcome


def _outcome(run: Any, logged: Any) -> dict[str, Any]:
    if run.offline:
        return {"status": "offline", "sync_with": f"wandb sync {os.path.dirname(run.dir)}"}
    reference = f"{logged.entity}/{logged.project}/{logged.name.split(':')[0]}:{logged.version}"
    return {
        "status": "published",
        "entity": logged.entity,
        "artifact_ref": reference,
        "url": run.url,
    }


def _settings(wandb: Any) -> Any:
    """A short run that looks at nothing around it and ends in time, even where W&B does not."""
    wanted = {
        "console": "off",
        "disable_code": True,
        "disable_git": True,
        "disable_job_creation": True,
        "x_disable_stats": True,
        "init_timeout": float(request_seconds()),
        "finish_timeout": float(FINISH_SECONDS),
        "finish_timeout_raises": True,
    }
    known = wandb.Settings.model_fields  # older SDKs lack some
    return wandb.Settings(**{key: value for key, value in wanted.items() if key in known})
