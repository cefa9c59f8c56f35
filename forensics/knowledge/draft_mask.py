"""What a draft hides of the log that it is cut from: besides secrets also user names, hosts and addresses.

A log page is shared with strangers, so private addresses and host names go, too. Each gets its own stand-in, the same
on every line: what a page tells about *which* address is not lost. Addresses that mean the same everywhere (loopback,
any, link-local, docker's own bridge) stay, for they can be the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address

from forensics.knowledge.privacy import HOME, NOBODY, without_leaks
from forensics.output.mask import mask
from forensics.rulebook.patterns import Pattern, compiled

_V4 = r"\b(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\b"
_V6 = r"\[([0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]+)\]"
_HOSTS = (
    r"\b(?:host|hostname|\w+_host|\w+_addr|\w+_address|\w+_ip)['\"]?\s{0,3}[=:]\s{0,3}['\"]([A-Za-z][\w.-]*)",
    r"--(?:host|[a-z-]+-host|[a-z-]+-addr|[a-z-]+-ip)[ =]['\"]?([A-Za-z][\w.-]*)",
    r"\b(?:MASTER_ADDR|HOSTNAME)=['\"]?([A-Za-z][\w.-]*)",
    r"://([A-Za-z][\w-]*(?:\.[\w-]+)*):\d",
    r"\b([A-Za-z][\w-]*(?:\.[\w-]+)*\.(?:internal|svc|lan|corp|intranet|localdomain|cluster\.local))\b",
    r"^([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL ",
)
"""Where a log names a host: arguments and variables, URLs with a port, private domains, NCCL's line heads."""
_NO_HOST = frozenset(["localhost", "none", "null", "auto", "true", "false"])
_DOCKER = IPv4Network("172.17.0.0/16")
STAND_IN = r"host-\d+\.example"
"""How a hidden host reads."""


class Hidden:
    """`Hidden()(line)`: the line as a draft may hold it. One object per draft keeps its stand-ins apart."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def __call__(self, line: str) -> str:
        """One line of a log, or a message, without secrets, user names, hosts and addresses."""
        line = mask(line)
        line = _written_over(line, HOME, lambda name: name if name in NOBODY else "user")
        for pattern in _HOSTS:
            line = _written_over(line, pattern, self._host)
        line = _written_over(line, _V4, self._v4)
        return without_leaks(_written_over(line, _V6, self._v6))

    def _host(self, name: str) -> str:
        plain = name.lower() in _NO_HOST or _pattern(f"^{STAND_IN}$").search(name) is not None
        private = _pattern(r"[\d-]").search(name) is not None or "." not in name or name.count(".") > 1
        return name if plain or not private else self._stand_in("host", name, "host-{}.example")

    def _v4(self, text: str) -> str:
        try:
            found = IPv4Address(text)
        except (AddressValueError, ValueError):
            return text
        own = found.is_loopback or found.is_unspecified or found.is_link_local or found.is_multicast
        if own or found.is_reserved or found in _DOCKER or text.startswith("192.0.2."):
            return text
        return self._stand_in(*(("public", text, "192.0.2.{}") if found.is_global else ("private", text, "10.0.0.{}")))

    def _v6(self, text: str) -> str:
        try:
            found = IPv6Address(text)
        except (AddressValueError, ValueError):
            return text
        if found.is_loopback or found.is_unspecified or text.lower().startswith("2001:db8:"):
            return text
        return self._stand_in("v6", text, "2001:db8::{}")

    def _stand_in(self, what: str, text: str, form: str) -> str:
        known = self._known.setdefault(what, {})
        return known.setdefault(text, form.format(len(known) % 254 + 1))


def _written_over(line: str, pattern: str, by: Callable[[str], str]) -> str:
    """The line with the first group of each match replaced."""
    parts, at = [], 0
    for found in _pattern(pattern).finditer(line):
        parts += [line[at : found.start(1)], by(found.group(1) or "")]
        at = found.end(1)
    return "".join([*parts, line[at:]])


@cache
def _pattern(text: str) -> Pattern:
    return compiled(text)
