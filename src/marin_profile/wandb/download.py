"""A W&B artifact or run -> a folder with a capture (or a published summary), and run metadata.

Contract
* A run gives its newest profile artifact (`jax_profile`), else the profiler folder that its config
  names, else its published summary (`profile_summary`). With an alias, only artifacts that carry
  it count.
* A download goes to `<entity>/<project>/<name>-v<N>` below the download root, whole or not at all.
  One that is there and matches the artifact's manifest, file by file, is not repeated.
* An artifact that only refers to a folder gives that folder: nothing is downloaded. Whoever may log
  to the project may refer to any place, in an artifact or in a run's config: those outside object
  stores, as folders of this machine, are not looked at unless `trust_references`.
* `metadata` holds what the run recorded; None for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marin_profile.base.config_hash import config_hash
from marin_profile.base.durable import new_folder, sweep
from marin_profile.base.errors import BrokenInputError, NotFoundError, ProfileError, UsageError
from marin_profile.base.progress import doing
from marin_profile.base.storage import user_cache
from marin_profile.base.text import visible
from marin_profile.capture.filenames import SUMMARY_FILE
from marin_profile.capture.formats import FORMATS
from marin_profile.schema import ProfileSummary, RunMetadata, load_summary
from marin_profile.wandb.artifacts import (
    CAPTURE_TYPE,
    SUMMARY_TYPE,
    summary_artifact_name,
)
from marin_profile.wandb.names import WandbTarget, artifact_target, run_target_of
from marin_profile.wandb.session import connect, remote_errors

_PROFILER_FOLDER = "profiler"
_OBJECT_STORES = ("gs://", "gcs://", "s3://", "az://", "abfs://", "abfss://")
_FILE_SUFFIXES = (*(ending for one in FORMATS for ending in one.endings), ".gz", ".md")


@dataclass(frozen=True)
class _Downloads:
    """Where they go, and whether artifacts and configs may refer to any place."""

    root: Path
    trust_references: bool


@dataclass(frozen=True)
class Fetched:
    """`folder` holds the capture (a local path or a URL), or `summary` is what the run published;
    `notes`: the choices that were made, and why."""

    metadata: RunMetadata
    folder: str | None = None
    summary: ProfileSummary | None = None
    notes: tuple[str, ...] = ()


def fetch(
    *,
    artifact: str | None = None,
    run_target: str | None = None,
    entity: str | None = None,
    project: str | None = None,
    alias: str | None = None,
    download_root: str | None = None,
    trust_references: bool = False,
) -> Fetched:
    """Fetch what `artifact` or `run_target` (exactly one) names.

    Raises UsageError, NotFoundError, BrokenInputError or RemoteError.
    """
    if (artifact is None) == (run_target is None):
        raise UsageError("Name exactly one W&B source: an artifact or a run.")
    downloads = _Downloads(Path(download_root or default_root()), trust_references)
    if artifact is not None:
        target = artifact_target(artifact, entity=entity, project=project, alias=alias)
        return _fetch_artifact(target, downloads)
    target = run_target_of(run_target or "", entity=entity, project=project)
    return _fetch_run(target, alias, downloads)


def with_metadata(summary: ProfileSummary, metadata: RunMetadata) -> ProfileSummary:
    """The summary with the run's metadata; what the run did not record stays as it is."""
    return summary.with_run(metadata.model_dump(exclude_none=True))


# Artifacts


def _fetch_artifact(target: WandbTarget, downloads: _Downloads) -> Fetched:
    api = connect()
    artifact = _find_artifact(api, target)
    if artifact.type == SUMMARY_TYPE:
        note = f"The summary {reference_of(artifact)} is taken as it was published."
        return Fetched(RunMetadata(), summary=_published(artifact, downloads), notes=(note,))
    if artifact.type != CAPTURE_TYPE:
        raise NotFoundError(
            f"{target.path} is an artifact of type {artifact.type!r}, but a profile is of type "
            f"{CAPTURE_TYPE!r}; name another, or the run with --run-target."
        )
    with remote_errors(f"The run of {target.path}"):
        run = artifact.logged_by()
    return _capture(artifact, run, downloads)


def _find_artifact(api: Any, target: WandbTarget) -> Any:
    with remote_errors(f"The artifact {target.path}"):
        return api.artifact(target.path)


def _capture(artifact: Any, run: Any | None, downloads: _Downloads) -> Fetched:
    folder, note = _contents(artifact, downloads)
    known = run_metadata(run) if run is not None else RunMetadata()
    artifact_fields = {"artifact_ref": reference_of(artifact), "artifact_name": _version(artifact)}
    return Fetched(known.model_copy(update=artifact_fields), folder=folder, notes=(note,))


