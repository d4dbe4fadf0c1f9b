"""What reading a file takes at least: programs that do a part of the work and keep nothing.

Usage: python scripts/bench_floors.py {read,unpack,skip,scan} FILE

`read` reads the bytes. `unpack` decompresses a .json.gz with igzip, a megabyte at a time. `skip`
decompresses it as a whole, and msgspec checks the JSON without making anything of it. `scan` reads
every field of every event of an .xplane.pb and of its statistics in a compiled loop, and adds up
the numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

PIECE = 1 << 20


def read(path: Path) -> None:
    buffer = bytearray(PIECE)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def unpack(path: Path) -> None:
    from isal import igzip

    buffer = bytearray(PIECE)
    with igzip.open(path, "rb") as file:
        while file.readinto(buffer):
            pass


def skip(path: Path) -> None:
    import msgspec
    from isal import igzip

    class Nothing(msgspec.Struct):
        pass

    # The last four bytes of a gzip file are its unpacked size, modulo 4 GiB.
    size = int.from_bytes(path.read_bytes()[-4:], "little")
    text = bytearray(size)
    with igzip.open(path, "rb") as file, memoryview(text) as view:
        filled = 0
        while count := file.readinto(view[filled : filled + PIECE]):
            filled += count
    msgspec.json.decode(text, type=Nothing)


def scan(path: Path) -> None:
    import numpy as np
    from bench_scan import total

    print(total(np.fromfile(path, np.uint8)))


FLOORS = {one.__name__: one for one in (read, unpack, skip, scan)}


if __name__ == "__main__":
    FLOORS[sys.argv[1]](Path(sys.argv[2]))
