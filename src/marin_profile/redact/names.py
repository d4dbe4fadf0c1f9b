"""The names to mask, and how a text or its bytes are masked.

Contract
* A mask has as many bytes as what it hides; `text` and `bytes` agree.
* User and host names are masked as whole words only, in upper or lower case: letters, digits, "_"
  and everything beyond ASCII are part of a word. Below `/home`, `/nethome` and `/Users`, wherever
  they stand and however their slashes are written (`//`, `\\/`, `\\u002f`, `%2f`, backslashes), the
  next folder is masked, and `/root` where a path starts.
* Of a domain what follows a host that is known, and that of a known host wherever it stands; e-mail
  addresses; values of keys, tokens and passwords (`WANDB_API_KEY=...`).
* Hosts that differ stay different and in order, see `host_masks`.
* Serialized MLIR in base64 (kernels of Pallas carry file names there) is masked whole.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from marin_profile.capture.formats import host_suffixes
from marin_profile.redact.words import is_common_word

Raw = bytes

MASK = b"x"

# A slash as JSON and URLs may write it, and that of Windows; several are one.
_SLASH = rb"(?:/|\\/|\\u002f|%2f|\\){1,4}"
_HOME_PARENTS = (b"home", b"users")
_HOME_NAME = (
    rb"""(?:[^\s/"'\\<>:;,|()\[\]{}=%\x00-\x20\x7f]|=(?!>)|%(?!2f)|\\u(?!002f)[0-9a-f]{4})+"""
)
_GENERAL_HOME = re.compile(
    _SLASH + rb"(?:home|nethome|users)" + _SLASH + rb"(" + _HOME_NAME + rb")", re.IGNORECASE
)
_ROOT_HOME = b"/root"
_BEFORE_A_PATH = re.compile(rb"[\w.)\]\-/\x80-\xff]")
# "ML\xefR" in base64: how serialized MLIR starts.
_MLIR = b"TUzv"
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]*")
_WORD = re.compile(rb"[\w\x80-\xff]")
_ESCAPES = b"nrtbf"
# Around an "@", which is looked for first: a pattern that starts with any letter is slow.
_MAILBOX = re.compile(rb"[\w.%+\-\x80-\xff]{0,63}[\w\x80-\xff]\Z")
_LONGEST_MAILBOX = 64
_MAIL_DOMAIN = re.compile(rb"(?:[A-Za-z0-9\-]+\.)+(?!(?:py|cc|cpp|h|so)\b)[A-Za-z]{2,}(?!\w)")
_SECRET_WORDS = (b"key", b"token", b"secret", b"password")
# The value has a letter and eight characters or more: `token=128` is a count.
_SECRET_VALUE = re.compile(
    rb"""\\?["']?\s?[=:]\s?\\?["']?((?=[^a-z\s"'\\,;&]*[a-z])[\w.+/\-]{8,}=*)""",
    re.IGNORECASE,
)
_BEFORE_KEY = re.compile(rb"(?:api|access|secret|private)[_\-]?\Z")
_LONGEST_BEFORE_KEY = len(b"private_")
_DOMAIN = re.compile(rb"(?:\.[A-Za-z0-9\-]+){2,}")
_SIGNS = re.compile(rb"[^@.\-\"\\]")
_DIRECT_HOME = re.compile(r"/(?:home|Users|users)/[^/]+$|/root$")
_SHORTEST_HOME = 4

