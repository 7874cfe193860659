"""The inner nodes of a chain's Merkle tree, from tiles that are cached and never trusted.

A tile holds the 256 hashes of one level of the tree that lie side by side, every eighth level;
the last one of a level holds fewer. So an inclusion proof needs a handful of tiles, whatever the
log's length. Tiles are made from the rows when they are asked for, and kept.

Whoever can write the store can write tiles. So what is made with them is checked by its maker
against a signed root; when that fails, all tiles are thrown away and made from the rows again,
and only then is the failure real (:func:`with_tree`).

Source: C2SP tlog-tiles (the division), RFC 6962 section 2.1 (the tree).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from bijotel.errors import VerificationError
from bijotel.merkle import HASH_BYTES, node_hash
from bijotel.merkle_proof import NodeHash

TILE_HEIGHT: Final = 8
"""Levels of the tree that one level of tiles spans."""
TILE_WIDTH: Final = 1 << TILE_HEIGHT

_TILES_IN_MEMORY: Final = 64
_TILES_AT_ONCE: Final = 64
"""New tiles are handed to the cache in portions of half a megabyte."""
_MAY_BE_THE_TILES: Final = frozenset({"checkpoint-mismatch", "proof-rejected"})

ReadLeaves: TypeAlias = "Callable[[int, int], Iterable[bytes]]"
"""Given the first ``seq`` and the one behind the last, hash these entries into leaves."""

Result = TypeVar("Result")


class Tile(NamedTuple):
    """Hashes of one level that lie side by side."""

    level: int
    """Of tiles: 0 holds leaves, 1 the roots of 256 leaves."""
    position: int
    """From 0; its first hash is number ``position * 256`` of its level."""
    hashes: bytes
    """1 to 256 hashes of 32 bytes."""


class TileCache(Protocol):
    """Where the tiles of one chain are kept. Losing them costs time only."""

    def read(self, level: int, position: int) -> bytes:
        """Read the hashes of a tile; empty when it is not there or not a tile."""
        ...

    def write(self, tiles: Sequence[Tile]) -> None:
        """Keep tiles, in place of shorter ones; does nothing when that is impossible."""
        ...

    def clear(self) -> None:
        """Forget all tiles of the chain."""
        ...


class _NoCache:
    def read(self, _level: int, _position: int) -> bytes:
        return b""

    def write(self, tiles: Sequence[Tile]) -> None:
        pass

    def clear(self) -> None:
        pass


NO_CACHE: Final[TileCache] = _NoCache()
"""For stores that keep no tiles."""


class ChainTree:
    """Knows the perfect subtrees of the first ``size`` entries of a chain."""

    def __init__(
        self, size: int, read_leaves: ReadLeaves, cache: TileCache, *, rebuild: bool = False
    ) -> None:
        """Begin with nothing read.

        Args:
            size: Entries that the tree covers.
            read_leaves: Reads from the rows.
            cache: Where tiles come from and go to.
            rebuild: Do not read the cache, only fill it.
        """
        self._size = size
        self._read_leaves = read_leaves
        self._cache = cache
        self._source = NO_CACHE if rebuild else cache
        self._made: list[Tile] = []
        self._tile = lru_cache(maxsize=_TILES_IN_MEMORY)(self._load)

    def node(self, level: int, position: int) -> bytes:
        """Hash a perfect subtree, see :data:`bijotel.merkle_proof.NodeHash`."""
        tile_level, height = divmod(level, TILE_HEIGHT)
        first = position << height
        hashes = self._tile(tile_level, first >> TILE_HEIGHT)
        start = first % TILE_WIDTH * HASH_BYTES
        return perfect_root(hashes[start : start + (HASH_BYTES << height)])

    def flush(self) -> None:
        """Hand the tiles that were made to the cache."""
        self._cache.write(self._made)
        self._made = []

    def _load(self, level: int, position: int) -> bytes:
        first = position << TILE_HEIGHT
        count = min(TILE_WIDTH, (self._size >> (TILE_HEIGHT * level)) - first)
        hashes = self._source.read(level, position)[: count * HASH_BYTES]
        known = len(hashes) // HASH_BYTES
        if known < count:
            hashes += b"".join(self._below(level, first + known, first + count))
            self._made.append(Tile(level, position, hashes))
            if len(self._made) >= _TILES_AT_ONCE:
                self.flush()
        return hashes

    def _below(self, level: int, start: int, end: int) -> Iterable[bytes]:
        if level == 0:
            return self._read_leaves(start, end)
        return (perfect_root(self._tile(level - 1, number)) for number in range(start, end))


def perfect_root(hashes: bytes) -> bytes:
    """Hash ``2**n`` hashes that lie side by side into their root."""
    level = [hashes[start : start + HASH_BYTES] for start in range(0, len(hashes), HASH_BYTES)]
    while len(level) > 1:
        level = [node_hash(*pair) for pair in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def with_tree(
    size: int, read_leaves: ReadLeaves, cache: TileCache, use: Callable[[NodeHash], Result]
) -> Result:
    """Make something that checks itself against a signed root.

    Args:
        size: Entries that the tree covers.
        read_leaves: Reads from the rows.
        cache: Where tiles come from and go to.
        use: Makes it from the tree's nodes. Called a second time, with a tree that is made from
            the rows alone, when the first result did not pass its own check.

    Raises:
        VerificationError: what ``use`` raised the second time, or at once for a fault that no
            tile can have caused.
    """
    tree = ChainTree(size, read_leaves, cache)
    try:
        result = use(tree.node)
    except VerificationError as error:
        if error.code not in _MAY_BE_THE_TILES:
            raise
        cache.clear()
        tree = ChainTree(size, read_leaves, cache, rebuild=True)
        result = use(tree.node)
    tree.flush()
    return result
