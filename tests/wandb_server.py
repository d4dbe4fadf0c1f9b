"""A W&B server on 127.0.0.1 for the unmodified wandb SDK: `with WandbServer() as server:`.

    environment = server.environment(private_folder)   # for a child process, or monkeypatch.setenv

Contract
* It holds runs (config, summary, history, state), artifacts (files, versions, aliases) and what a
  client needs to log in, and answers the GraphQL, file stream and storage requests of the SDK.
* An answer holds exactly the fields that the query selects, since the SDK checks answers strictly;
  a field that no node here has comes back as null and is noted in `unknown_fields`.
* What does not exist is null, as W&B has it. `requests` lists every request that was served, as
  "GET /storage/..." or "query Run"; `refuse` names operations that are answered with an error,
  `delay` ones that are answered after so many seconds, and with the one named by `down_at` the
  server stops answering anybody.

The parts from top to bottom: the state and its nodes, the operations, HTTP.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from wandb_graphql import Executor, Node, Parser

ENTITY = "loop"

# --- what the server knows, and its nodes ---------------------------------------------------------


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Run:
    id: str
    entity: str
    project: str
    name: str
    created: str = field(default_factory=_now)
    state: str = "running"
    values: Node = field(default_factory=dict)
    summary: str = "{}"
    history: list[str] = field(default_factory=list)


@dataclass
class Artifact:
    id: str
    entity: str
    project: str
    collection: str
    type: str
    version: int
    digest: str
    run: Run | None
    description: str | None
    metadata: str
    aliases: set[str]
    created: str = field(default_factory=_now)
    state: str = "PENDING"
    manifest_id: str = ""
    files: dict[str, str] = field(default_factory=dict)  # name -> storage path


@dataclass
class State:
    """All runs and artifacts, and the nodes that show them."""

    url: str = ""
    runs: list[Run] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)  # storage path -> content
    ids: int = 0

    def new_id(self, kind: str) -> str:
        self.ids += 1
        return f"{kind}-{self.ids}"

    def find_run(self, entity: str | None, project: str, name: str) -> Run | None:
        wanted = (entity or ENTITY, project, name)
        return next((r for r in self.runs if (r.entity, r.project, r.name) == wanted), None)

    def versions(self, entity: str | None, project: str, collection: str) -> list[Artifact]:
        """The artifacts of a collection, the newest first."""
        wanted = (entity or ENTITY, project, collection)
        found = (a for a in self.artifacts if (a.entity, a.project, a.collection) == wanted)
        return sorted(found, key=lambda artifact: -artifact.version)

    def find_artifact(self, entity: str | None, project: str, name: str) -> Artifact | None:
        collection, _, alias = name.partition(":")
        for artifact in self.versions(entity, project, collection):
            names = {*artifact.aliases, f"v{artifact.version}"}
            if artifact.state == "COMMITTED" and (alias or "latest") in names:
                return artifact
        return None

    def by_id(self, id: str) -> Artifact:
        return {artifact.id: artifact for artifact in self.artifacts}[id]

    def storage_url(self, path: str) -> str:
        return f"{self.url}/storage/{quote(path)}"

    # Nodes

    def entity(self, name: str | None = None) -> Node:
        return {"__typename": "Entity", "id": "e", "name": name or ENTITY, "organization": None}

    def user(self) -> Node:
        return {
            "__typename": "User",
            "id": "u",
            "name": ENTITY,
            "username": ENTITY,
            "entity": ENTITY,
            "email": "loop@localhost",
            "flags": "{}",
            "teams": _connection([self.entity()]),
        }

    def project(self, entity: str | None, name: str) -> Node | None:
        owner = entity or ENTITY
        members = [item for item in (*self.runs, *self.artifacts) if item.entity == owner]
        if not any(item.project == name for item in members):
            return None
        runs = [item for item in members if isinstance(item, Run) and item.project == name]

        def run_named(name: str, project: str = name) -> Node | None:
            return self.run(self.find_run(owner, project, name))

        def artifact_named(name: str, project: str = name) -> Artifact | None:
            return self.find_artifact(owner, project, name)

        return {
            "__typename": "Project",
            "id": f"project-{owner}-{name}",
            "internalId": f"project-{owner}-{name}",
            "name": name,
            "entity": self.entity(owner),
            "readOnly": False,
            "run": run_named,
            "runCount": lambda filters=None: len(_fitting(runs, filters)),
            "runs": self._page_of(runs),
            "artifact": lambda name: self.artifact(artifact_named(name)),
            "artifactCollectionMembership": lambda name: self.membership(artifact_named(name)),
            "artifactCollection": partial(self.collection, owner, name),
        }

    def _page_of(self, runs: list[Run]) -> Callable[..., Node]:
        """Cursors are the numbers of the runs."""

        def page(
            filters: str | None, after: str | None, first: int | None, order: str | None
        ) -> Node:
            assert order in ("-created_at", "+created_at"), order
            sign = order.startswith("-")
            found = sorted(_fitting(runs, filters), key=lambda run: run.created, reverse=sign)
            begin = int(after) if after else 0
            end = min(begin + (first or len(found)), len(found))
            connection = _connection([self.run(run) for run in found[begin:end]])
            for number, edge in enumerate(connection["edges"], begin + 1):
                edge["cursor"] = str(number)
            connection["pageInfo"] |= {"endCursor": str(end), "hasNextPage": end < len(found)}
            return connection

        return page

    def run(self, run: Run | None) -> Node | None:
        if run is None:
            return None
        fields = ("displayName", "description", "notes", "group", "jobType", "commit", "sweepName")
        return {
            "__typename": "Run",
            **{name: run.values.get(name) for name in fields},
            "id": run.id,
            "projectId": 1,
            "name": run.name,
            "tags": run.values.get("tags") or [],
            "config": run.values.get("config") or "{}",
            "summaryMetrics": run.summary,
            "systemMetrics": "{}",
            "state": run.state,
            "createdAt": run.created,
            "heartbeatAt": run.created,
            "readOnly": False,
            "historyKeys": {},
            "historyLineCount": len(run.history),
            "user": self.user(),
            "project": lambda: self.project(run.entity, run.project),
            "outputArtifacts": lambda **_: _connection(
                [self.artifact(artifact) for artifact in self.artifacts if artifact.run is run]
            ),
        }

    def collection(self, entity: str, project: str, name: str) -> Node | None:
        versions = self.versions(entity, project, name)
        if not versions:
            return None
        return {
            "__typename": "ArtifactSequence",
            "id": f"collection-{entity}-{project}-{name}",
            "name": name,
            "project": lambda: self.project(entity, project),
            "latestArtifact": lambda: self.artifact(versions[0]),
            "artifactMembership": lambda aliasName: self.membership(
                self.find_artifact(entity, project, f"{name}:{aliasName}")
            ),
        }

    def membership(self, artifact: Artifact | None) -> Node | None:
        node = self.artifact(artifact)
        if artifact is None or node is None:
            return None
        files = [
            {"__typename": "File", "name": name, "directUrl": self.storage_url(path)}
            for name, path in sorted(artifact.files.items())
        ]
        return {
            "__typename": "ArtifactCollectionMembership",
            "id": f"membership-{artifact.id}",
            "versionIndex": artifact.version,
            "createdAt": artifact.created,
            "aliases": node["aliases"],
            "artifact": node,
            "artifactCollection": node["artifactSequence"],
            "files": lambda **_: _connection(files),
        }

    def artifact(self, artifact: Artifact | None) -> Node | None:
        if artifact is None:
            return None
        place = artifact.entity, artifact.project, artifact.collection
        url = self.storage_url(f"manifest/{artifact.manifest_id}")
        manifest = {"__typename": "File", "directUrl": url}
        return {
            "__typename": "Artifact",
            "id": artifact.id,
            "digest": artifact.digest,
            "commitHash": artifact.digest,
            "state": artifact.state,
            "createdAt": artifact.created,
            "updatedAt": artifact.created,
            "description": artifact.description,
            "metadata": artifact.metadata,
            "size": sum(len(self.stored.get(path, b"")) for path in artifact.files.values()),
            "fileCount": len(artifact.files),
            "versionIndex": artifact.version,
            "ttlDurationSeconds": -2,
            "ttlIsInherited": True,
            "historyStep": None,
            "tags": [],
            "aliases": [
                {
                    "__typename": "ArtifactAlias",
                    "id": f"alias-{alias}",
                    "alias": alias,
                    "artifactCollection": partial(self.collection, *place),
                }
                for alias in sorted(artifact.aliases)
            ],
            "artifactType": {"__typename": "ArtifactType", "name": artifact.type},
            "artifactSequence": partial(self.collection, *place),
            "currentManifest": {"__typename": "ArtifactManifest", "file": manifest},
            "createdBy": lambda: self.run(artifact.run),
        }


def _fitting(runs: list[Run], filters: str | None) -> list[Run]:
    wanted = json.loads(filters or "{}")
    return [run for run in runs if _fits(run, wanted)]


def _fits(run: Run, wanted: Node) -> bool:
    """As much of Mongo's language as is asked for here; what is unknown is a KeyError."""
    return all(
        all(_fits(run, part) for part in condition)
        if key == "$and"
        else _is_met(_value_of(run, key), condition)
        for key, condition in wanted.items()
    )


