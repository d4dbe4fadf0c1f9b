"""Other wordings of one thing, put in one: what is left out, copies, hardware, a program's work.

Contract: a text goes in and comes out with "excluding X" for every way to leave X out, "transfer"
or a kind of it for copies between the host and devices, and nothing else changed.
"""

from __future__ import annotations

import re

from marin_profile.events.classify import TRANSFERS

LEAVE_OUT = "excluding"

_VERB = (
    r"(?:count|includ|consider|regard|account|factor|add|tak|look|mind|weigh)(?:e|ing)?"
    r"(?:\s+(?:in|at|for|into\s+account))?"
)
_BEFORE = re.compile(
    rf"\b(?:(?:(?:please\s+)?(?:do\s+not|don['\u2019]?t|does\s+not|not|never|without)\s+{_VERB})"
    r"|ignor(?:e|es|ing)|disregard(?:s|ing)?|exclud(?:e|es|ing)|exclusive\s+of|omit(?:s|ting)?"
    r"|skip(?:s|ping)?|discount(?:s|ing)?|leav(?:e|es|ing)\s+(?:out|aside|away)|set(?:ting)?\s+aside"
    r"|apart\s+from|aside\s+from|other\s+than|(?:but|everything|anything|nothing|all)\s+(?:but|except)"
    r"|except(?:ing)?(?:\s+for)?|minus|sans|barring|net\s+of|but\s+(?:not|no)|filter(?:ing)?\s+out"
    r"|besides|drop(?:ping)?\s+(?:the|all|any)|outside(?:\s+of)?)\b",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?P<what>@?[\w@\-]+)\s*,?\s+(?:(?:is|are|was|were|being|to\s+be)\s+)?"
    r"(?:not\s+(?:to\s+be\s+)?(?:counted|included|considered)|excluded|ignored|omitted|disregarded"
    r"|left\s+(?:out|aside)|aside|excepted|notwithstanding)\b",
    re.IGNORECASE,
)
_AND_NO = re.compile(r",\s*(?:and\s+|with\s+)?no\s+(?=\w+\W*$)", re.IGNORECASE)
_OUT_AND_ASIDE = re.compile(
    r"\b(?:leav(?:e|es|ing)|put(?:ting)?|tak(?:e|es|ing)|set(?:ting)?)\s+"
    r"(?P<what>(?:the\s+|all\s+|any\s+)?@?[\w@\-]+(?:\s+time)?)\s+(?:out|aside|away)\b",
    re.IGNORECASE,
)
_FIRST_STEPS = re.compile(
    r"\b(?:the\s+)?(?:very\s+)?first\s+(?:(?:few|couple(?:\s+of)?|\w+)\s+)?(?:steps?|iterations?)\b",
    re.IGNORECASE,
)


def left_out(text: str) -> str:
    """The text with every way to leave something out as "excluding X"."""
    text = _AFTER.sub(rf" {LEAVE_OUT} \g<what> ", text)
    text = _OUT_AND_ASIDE.sub(rf" {LEAVE_OUT} \g<what> ", text)
    text = _BEFORE.sub(f" {LEAVE_OUT} ", text)
    text = _AND_NO.sub(f", {LEAVE_OUT} ", text)
    at = text.find(f" {LEAVE_OUT} ")
    if at < 0:
        return text
    return text[:at] + _FIRST_STEPS.sub("warmup", text[at:])


_NUMBER_OF = re.compile(
    r"(?:\b(?:the\s+)?(?:total\s+|overall\s+)?(?:number|count|amount)|(?<!\w)#)"
    r"\s+of\s+(?!bytes|time|data|memory|hbm|rows)",
    re.IGNORECASE,
)


def counted(text: str) -> str:
    """The text with "the number of X" as "how many X"."""
    return _NUMBER_OF.sub("how many ", text)