_HOST_PART = re.compile(r"[A-Za-z0-9_]+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Redactor:
    """Home folders, users and hosts to mask; folders below `/home` and the like always are."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @staticmethod
    def here(host_names: Iterable[str] = ()) -> Redactor:
        """This user's home folder and name, this machine's name, and the given hosts' names.

        Asks no name service: a domain is known only if a name given has one."""
        homes = {folder.rstrip("/") for folder in _home_folders()}
        direct = (os.path.basename(home) for home in homes if _DIRECT_HOME.fullmatch(home))
        users = {*_user_names(), *direct}
        hosts = {socket.gethostname(), os.environ.get("HOSTNAME", ""), *host_names}
        return Redactor(
            homes=tuple(sorted(home for home in homes if len(home) >= _SHORTEST_HOME)),
            users=tuple(sorted(name for name in users if not is_common_word(name))),
            hosts=tuple(sorted(name for name in hosts if name and not is_common_word(name))),
        )

    def text(self, text: str) -> str:
        raw = _raw(text)
        masked = self.bytes(raw)
        return text if masked is raw else masked.decode("utf-8", "surrogatepass")

    def bytes(self, data: Raw) -> Raw:
        """`data` itself if there is nothing to mask."""
        lowered = data.lower()
        if not any(needle in lowered for needle in self.needles):
            return data
        masked = bytearray(data)
        for home in self._homes:
            for found in home.finditer(Raw(masked)):
                for at in range(1, len(found.groups()) + 1):
                    _hide(masked, found.span(at))
        for found in _GENERAL_HOME.finditer(Raw(masked)):
            _hide(masked, found.span(1))
        for span in (*_secrets(masked), *_root_homes(masked), *_mlir(masked)):
            _hide(masked, span)
        for at, end in _addresses(masked):
            masked[at:end] = _SIGNS.sub(MASK, masked[at:end])
        for literal, mask, is_host in self._word_masks:
            _replace_words(masked, literal, mask, with_domain=is_host)
        return data if masked == data else Raw(masked)

    def file_name(self, name: str) -> str:
        """A file's name (no folder) masked; the suffix of its format stays."""
        suffix = next((suffix for suffix in host_suffixes() if name.endswith(suffix)), "")
        stem = name[: len(name) - len(suffix)]
        return self.text(stem) + suffix

    @cached_property
    def needles(self) -> tuple[Raw, ...]:
        """Where none of these stands, in lower case, there is nothing to mask."""
        literals = [literal for literal, _, _ in self._word_masks]
        last = [home.rpartition("/")[2] for home in self.homes]
        folders = [literal.lower() for name in last for literal in _spellings(name)]
        secrets = [
            word + sign for word in _SECRET_WORDS for sign in (b"=", b":", b'"', b"'", b"\\")
        ]
        fixed = (*_HOME_PARENTS, _ROOT_HOME, _MLIR.lower(), b"@", *secrets)
        return tuple(dict.fromkeys((*fixed, *folders, *literals)))

    @cached_property
    def _homes(self) -> tuple[re.Pattern[Raw], ...]:
        """Homes that the general rule does not cover, the longest first; each folder is a group."""
        homes = [home for home in self.homes if not _DIRECT_HOME.fullmatch(home)]
        found = []
        for home in sorted(homes, key=lambda home: (-len(home), home)):
            folders = [_either(part) for part in home.split("/") if part]
            path = b"".join(_SLASH + b"(" + one + b")" for one in folders)
            found.append(re.compile(path + rb"(?![\w\x80-\xff])", re.IGNORECASE))
        return tuple(found)

    @cached_property
    def _word_masks(self) -> tuple[tuple[Raw, Raw, bool], ...]:
        """(word in lower case, mask, is a host): hosts before users, longer ones first."""
        hosts = {_raw(name).lower(): _raw(mask) for name, mask in host_masks(self.hosts).items()}
        users = {
            literal.lower(): MASK * len(literal)
            for user in self.users
            for literal in _spellings(user)
        }
        return tuple(
            (literal, mask, masks is hosts)
            for masks in (hosts, users)
            for literal, mask in sorted(masks.items(), key=lambda item: (-len(item[0]), item[0]))
        )


def host_masks(hosts: Sequence[str]) -> dict[str, str]:
    """Each host's name, its part before the first dot, and its domain (if that has a dot), with a
    mask of the same length.

    A name is masked part by part (parts are of letters, digits and "_"): the n-th part in sorted
    order becomes the n-th letter and then "x". Single characters and a number that ends the first
    label (the worker's index) stay: "tpu-a-0", "tpu-b-0" -> "axx-a-0", "axx-b-0". So names that
    differ stay different, sort as they did, and one that holds another still does.
    """
    labels = {host: host.split(".")[0] for host in hosts}
    kept = {found[-1] for label in labels.values() if len(found := _parts(label)) > 1}
    parts = {part for host in hosts for part in _parts(host)}
    hidden = sorted(part for part in parts if not _stays(part, kept))
    width = 1
    while len(_LETTERS) ** width < len(hidden):
        width += 1
    masks = {part: _part_mask(rank, width, len(part)) for rank, part in enumerate(hidden)}

    def masked(name: str) -> str:
        ascii_only = _HOST_PART.sub(lambda part: masks.get(part[0], part[0]), name)
        return "".join("x" * len(_raw(c)) if ord(c) > 127 else c for c in ascii_only)

    domains = {host.partition(".")[2] for host in hosts}
    names = {
        *hosts,
        *(label for label in labels.values() if not is_common_word(label)),
        *(domain for domain in domains if "." in domain),
    }
    return {name: masked(name) for name in sorted(names)}


def _parts(name: str) -> list[str]:
    return _HOST_PART.findall(name)


def _stays(part: str, kept: set[str]) -> bool:
    """Masked parts stay as well, so that masking what is masked changes nothing."""
    is_masked = re.fullmatch(r"[a-z]{1,2}xx+", part) is not None
    return len(part) == 1 or is_masked or (part.isdecimal() and part in kept)


def _part_mask(rank: int, width: int, length: int) -> str:
    """Where there is no room for all letters of the rank, the last ones."""
    letters = ""
    for _ in range(width):
        rank, letter = divmod(rank, len(_LETTERS))
        letters = _LETTERS[letter] + letters
    return (letters + "x" * length)[:length] if length >= width else letters[-length:]


def _spellings(name: str) -> set[bytes]:
    """UTF-8, and as JSON may write it."""
    return {_raw(name), json.dumps(name)[1:-1].encode()}


def _either(name: str) -> bytes:
    """A pattern for the spellings of a name."""
    return b"|".join(sorted(map(re.escape, _spellings(name))))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _home_folders() -> set[str]:
    folders = {os.environ.get("HOME", "")}
    with suppress(RuntimeError):
        folders.add(str(Path.home()))
    if hasattr(os, "getuid"):
        import pwd

        with suppress(KeyError):
            folders.add(pwd.getpwuid(os.getuid()).pw_dir)
    known = {folder for folder in folders if folder.startswith("/")}
    return known | {os.path.realpath(folder) for folder in known}


def _user_names() -> set[str]:
    variables = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
    names = {os.environ.get(variable, "") for variable in variables}
    with suppress(KeyError, OSError, ImportError):
        names.add(getpass.getuser())
    return names - {""}


def _hide(data: bytearray, span: tuple[int, int]) -> None:
    at, end = span
    data[at:end] = MASK * (end - at)


def _positions(data: Raw | bytearray, needle: Raw) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + len(needle))


