"""The protocol: tools listed and called over stdin and stdout.

Contract: stdout carries messages alone. What a client can cause is a tool's error of one sentence;
a defect is one too, and its traceback goes to stderr.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool

from marin_profile.base.errors import ProfileError
from marin_profile.base.text import visible
from marin_profile.mcp.tools import TOOLS, Service, Tool
from marin_profile.version import package_version

INSTRUCTIONS = (
    "Profiles of JAX training runs: where the step time goes, and whether a change helped. List "
    "the captures, take the first advice, change one thing, take a new profile, compare both. "
    "Numbers have the units in `units`; what is not there is not known, and is not zero."
)
LONGEST_ERROR = 600
READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def server_of(service: Service) -> Server[Any]:
    """The server of these captures; calls are worked on one after the other."""
    one_at_a_time = anyio.Lock()

    async def list_tools(
        context: object, parameters: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(tool) for tool in TOOLS])

    async def call_tool(context: object, parameters: CallToolRequestParams) -> CallToolResult:
        async with one_at_a_time:
            return await anyio.to_thread.run_sync(
                _called, service, parameters.name, parameters.arguments or {}
            )

    return Server(
        "marin-profile",
        version=package_version(),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(service: Service) -> None:
    """Serve until stdin ends."""

    async def run() -> None:
        server = server_of(service)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def _listed(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=READ_ONLY,
    )


def _called(service: Service, name: str, arguments: dict[str, Any]) -> CallToolResult:
    try:
        return _result(service.call(name, arguments))
    except ProfileError as error:
        return _result(service.roots.hidden(str(error).replace("\n", " ")), is_error=True)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return _result(f"{type(error).__name__}: this is a defect of marin-profile.", is_error=True)


def _result(text: str, *, is_error: bool = False) -> CallToolResult:
    shown = visible(text, LONGEST_ERROR) if is_error else text
    return CallToolResult(content=[TextContent(type="text", text=shown)], is_error=is_error)