def _value_of(run: Run, key: str) -> Any:
    if key.startswith("config."):
        config = json.loads(run.values.get("config") or "{}")
        value = config.get(key.split(".")[1], {}).get("value")
        for part in key.split(".")[2:]:
            value = value.get(part) if isinstance(value, dict) else None
        return value
    values = {
        "state": run.state,
        "tags": run.values.get("tags") or [],
        "group": run.values.get("groupName"),
        "display_name": run.values.get("displayName"),
        "createdAt": run.created,
    }
    return values[key]


def _is_met(value: Any, condition: Any) -> bool:
    if not isinstance(condition, dict):
        return bool(value == condition)
    ((operator, operand),) = condition.items()
    if operator == "$in":
        return any(one in operand for one in (value if isinstance(value, list) else [value]))
    return {"$gte": lambda: value >= operand}[operator]()


def _connection(nodes: list[Any]) -> Node:
    return {
        "__typename": "Connection",
        "totalCount": len(nodes),
        "pageInfo": {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False},
        "edges": [{"__typename": "Edge", "node": node, "cursor": ""} for node in nodes],
    }


# --- operations -----------------------------------------------------------------------------------


class Operations:
    """What a document's outermost fields do."""

    def __init__(self, state: State) -> None:
        self._state = state

    def root(self) -> Node:
        state = self._state
        info = {"__typename": "ServerInfo", "features": []}
        return {
            "__typename": "Root",
            "viewer": state.user,
            "serverInfo": lambda: info,
            "entity": state.entity,
            "project": lambda name, entityName=None: state.project(entityName, name),
            "artifact": lambda id: state.artifact(state.by_id(id)),
            "upsertBucket": self._upsert_run,
            "createArtifact": self._create_artifact,
            "createArtifactManifest": self._create_manifest,
            "createArtifactFiles": self._create_files,
            "commitArtifact": self._commit,
            "createRunFiles": self._create_run_files,
        }

    def _upsert_run(self, input: Node) -> Node:
        place = input.get("entityName") or ENTITY, input.get("modelName") or "uncategorized"
        run = self._state.find_run(*place, input["name"])
        is_new = run is None
        if run is None:
            run = Run(self._state.new_id("run"), *place, input["name"])
            self._state.runs.append(run)
        run.values |= {key: value for key, value in input.items() if value is not None}
        run.summary = input.get("summaryMetrics") or run.summary
        bucket = self._state.run(run)
        return {"__typename": "Payload", "bucket": bucket, "inserted": is_new}

    def _create_artifact(self, input: Node) -> Node:
        state = self._state
        entity = input.get("entityName") or ENTITY
        project, collection = input["projectName"], input["artifactCollectionName"]
        versions = state.versions(entity, project, collection)
        aliases = {item["alias"] for item in input.get("aliases") or []}
        same = [a for a in versions if a.digest == input["digest"] and a.state == "COMMITTED"]
        artifact = same[0] if same else None
        if artifact is None:
            artifact = Artifact(
                id=state.new_id("artifact"),
                entity=entity,
                project=project,
                collection=collection,
                type=input["artifactTypeName"],
                version=len(versions),
                digest=input["digest"],
                run=state.find_run(entity, project, input.get("runName") or ""),
                description=input.get("description"),
                metadata=input.get("metadata") or "{}",
                aliases=set(),
            )
            state.artifacts.append(artifact)
        for other in versions:
            other.aliases -= aliases
        artifact.aliases |= aliases
        return {"__typename": "CreateArtifactPayload", "artifact": state.artifact(artifact)}

    def _create_manifest(self, input: Node) -> Node:
        artifact = self._state.by_id(input["artifactID"])
        artifact.manifest_id = artifact.manifest_id or self._state.new_id("manifest")
        url = self._state.storage_url(f"manifest/{artifact.manifest_id}")
        file = {"__typename": "File", "id": "f", "uploadUrl": url, "uploadHeaders": []}
        manifest = {"__typename": "ArtifactManifest", "id": artifact.manifest_id, "file": file}
        return {"__typename": "Payload", "artifactManifest": manifest}

    def _create_files(self, input: Node) -> Node:
        nodes = []
        for wanted in input["artifactFiles"]:
            artifact = self._state.by_id(wanted["artifactID"])
            path = f"artifact/{self._state.new_id('file')}"
            artifact.files[wanted["name"]] = path
            nodes.append(
                {
                    "__typename": "File",
                    "storagePath": path,
                    "uploadUrl": self._state.storage_url(path),
                    "uploadHeaders": [],
                    "uploadMultipartUrls": None,
                    "artifact": {"__typename": "Artifact", "id": artifact.id},
                }
            )
        return {"__typename": "Payload", "files": _connection(nodes)}

    def _commit(self, input: Node) -> Node:
        artifact = self._state.by_id(input["artifactID"])
        artifact.state = "COMMITTED"
        return {"__typename": "Payload", "artifact": self._state.artifact(artifact)}

    def _create_run_files(self, input: Node) -> Node:
        place = f"runfile/{input['entityName'] or ENTITY}/{input['projectName']}/{input['runName']}"
        urls = {name: self._state.storage_url(f"{place}/{name}") for name in input["files"]}
        files = [
            {"__typename": "File", "name": name, "uploadUrl": url} for name, url in urls.items()
        ]
        return {"__typename": "Payload", "runID": "run", "uploadHeaders": [], "files": files}


