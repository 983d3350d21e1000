"""Commands that no agent should run by mistake: what they would do to the machine."""

import re
from collections.abc import Callable, Iterator, Sequence
from posixpath import normpath

from harness_actors.policies.shell_words import (
    DOWNLOADERS,
    FETCHED,
    MOST_CHARS,
    SHELLS,
    SimpleCommand,
    simple_commands,
)

_SYSTEM = {
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc",
    "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/var",
    "/var/lib", "/Library", "/System", "/Users",
}  # fmt: skip
_HOME = re.compile(r"(?:~[A-Za-z0-9_-]{0,32}|\$HOME|\$\{HOME\})(?:/\*?|/\.\*?)?")
_DISK = re.compile(
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|md|dm-|loop|mapper/|mem|kmem|port)[\w/-]*"
)
_PRECIOUS = re.compile(r"/etc/(?:passwd|shadow|group|sudoers|fstab)|/proc/sysrq-trigger|/boot/.*")
_FORK_BOMB = re.compile(
    r"(?P<name>[:\w]{1,40})\s{0,8}\(\)\s{0,8}\{\s{0,8}(?P=name)\s{0,8}\|\s{0,8}(?P=name)\s{0,8}&"
)
_WINDOWS = re.compile(
    r"(?i:\bformat\s{1,8}[a-z]:|\b(?:del|rd|rmdir)\s{1,8}(?:/[sfq]\s{1,8}){1,3}[a-z]:\\)"
)
_ROOTS_POWER = frozenset(("shutdown", "reboot", "halt", "poweroff"))
_INTERPRETERS = SHELLS | {"python", "python2", "python3", "perl", "ruby", "node", "php", "lua"}
_FORMATS = re.compile(r"mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|newfs(?:_.+)?")
_FIND_FOLLOWS = frozenset(("-H", "-L", "-P"))
"""Options of `find` that stand before the places where it looks."""
_PARTITIONS = frozenset(("fdisk", "sfdisk", "gdisk", "sgdisk", "parted"))


def danger_of(command: str) -> str:
    """What is dangerous in a command of a shell; empty where nothing is seen.

    It is read roughly: whoever wants to get past can.
    """
    if _FORK_BOMB.search(command, 0, MOST_CHARS):
        return "it starts itself again and again"
    if _WINDOWS.search(command, 0, MOST_CHARS):
        return "it erases a drive"
    try:
        commands = list(simple_commands(command))
    except (ValueError, RecursionError):
        # A quote that is not closed: the shell would refuse it, too, or read it otherwise.
        commands = list(_by_words(command[:MOST_CHARS]))
    fetched = False
    for one in commands:
        if one.piped and fetched and _reads_input(one):
            return "it runs what it has just downloaded"
        fetched = one.program in DOWNLOADERS or (fetched and one.piped)
        for rule in _RULES:
            if danger := rule(one):
                return danger
    return ""


def _by_words(command: str) -> Iterator[SimpleCommand]:
    for part in re.split(r"[;&|\n]+", command):
        words = part.replace("'", " ").replace('"', " ").split()
        if words:
            yield SimpleCommand(words[0].rpartition("/")[2], tuple(words[1:]))
            if words[0] == "sudo" and len(words) > 1:
                yield SimpleCommand(words[1].rpartition("/")[2], tuple(words[2:]))


def _removes(one: SimpleCommand) -> str:
    if one.program == "rm":
        flags = _flags(one.words)
        if "--no-preserve-root" in flags:
            return "it removes the root folder"
        recursive = _has(flags, "rR", "--recursive")
        for target in _targets(one.words):
            if (recursive and _is_system(target)) or normpath(target) == "/*":
                return f"it removes {target!r}"
    if one.program == "find" and one.words and ("-delete" in one.words or "rm" in one.words):
        for target in one.words:
            if target in _FIND_FOLLOWS:
                continue
            if target.startswith("-"):
                break
            if normpath(target) in ("/", "//") or _HOME.fullmatch(target):
                return f"it removes what it finds below {target!r}"
    if one.program == "mv" and one.words and _targets(one.words):
        *moved, last = _targets(one.words)
        gone = [target for target in moved if _is_system(target)]
        if gone and (last == "/dev/null" or normpath(gone[0]) in ("/", "/*")):
            return f"it moves {gone[0]!r} away"
    return ""


