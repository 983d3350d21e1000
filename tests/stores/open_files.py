"""What this process has open."""

import os
from pathlib import Path


def open_files(folder: Path) -> list[Path]:
    """The files in a folder that this process has open, once for each time."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        try:
            file = Path(os.readlink(f"/proc/self/fd/{handle}"))
        except FileNotFoundError:
            continue  # the one that lists them
        if file.is_relative_to(folder):
            found.append(file)
    return found
