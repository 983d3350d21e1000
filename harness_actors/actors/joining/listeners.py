"""Whose process is at the other end of a connection, where that end is on this machine.

Source: Linux, ``net/ipv4/tcp_ipv4.c`` (the lines of ``/proc/net/tcp``).
"""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

Users = frozenset[int] | None
"""User ids of a listener; empty where they cannot be told, None where it is another machine's."""

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
LISTENS = "0A"

_Ip = IPv4Address | IPv6Address
_End = tuple[_Ip, int]


@dataclass(frozen=True, slots=True)
class _Socket:
    local: _End
    remote: _End
    listens: bool
    user: int


def is_ours(users: Users) -> bool:
    """Whether it is this user's, or root's, who has all of ours anyway."""
    return bool(users) and users is not None and users <= {0, os.geteuid()}


def users_behind(connection: socket.socket, tables: Iterable[Path] = TABLES) -> Users:
    """Who has the other end of a connection, as the kernel says it.

    Args:
        connection: A TCP connection.
        tables: The kernel's lists of sockets.
    """
    here, there = _end(connection.getsockname()), _end(connection.getpeername())
    try:
        known = [one for table in tables for one in _sockets(table)]
    except OSError:
        known = []
    their_end = [one for one in known if (one.local, one.remote) == (there, here)]
    if not their_end and there[0] != here[0] and not there[0].is_loopback:
        return None
    if accepted := frozenset(one.user for one in their_end if one.user):
        return accepted
    if not their_end:
        return frozenset()  # it is closed already, or the kernel does not tell
    # Before a process takes a connection it counts as root's on older kernels. It is then its
    # listener's, and ends with that; the lists have listeners before connections.
    listeners = [one for one in known if one.listens and one.local[1] == there[1]]
    exact = [one for one in listeners if one.local[0] == there[0]]
    wide = [one for one in listeners if one.local[0].is_unspecified]
    return frozenset(one.user for one in exact or wide)


def _end(name: tuple[str, int]) -> _End:
    return _plain(ip_address(name[0].partition("%")[0])), name[1]


def _plain(ip: _Ip) -> _Ip:
    """Programs that listen for both kinds have IPv4 mapped into IPv6."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip


def _sockets(table: Path) -> Iterator[_Socket]:
    try:
        lines = table.read_text().splitlines()[1:]
    except FileNotFoundError:
        return  # a kernel without IPv6
    for line in lines:
        words = line.split()
        yield _Socket(_parsed(words[1]), _parsed(words[2]), words[3] == LISTENS, int(words[7]))


def _parsed(text: str) -> _End:
    packed, _, port = text.partition(":")
    words = (int(packed[at : at + 8], 16) for at in range(0, len(packed), 8))
    return _plain(ip_address(b"".join(struct.pack("=I", word) for word in words))), int(port, 16)
