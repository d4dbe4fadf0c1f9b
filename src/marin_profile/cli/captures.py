"""`marin-profile captures`: which captures lie below a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from marin_profile.base.text import plural, size, visible
from marin_profile.cli.options import Verb, emit

if TYPE_CHECKING:
    from marin_profile.capture.sources import Capture, HostFile


@click.command(cls=Verb, epilog="Example: marin-profile captures runs")
@click.argument("folder", metavar="DIR")
def command(folder: str) -> None:
    """List the captures below a folder, the newest first: time, hosts, files, sizes.

    Nothing is summarized. A file in brackets is the fallback for the one before it.
    """
    from marin_profile.capture.sources import captures_in

    emit("".join(f"{line}\n" for line in _lines(captures_in(folder))), None)


def _lines(captures: Sequence[Capture]) -> Iterator[str]:
    for capture in reversed(captures):
        total = sum(file.size for host in capture.hosts for file in (host, *host.fallbacks))
        yield "  ".join(
            (
                visible(capture.stamp),
                _hosts(capture.hosts),
                size(total),
                visible(capture.root, None),
            )
        )
        for host in capture.hosts:
            fallbacks = "".join(f"  [{_file(file)}]" for file in host.fallbacks)
            yield f"  {visible(host.host)}: {_file(host)}{fallbacks}"
        if capture.skipped:
            yield f"  not read: {', '.join(visible(name) for name in capture.skipped)}"


def _hosts(hosts: Sequence[HostFile]) -> str:
    """Processes of one machine count as one host; hosts are all that most captures have."""
    machines = {host.machine or host.host for host in hosts}
    counted = plural(len(machines), "host")
    if len(machines) == len(hosts):
        return counted
    return f"{counted} ({plural(len(hosts), 'process', 'processes')})"


def _file(file: HostFile) -> str:
    return f"{visible(file.path.rsplit('/', 1)[-1])} {size(file.size)}"