def _writes_disks(one: SimpleCommand) -> str:
    for target in one.written:
        if _DISK.fullmatch(target) or _PRECIOUS.fullmatch(target):
            return f"it writes over {target!r}"
    if one.program == "dd":
        for word in one.words:
            if word.startswith("of=") and _DISK.fullmatch(word[3:]):
                return f"it writes over {word[3:]!r}"
    if one.program in ("tee", "cp", "shred", "mv", "truncate") and one.words:
        targets = _targets(one.words)
        written = targets if one.program in ("tee", "shred", "truncate") else targets[-1:]
        for target in written:
            if _DISK.fullmatch(target):
                return f"it writes over {target!r}"
    return ""


def _formats(one: SimpleCommand) -> str:
    if _FORMATS.fullmatch(one.program):
        if set(one.words) & {"--help", "-h", "--version", "-V"}:
            return ""
        return f"{one.program} makes a new file system"
    if one.program in _PARTITIONS and any(_DISK.fullmatch(word) for word in one.words):
        return "" if set(one.words) & {"-l", "--list", "print"} else "it changes partitions"
    return ""


def _opens_to_all(one: SimpleCommand) -> str:
    if one.program not in ("chmod", "chown", "chgrp"):
        return ""
    if not _has(_flags(one.words), "R", "--recursive"):
        return ""
    for target in _targets(one.words)[1:]:
        if _is_system(target) and not _HOME.fullmatch(target):
            return f"it changes the rights of all below {target!r}"
    return ""


def _stops_machine(one: SimpleCommand) -> str:
    words = set(one.words)
    if one.program in _ROOTS_POWER:
        return "" if words & {"--help", "--version", "-c"} else f"{one.program} stops the machine"
    if one.program in ("init", "telinit") and words & {"0", "6"}:
        return "it stops the machine"
    if one.program == "systemctl" and words & {*_ROOTS_POWER, "kexec", "emergency", "rescue"}:
        return "it stops the machine"
    if one.program == "kill" and one.words[-1:] == ("-1",) and len(one.words) > 1:
        return "it ends all processes"
    return "it ends all processes" if one.program == "killall5" else ""


def _runs_downloads(one: SimpleCommand) -> str:
    runs = one.program in ("eval", ".", "source", *_INTERPRETERS)
    if runs and any(FETCHED in word for word in one.words):
        return "it runs what it has just downloaded"
    return ""


def _reads_input(one: SimpleCommand) -> bool:
    """Whether a program runs what it reads."""
    if one.program not in _INTERPRETERS:
        return False
    plain = [word for word in one.words if not word.startswith("-") or word == "-"]
    if one.program in SHELLS:
        return not any(word.endswith("c") and word.startswith("-") for word in one.words) and (
            not plain or "-s" in one.words or plain == ["-"]
        )
    options = [word for word in one.words if word.startswith("-") and word != "-"]
    return plain in ([], ["-"]) and not any(word[1:2] in "cmenErp" for word in options)


_RULES: Sequence[Callable[[SimpleCommand], str]] = (
    _removes,
    _writes_disks,
    _formats,
    _opens_to_all,
    _stops_machine,
    _runs_downloads,
)


def _flags(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.startswith("-")]


def _targets(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _has(flags: Sequence[str], letters: str, long: str) -> bool:
    """Whether options have one of some letters, alone or together with others, or a long one."""
    short = (flag[1:] for flag in flags if not flag.startswith("--"))
    return any(set(letters) & set(flag) for flag in short) or long in flags


def _is_system(target: str) -> bool:
    """Whether it is the root, a home or a folder of the system, or all that is in one."""
    if _HOME.fullmatch(target):
        return True
    if not target.startswith("/"):
        return False
    path = "/" + normpath(target).lstrip("/")
    return path in _SYSTEM or (path.endswith("/*") and (path[:-2] or "/") in _SYSTEM)