def _published(artifact: Any, downloads: _Downloads) -> ProfileSummary:
    folder, _ = _contents(artifact, downloads)
    names = [name for name in artifact.manifest.entries if name.endswith(".json")]
    name = SUMMARY_FILE if SUMMARY_FILE in names else next(iter(sorted(names)), None)
    if name is None:
        raise BrokenInputError(
            f"{reference_of(artifact)} holds no summary; publish one with 'marin-profile publish'."
        )
    return load_summary(f"{folder}/{name}")


def _version(artifact: Any) -> str:
    return f"{artifact.name.split(':')[0]}:{artifact.version}"


def reference_of(artifact: Any) -> str:
    """The name of exactly this version: an alias may move on."""
    return f"{artifact.entity}/{artifact.project}/{_version(artifact)}"


# Downloads


def default_root() -> str:
    return str(user_cache("wandb"))


def _contents(artifact: Any, downloads: _Downloads) -> tuple[str, str]:
    """The folder with the artifact's files, and a note on where they came from."""
    reference = reference_of(artifact)
    with remote_errors(f"The artifact {reference}"):
        entries = dict(artifact.manifest.entries)
        climbing = climbing_path(entries)
        if climbing is not None:
            raise BrokenInputError(
                f"{reference} holds {visible(climbing, 200)}, which leads out of its folder; it is "
                "not downloaded."
            )
        references = {path: entry.ref for path, entry in entries.items()}
        doubtful = doubtful_reference(references.values())
        if doubtful is not None and not downloads.trust_references:
            raise UsageError(
                f"{reference} refers to {visible(doubtful, 200)}, which is in no object store; if "
                "you trust whoever logged it, add --trust-references."
            )
        referred = referred_folder(references)
        if referred is not None:
            return referred, f"{reference} refers to {referred}, which is read where it lies."
        name = _version(artifact).replace(":", "-")
        folder = downloads.root / artifact.entity / artifact.project / name
        sweep(folder.parent)
        if _is_whole(artifact, folder):
            return str(folder), f"{reference} was downloaded before: {folder}."
        _download(artifact, folder)
    return str(folder), f"{reference} was downloaded to {folder}."


def climbing_path(paths: Iterable[str]) -> str | None:
    """The first path that leads out of a folder it is put in, if there is any."""
    for path in paths:
        parts = path.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in path:
            return path
    return None


def doubtful_reference(references: Iterable[str | None]) -> str | None:
    """The first one to a place outside object stores, if there is any; "::" chains file systems."""
    for reference in references:
        if reference is not None and (
            not reference.lower().startswith(_OBJECT_STORES) or "::" in reference
        ):
            return reference
    return None


def referred_folder(references: Mapping[str, str | None]) -> str | None:
    """The one folder that all entries (path -> reference) refer to, if there is one; a lone entry
    may be the folder itself."""
    folders = set()
    for path, reference in references.items():
        if reference is None:
            return None
        is_file = len(references) > 1 or path.endswith(_FILE_SUFFIXES)
        folders.add(str(reference).removesuffix(f"/{path}" if is_file else "/"))
    return folders.pop() if len(folders) == 1 else None


def _is_whole(artifact: Any, folder: Path) -> bool:
    if not folder.is_dir():
        return False
    try:
        artifact.verify(str(folder))
    except (ValueError, OSError):
        return False
    return True


def _download(artifact: Any, folder: Path) -> None:
    """Download, check, and put into its place, unless a whole one is there meanwhile: others may
    read that."""
    size = sum(entry.size or 0 for entry in artifact.manifest.entries.values())
    with new_folder(folder, unless=lambda: _is_whole(artifact, folder)) as new:
        doing(f"downloading {reference_of(artifact)}", size=size, look=lambda: _bytes_below(new))
        artifact.download(root=str(new), skip_cache=True)
        if not _is_whole(artifact, new):
            raise BrokenInputError(
                f"{reference_of(artifact)} does not match its own manifest; log it again."
            )


def _bytes_below(folder: Path) -> int:
    """What has come; files come and go meanwhile."""
    total = 0
    with suppress(OSError):
        for path in folder.rglob("*"):
            total += path.stat().st_size if path.is_file() else 0
    return total


# Runs


def _fetch_run(target: WandbTarget, alias: str | None, downloads: _Downloads) -> Fetched:
    api = connect(target.base_url)
    with remote_errors(f"The run {target.path}"):
        run = api.run(target.path)
        logged = [item for item in run.logged_artifacts() if item.state == "COMMITTED"]
    capture = newest(logged, CAPTURE_TYPE, alias)
    if capture is not None:
        return _capture(capture, run, downloads)
    looked: list[str] = [f"no {CAPTURE_TYPE} artifact" + (f" with alias {alias}" if alias else "")]
    folder = None if alias else _profiler_folder(run, downloads.trust_references, looked)
    if folder is not None:
        note = f"The run logged no profile; its profiler folder {folder} is read where it lies."
        return Fetched(run_metadata(run), folder=folder, notes=(note,))
    published = newest(logged, SUMMARY_TYPE, alias) or published_elsewhere(api, run, alias)
    if published is None:
        raise NotFoundError(
            f"The run {target.path} has {', '.join((*looked, 'no published summary'))}; "
            "name the profile's folder with --profile-dir."
        )
    return _known_summary(published, run, downloads, looked)