# --- HTTP -----------------------------------------------------------------------------------------


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that hangs up is no error of the server."""


class WandbServer:
    """The server; as a context manager it serves until the end of the block."""

    def __init__(self) -> None:
        self.state = State()
        self.requests: list[str] = []
        self.refuse: set[str] = set()
        self.delay: dict[str, float] = {}
        self.down_at: str | None = None
        self.is_down = False
        self.unknown_fields: set[str] = set()
        self._lock = threading.RLock()
        self._http = _Http(("127.0.0.1", 0), _handler_of(self))
        self.url = self.state.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> WandbServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def environment(self, folder: Path) -> dict[str, str]:
        """Variables that lead the SDK here and keep everything it writes below `folder`."""
        kinds = ("DIR", "DATA_DIR", "CACHE_DIR", "CONFIG_DIR", "ARTIFACT_DIR")
        places = {f"WANDB_{kind}": str(folder / kind.lower()) for kind in kinds}
        for place in places.values():
            Path(place).mkdir(parents=True, exist_ok=True)
        return {
            **places,
            "WANDB_BASE_URL": self.url,
            "WANDB_API_KEY": "0" * 40,
            "WANDB_ERROR_REPORTING": "false",
            "NETRC": str(folder / "netrc"),
            "NO_PROXY": "127.0.0.1",
        }

    def answer(self, body: Node) -> Node:
        """The answer to one GraphQL request."""
        document = Parser(body["query"])
        operation = document.operations[0]
        time.sleep(self.delay.get(operation.name, 0))
        self.is_down = self.is_down or operation.name == self.down_at
        with self._lock:
            self.requests.append(f"{operation.kind} {operation.name}")
            if operation.name in self.refuse:
                return {"errors": [{"message": f"{operation.name} is refused"}], "data": None}
            variables = operation.defaults | (body.get("variables") or {})
            executor = Executor(document, variables, self.unknown_fields)
            root = Operations(self.state).root()
            try:
                return {"data": executor.select(root, operation.selections)}
            except (KeyError, TypeError) as error:
                return {"errors": [{"message": f"{operation.name}: {error!r}"}], "data": None}

    def stream(self, path: str, body: Node) -> None:
        """Take a piece of a run's file stream: history, summary, the end."""
        run = self.state.find_run(*unquote(path).split("/")[2:5])
        if run is None:
            return
        files = body.get("files") or {}
        run.history += files.get("wandb-history.jsonl", {}).get("content", [])
        run.summary = files.get("wandb-summary.json", {}).get("content", [run.summary])[-1]
        if body.get("complete"):
            run.state = "failed" if body.get("exitcode") else "finished"


