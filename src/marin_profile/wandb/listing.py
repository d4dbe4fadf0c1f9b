"""A project of W&B, as `wandb:entity/project?key=value&...` names it -> its runs, and what each
one's row is made of.

Contract
* The newest MOST_RUNS that fit are taken, the oldest of them first; how many fit is told.
* What a run gives is one version of an artifact: its published summary, unless that was made of an
  older profile, else its newest profile. Nothing is downloaded to find out.
* A name is parsed before anybody is asked: UsageError for what is none. Listing raises
  NotFoundError where there is no such project, and RemoteError where the service fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any
from urllib.parse import unquote

from marin_profile.base.errors import UsageError
from marin_profile.base.text import visible
from marin_profile.schema import RunMetadata
from marin_profile.wandb.artifacts import CAPTURE_TYPE, SUMMARY_TYPE
from marin_profile.wandb.download import (
    Fetched,
    fetch,
    newest,
    published_elsewhere,
    reference_of,
    run_metadata,
)
from marin_profile.wandb.session import be_quiet, connect, remote_errors

PREFIX = "wandb:"
MOST_RUNS = 500
PAGE = 50
_CONFIG = "config."
_PLACE = re.compile(r"[^/\s?]+/[^/\s?]+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Project:
    """`filters` in the terms of Mongo, as W&B takes them."""

    path: str
    filters: Mapping[str, Any]


@dataclass(frozen=True)
class ListedRun:
    """`source`: the version of the artifact that a row is made of, and `digest` and `size` (bytes)
    of what it holds; "" and 0 where the run has none."""

    name: str
    path: str
    metadata: RunMetadata
    source: str = ""
    digest: str = ""
    size: int = 0


@dataclass(frozen=True)
class Listing:
    runs: tuple[ListedRun, ...]
    left_out: int


def project_of(text: str) -> Project:
    """`wandb:entity/project`, with `?key=value&...` for the runs that fit all of these."""
    place, mark, query = text.removeprefix(PREFIX).partition("?")
    if not _PLACE.fullmatch(place):
        raise UsageError(
            f"{visible(text, 200)} names no project; name it as wandb:entity/project, and runs of "
            "it as wandb:entity/project?state=finished&tag=NAME."
        )
    fitting = [_filter_of(pair, text) for pair in query.split("&")] if mark else []
    return Project(place, {"$and": fitting} if fitting else {})


def list_runs(project: Project) -> Listing:
    be_quiet()
    api = connect()
    with remote_errors(f"The project {project.path}"):
        found = api.runs(
            project.path,
            filters=dict(project.filters),
            order="-created_at",
            per_page=PAGE,
            lazy=False,
        )
        total = len(found)
        taken = list(islice(found, MOST_RUNS))
    runs = tuple(_listed(api, run) for run in reversed(taken))
    return Listing(runs, max(0, total - len(runs)))


def fetch_listed(run: ListedRun, *, trust_references: bool) -> Fetched:
    """What the row is made of, with the run's metadata. Raises what `fetch` raises."""
    be_quiet()
    if not run.source:
        return fetch(run_target=run.path, trust_references=trust_references)
    fetched = fetch(artifact=run.source, trust_references=trust_references)
    if fetched.summary is None:
        return fetched
    own = fetched.summary.run_metadata.model_dump(exclude_none=True)
    return Fetched(run.metadata.model_copy(update=own), summary=fetched.summary)


def _listed(api: Any, run: Any) -> ListedRun:
    path = "/".join(run.path)
    metadata = run_metadata(run)
    name = run.id if run.name in (None, "", run.id) else f"{run.name} ({run.id})"
    with remote_errors(f"The run {path}"):
        logged = [item for item in run.logged_artifacts() if item.state == "COMMITTED"]
        profile = newest(logged, CAPTURE_TYPE, None)
        summary = newest(logged, SUMMARY_TYPE, None) or published_elsewhere(api, run, None)
        if summary is not None and (profile is None or _is_of(summary, profile)):
            profile = summary
        if profile is None:
            return ListedRun(name, path, metadata)
        source, size = reference_of(profile), profile.size or 0
        return ListedRun(name, path, metadata, source, profile.digest, size)


def _is_of(summary: Any, profile: Any) -> bool:
    """Where a summary does not say what it was made of, the later one is taken."""
    made_of = summary.metadata.get("source_artifact_ref")
    if made_of:
        return bool(made_of == reference_of(profile))
    return bool(summary.created_at >= profile.created_at)


# Filters


def _filter_of(pair: str, text: str) -> dict[str, Any]:
    key, equals, value = (unquote(part) for part in pair.partition("="))
    if not equals or not key or not value:
        raise UsageError(
            f"{visible(pair, 200)!r} in {visible(text, 200)} is no filter; write key=value, and & "
            "between several."
        )
    if key.startswith(_CONFIG) and key != _CONFIG:
        return {key: _scalar(value)}
    if key not in _FILTERS:
        raise UsageError(
            f"Runs are not filtered by {visible(key, 200)!r}; the keys are "
            f"{', '.join(_FILTERS)} and config.KEY."
        )
    return _FILTERS[key](value)


def _created_after(day: str) -> dict[str, Any]:
    try:
        if not _DAY.fullmatch(day):
            raise ValueError(day)
        date.fromisoformat(day)
    except ValueError:
        raise UsageError(
            f"created_after={visible(day, 200)} is no date; write it as YYYY-MM-DD."
        ) from None
    return {"createdAt": {"$gte": f"{day}T00:00:00Z"}}


_FILTERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "state": lambda value: {"state": value},
    "tag": lambda value: {"tags": {"$in": [value]}},
    "group": lambda value: {"group": value},
    "display_name": lambda value: {"display_name": value},
    "created_after": _created_after,
}


def _scalar(text: str) -> Any:
    """A number, true, false, null or quoted text as in JSON; all else is text."""
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return text if isinstance(value, dict | list) else value