def _known_summary(
    artifact: Any, run: Any, downloads: _Downloads, looked: Sequence[str]
) -> Fetched:
    """A published summary, with the metadata that it lacks and the run has."""
    summary = _published(artifact, downloads)
    own = summary.run_metadata.model_dump(exclude_none=True)
    note = (
        f"The run has no profile that can be read here ({', '.join(looked)}); its summary "
        f"{reference_of(artifact)} is taken as it was published."
    )
    metadata = run_metadata(run).model_copy(update=own)
    return Fetched(metadata, summary=summary, notes=(note,))


def newest(artifacts: Iterable[Any], kind: str, alias: str | None) -> Any | None:
    fitting = [
        item
        for item in artifacts
        if item.type == kind and (alias is None or alias in (item.version, *item.aliases))
    ]
    return max(fitting, key=lambda item: (item.created_at, int(item.version[1:])), default=None)


def published_elsewhere(api: Any, run: Any, alias: str | None) -> Any | None:
    """A summary of the run that another run, such as `publish`, logged under the run's name."""
    entity, project, run_id = run.path
    name = f"{summary_artifact_name(run_id)}:{alias or 'latest'}"
    try:
        artifact = _find_artifact(api, WandbTarget(entity, project, name))
    except NotFoundError:
        return None
    return artifact if artifact.type == SUMMARY_TYPE else None


def _profiler_folder(run: Any, is_trusted: bool, looked: list[str]) -> str | None:
    """The profiler folder that the run's config names, if it may be read, can be reached and holds
    a capture."""
    from marin_profile.capture.sources import find_captures

    trainer = run.config.get("trainer")
    trainer = trainer if isinstance(trainer, Mapping) else {}
    log_dir = trainer.get("log_dir")
    if not isinstance(log_dir, str) or not log_dir:
        looked.append("no trainer.log_dir in its config")
        return None
    folder = f"{log_dir.rstrip('/')}/{trainer.get('id') or run.id}/{_PROFILER_FOLDER}"
    if not is_trusted and doubtful_reference([folder]) is not None:
        looked.append(
            f"a profiler folder in no object store, {visible(folder, 200)}, which is read only "
            "with --trust-references"
        )
        return None
    try:
        if find_captures(folder):
            return folder
    except ProfileError as error:
        looked.append(f"no profiler folder within reach ({str(error).rstrip('.')})")
    else:
        looked.append(f"no capture in {folder}")
    return None


def run_metadata(run: Any) -> RunMetadata:
    """The metadata in the run's config and summary."""
    with remote_errors("The run"):
        config, summary = dict(run.config), dict(run.summary)
        commit = getattr(run, "commit", None)
        run_path, run_id = "/".join(run.path), run.id
    return RunMetadata(
        run_path=run_path,
        run_id=run_id,
        hardware_type=_text(summary, "throughput/device_kind", "device_kind")
        or _text(config, "device_kind"),
        mesh_or_topology=_topology(config.get("trainer")),
        git_sha=_text(config, "git_commit", "git_sha") or _text({"commit": commit}, "commit"),
        config_hash=_text(summary, "profile/config_hash") or config_hash(config),
        num_devices=_count("num_devices", summary, config),
        num_hosts=_count("num_hosts", summary, config),
    )


def _topology(trainer: Any) -> str | None:
    """The topology in the trainer's resources, else its mesh's axes by name: "data=-1,model=2"."""
    if not isinstance(trainer, Mapping):
        return None
    resources, mesh = trainer.get("resources"), trainer.get("mesh")
    named = resources if isinstance(resources, Mapping) else {}
    axes = mesh.get("axes") if isinstance(mesh, Mapping) else None
    shown = (
        ",".join(f"{k}={v}" for k, v in sorted(axes.items())) if isinstance(axes, Mapping) else None
    )
    return _text(named, "topology", "tpu_topology", "mesh_shape") or shown or None


def _text(mapping: Mapping[str, Any], *keys: str) -> str | None:
    return next((v for k in keys if isinstance(v := mapping.get(k), str) and v), None)


def _count(key: str, *mappings: Mapping[str, Any]) -> int | None:
    for mapping in mappings:
        value = mapping.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
            return int(value)
    return None