def _handler_of(server: WandbServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def parse_request(self) -> bool:
            return super().parse_request() and not server.is_down

        def do_POST(self) -> None:
            body, path = self._body(), urlsplit(self.path).path
            if path == "/graphql":
                self._send(200, json.dumps(server.answer(json.loads(body))).encode())
            elif path.endswith("/file_stream"):
                server.stream(path, json.loads(body))
                self._send(200, b"{}")
            else:
                self._send(404)

        def do_PUT(self) -> None:
            body = self._body()
            server.requests.append(f"PUT {self.path}")
            server.state.stored[self._storage_path()] = body
            self._send(200)

        def do_GET(self) -> None:
            server.requests.append(f"GET {self.path}")
            content = server.state.stored.get(self._storage_path())
            if content is None:
                self._send(404)
            else:
                self._send(200, content)

        def _storage_path(self) -> str:
            return unquote(urlsplit(self.path).path).removeprefix("/storage/")

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                body = b"".join(iter(self._chunk, b""))
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_zipped = self.headers.get("Content-Encoding") == "gzip"
            return gzip.decompress(body) if is_zipped else body

        def _chunk(self) -> bytes:
            chunk = self.rfile.read(int(self.rfile.readline().split(b";")[0], 16))
            self.rfile.readline()
            return chunk

        def _send(self, code: int, body: bytes = b"{}") -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
