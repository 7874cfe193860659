"""Which file system a path lies on, as far as Linux tells. Parsing is pure.

SQLite's write-ahead log needs memory that all its users share, which a network file system does
not give: two hosts would each see a lock that the other does not.

Source: https://sqlite.org/wal.html section "Use of WAL without shared memory", proc(5) mountinfo.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bijotel.errors import UnavailableError

NETWORK_TYPES: Final = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    }
)

_MOUNTS: Final = Path("/proc/self/mountinfo")


def refuse_network_file_system(path: Path) -> None:
    """Refuse a path on a network file system; what cannot be told is accepted.

    Raises:
        UnavailableError: the path lies on one.
    """
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # no Linux, or no /proc: nothing can be told
        return
    kind = file_system_of(os.path.realpath(path), mounts)
    if kind in NETWORK_TYPES:
        raise UnavailableError(
            f"{path}: lies on a network file system ({kind}), on which SQLite's write-ahead log "
            "does not work; use a local disk, or PostgreSQL for many hosts"
        )


def file_system_of(path: str, mountinfo: str) -> str:
    """Find the type of the mount that a real path lies on; empty when there is none."""
    longest, found = -1, ""
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        mount = _unescape(fields[4])
        # The last of several mounts on one point is the one that is seen.
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= longest:
            longest, found = len(mount), right.split(" ")[0]
    return found


def _unescape(text: str) -> str:
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