_MOVED = (
    r"(?:cop(?:y|ies|ied|ying)|memcpys?|memcop(?:y|ies)|transfers?|transferred|transferring|moves?"
    r"|moved|sends?|sent|uploads?|downloads?|traffic|bytes|data)"
)
_HOST, _DEVICE = r"(?:host|cpu)s?", r"(?:device|gpu|tpu|chip|accelerator)s?"
_THE = r"(?:the\s+)?"
_DATA_COPIES = re.compile(
    r"\b(?:memory|mem|data|dma)\s+(?=(?:cop(?:y|ies)|transfers?|memcpys?|moves?)\b)", re.IGNORECASE
)
_A_COPY = re.compile(r"\b(?:memory|mem|data|dma|host|device)[\s\-]+copy\b", re.IGNORECASE)
_HAS_MOVED = re.compile(rf"\b{_MOVED}\b", re.IGNORECASE)
_BOTH_WAYS = re.compile(
    rf"\b(?:to\s+(?:and|or)\s+from|from\s+(?:and|or)\s+to|between)\s+{_THE}{_HOST}\b"
    rf"|\bbetween\s+{_THE}{_DEVICE}\s+and\s+{_THE}{_HOST}\b",
    re.IGNORECASE,
)
_ONE_WAY = (
    ("device_to_host", rf"\bfrom\s+{_THE}{_DEVICE}\s+(?:back\s+)?(?:to|into)\s+{_THE}{_HOST}\b"),
    ("host_to_device", rf"\bfrom\s+{_THE}{_HOST}\s+(?:on)?(?:to|into)\s+{_THE}{_DEVICE}\b"),
    ("device_to_host", rf"\b(?:back\s+)?(?:to|into)\s+{_THE}{_HOST}\s+from\s+{_THE}{_DEVICE}\b"),
    ("host_to_device", rf"\b(?:on)?(?:to|into)\s+{_THE}{_DEVICE}\s+from\s+{_THE}{_HOST}\b"),
    ("device_to_host", rf"\b(?:back\s+)?to\s+{_THE}{_HOST}\b"),
    ("host_to_device", rf"\b(?:on)?to\s+{_THE}{_DEVICE}\b(?!\s*\d)"),
    ("device_to_host", rf"\boff\s+{_THE}{_DEVICE}\b(?!\s*\d)"),
    ("host_to_device", rf"\bfrom\s+{_THE}{_HOST}\b"),
)
assert {kind for kind, _ in _ONE_WAY} <= set(TRANSFERS)


def moved(text: str) -> str:
    """The text with copies of data as transfers, of the kind that is said."""
    text = _DATA_COPIES.sub("", _A_COPY.sub("transfer", text))
    if not _HAS_MOVED.search(text):
        return text
    if _BOTH_WAYS.search(text):
        return _BOTH_WAYS.sub("transfer", text)
    for kind, spelling in _ONE_WAY:
        text, found = re.subn(spelling, kind, text, flags=re.IGNORECASE)
        if found:
            return text
    return text


# Accelerators by their makers' names: NVIDIA, AMD, Google, AWS, Intel, Apple.
_HARDWARE = re.compile(
    r"\b(?:(?:nvidia|amd|google|cloud|aws|intel|apple)\s+)?(?:g?[hb](?:100|200|300)s?|h(?:20|800)s?"
    r"|a(?:10|16|30|40|100|800)g?s?|[vp]100s?|[tl]4s?|l40s?|(?:rtx|gtx)\s*\w*\d{4}(?:\s*ti)?"
    r"|mi\d{2,3}[xa]?|tpu[\s-]*v\d+\w*(?:\s*(?:lite|pod))?|v[2-7][epix]|v[2-7](?=\s+(?:tpu|chip|pod))"
    r"|trillium|ironwood|trainium\d?|inferentia\d?|gaudi\s*\d?)\b",
    re.IGNORECASE,
)
_MANY_DEVICES = re.compile(
    rf"\b(?:on|with|using|over|across|had|used?)\s+(?P<number>\d{{1,9}})\s+(?:\w+\s+)?{_DEVICE}\b",
    re.IGNORECASE,
)


def other_hardware(text: str, own: str | None, devices: int | None) -> tuple[str, list[str]]:
    """The accelerators, and the number of them, that a text names and that are not the capture's
    own; and the text without any."""
    others: list[str] = []

    def taken(match: re.Match[str]) -> str:
        name = match.group().strip()
        is_own = own is not None and _letters(name) in _letters(own)
        others.extend([] if is_own else [name])
        return " hardware " if not is_own else " "

    def counted(match: re.Match[str]) -> str:
        if devices is not None and int(match.group("number")) != devices:
            others.append(match.group())
        return match.group()

    return _MANY_DEVICES.sub(counted, _HARDWARE.sub(taken, text)), others


def _letters(name: str) -> str:
    return re.sub(r"[\W_]|nvidia|amd|google|cloud", "", name.casefold()).rstrip("s")


# What a program does -> how its name may be cut short.
_WORK = {
    "evaluation": ("eval", "evaluate", "evaluation"),
    "evaluating": ("eval", "evaluate", "evaluation"),
    "evaluate": ("eval", "evaluate", "evaluation"),
    "eval": ("eval", "evaluate", "evaluation"),
    "validation": ("val", "valid", "validate", "validation"),
    "validating": ("val", "valid", "validate", "validation"),
    "generation": ("generate", "gen", "generation"),
    "decoding": ("decode", "decoding"),
    "prefilling": ("prefill", "prefilling"),
}


def work_of(word: str) -> tuple[str, ...]:
    """How a program or a span that does this may be called; nothing of other words."""
    return _WORK.get(word, ())
