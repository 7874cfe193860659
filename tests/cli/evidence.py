"""Signing keys and checkpoints for the commands that need them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from bijotel.checkpoint import sign_checkpoint
from bijotel.keys import KeyRing
from bijotel.model import ChainHead
from bijotel.signing import SigningKey, generate_signing_key, public_path, save_signing_keys
from bijotel.stores.sqlite import SqliteStore
from tests.cli.conftest import KEY


def key(number: int = 0, algorithm: int = 1) -> SigningKey:
    """One of any number of signing keys, the same all the time."""
    return _key(number, algorithm)


@cache
def _key(_number: int, algorithm: int) -> SigningKey:
    return generate_signing_key(algorithm=algorithm)


class Pair(NamedTuple):
    """The files of a signing key."""

    private: Path
    public: Path


def save(folder: Path, number: int = 0, algorithm: int = 1) -> Pair:
    """Write a key's files."""
    path = folder / f"signing-{number}-{algorithm}.pem"
    if not path.exists():
        save_signing_keys((key(number, algorithm), path))
    return Pair(path, public_path(path))


def head(db: Path, name: str = "default") -> ChainHead:
    """A chain's head record."""
    with SqliteStore(db).snapshot() as snapshot:
        (row,) = [row for row in snapshot.head_rows() if row[1] == name]
    return ChainHead._make(row)


def note(db: Path, *signers: SigningKey, name: str = "default") -> bytes:
    """A checkpoint of the chain as it is, which is not recorded in it."""
    return sign_checkpoint(head(db, name), KeyRing(KEY), signers or (key(),))