def _replace_words(data: bytearray, literal: Raw, mask: Raw, *, with_domain: bool) -> None:
    for at in _positions(data.lower(), literal):
        end = at + len(literal)
        if _in_word_before(data, at) or _WORD.match(data, end):
            continue
        data[at:end] = mask
        domain = _DOMAIN.match(data, end) if with_domain else None
        if domain and not domain[0].startswith(_file_endings()):
            data[slice(*domain.span())] = re.sub(rb"[^.\-]", MASK, domain[0])


@cache
def _file_endings() -> tuple[Raw, ...]:
    """Of the files that are named after hosts."""
    return tuple(map(_raw, host_suffixes()))


def _in_word_before(data: bytearray, at: int) -> bool:
    if at == 0 or not _WORD.match(data, at - 1):
        return False
    if data[max(0, at - 6) : at].lower() == b"\\u002f":
        return False
    # In JSON the "n" of an escaped newline is no letter.
    return not (at > 1 and data[at - 2] == ord("\\") and data[at - 1] in _ESCAPES)


def _secrets(data: bytearray) -> list[tuple[int, int]]:
    """The values of what is named a key, a token, a secret or a password."""
    lowered = data.lower()
    found = []
    for word in _SECRET_WORDS:
        for at in _positions(lowered, word):
            value = _SECRET_VALUE.match(data, at + len(word))
            if value and _names_a_secret(lowered, at, word):
                found.append(value.span(1))
    return found


def _names_a_secret(lowered: bytearray, at: int, word: Raw) -> bool:
    if word == b"key":
        return bool(_BEFORE_KEY.search(lowered[max(0, at - _LONGEST_BEFORE_KEY) : at]))
    return not lowered[max(0, at - 1) : at].isalnum()


def _addresses(data: bytearray) -> list[tuple[int, int]]:
    """E-mail addresses, none within another."""
    found: list[tuple[int, int]] = []
    for at in _positions(data, b"@"):
        after = found[-1][1] if found else 0
        mailbox = _MAILBOX.search(data[max(after, at - _LONGEST_MAILBOX) : at])
        domain = _MAIL_DOMAIN.match(data, at + 1)
        if mailbox and domain:
            found.append((at - len(mailbox[0]), domain.end()))
    return found


def _root_homes(data: bytearray) -> list[tuple[int, int]]:
    found = []
    for at in _positions(data, _ROOT_HOME):
        end = at + len(_ROOT_HOME)
        before = at > 0 and _BEFORE_A_PATH.match(data, at - 1)
        if before and at > 1 and data[at - 2] == ord("\\") and data[at - 1] in _ESCAPES:
            before = None
        if not before and not re.match(rb"[\w.\-\x80-\xff]", data[end : end + 1]):
            found.append((at + 1, end))
    return found


def _mlir(data: bytearray) -> list[tuple[int, int]]:
    spans = []
    for at in _positions(data, _MLIR):
        after = at + len(_MLIR)
        run = _BASE64.match(data, after)
        if run and run.end() - after >= 2 * len(_MLIR):
            spans.append(run.span())
    return spans
