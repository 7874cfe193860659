"""Entries for an analysis: the chain is verified first, and what is read is what was verified.

An analysis over entries that someone changed is worse than none. So either the chain verifies,
or the caller has said that it goes on without that, and then has a caveat to show first.
Verifying and reading use one snapshot, so that nothing can be changed in between. Picking the
chain is the business of ``entries``, what is computed that of the analyses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import orjson

from bijotel.dialects.span import SkimmedSpan, Span
from bijotel.errors import CanonicalizationError, UnavailableError, VerificationError
from bijotel.findings import Report
from bijotel.keys import KeyRing
from bijotel.model import Entry, Resource, Scope, Status
from bijotel.spans.decode import record_from_body
from bijotel.stores.base import Snapshot
from bijotel.verify.chain import verify_chain
from bijotel.verify.rows import check_columns

if TYPE_CHECKING:
    from bijotel.stores.base import Store

Record = TypeVar("Record")

_STATUSES: Final = {code: Status(code) for code in ("UNSET", "OK", "ERROR")}
GO_ON: Final = "to go on all the same use --unverified"


@dataclass(slots=True)
class VerifiedChain:
    """A chain that may be analysed, and what is to be said about it first."""

    snapshot: Snapshot
    chain_id: bytes
    report: Report | None
    """Of the verification; None when there was no key."""
    caveat: str = ""
    """Why nothing that is computed is proven; empty when the chain verifies."""
    unreadable: int = 0
    """Rows so far that are no entries, or whose body cannot be read; 0 when it verifies."""

    def entries(self, *, newest: bool = False) -> Iterator[Entry]:
        """Read the entries by ``seq``."""
        for row in self.snapshot.select(self.chain_id, newest=newest):
            entry = check_columns(row.columns) if self.caveat else Entry._make(row.columns)
            if isinstance(entry, Entry):
                yield entry
            else:
                self.unreadable += 1

    def spans(self, read: Callable[[bytes], Record]) -> Iterator[tuple[Entry, Record]]:
        """Read the entries of spans by ``seq``.

        Args:
            read: Makes a record of a body: ``spans.decode.decode_record``, or :func:`skim` where
                attributes and times are enough.
        """
        for entry in self.entries():
            if entry.kind == "span":
                try:
                    record = read(entry.body)
                except CanonicalizationError:
                    self.unreadable += 1
                    continue
                yield entry, record


def verify_to_read(
    snapshot: Snapshot,
    chain_id: bytes,
    keys: KeyRing | None,
    *,
    location: str,
    unverified: bool | None = False,
) -> VerifiedChain:
    """Verify a chain and give what reads it.

    Args:
        snapshot: The store at one moment, open for as long as is read.
        chain_id: The chain.
        keys: The ring, or None when no key is configured.
        location: What names the store in errors.
        unverified: Go on where the chain does not verify, or without a key; None where nobody
            can ask for that.

    Raises:
        VerificationError: the chain is false.
        UnavailableError: there is no key, or a part could not be checked.
    """
    advice = "" if unverified is None else f"; {GO_ON}"
    if keys is None:
        if not unverified:
            raise UnavailableError(
                f"no key (--key, or BIJOTEL_HMAC_SECRET), so the chain cannot be verified{advice}"
            )
        return VerifiedChain(snapshot, chain_id, None, "no key, nothing was verified")
    report = verify_chain(pinned(snapshot, location), keys, chain=chain_id.hex())
    if report.ok:
        return VerifiedChain(snapshot, chain_id, report)
    first = report.findings[0]
    more = f" (and {len(report.findings) - 1} more)" if len(report.findings) > 1 else ""
    found = f"the chain does not verify: {first.code}: {first.message}{more}"
    if not unverified:
        error = VerificationError if report.exit_code == 1 else UnavailableError
        raise error(f"{found}; see bijotel verify{advice}")
    return VerifiedChain(snapshot, chain_id, report, found)


def skim(octets: bytes) -> Span:
    """Read a body without its events and links, several times as fast as the whole.

    The canonical form is not checked again: the tag of a verified entry vouches for it.

    Raises:
        CanonicalizationError: not the shape of a span body.
    """
    try:
        body = orjson.loads(octets)
    except orjson.JSONDecodeError as error:
        raise CanonicalizationError(f"not JSON: {error}") from None
    # The first test is many times as fast, and most bodies hold no dollar at all.
    if b"$" not in octets or b'"$' not in octets:  # nothing in it is encoded
        try:
            return _skimmed(body)
        except (KeyError, TypeError, ValueError):
            pass  # the careful reading says what is wrong
    return record_from_body(body)


def _skimmed(body: dict[str, Any]) -> SkimmedSpan:
    attributes, inherited = body["attributes"], body.get("inherited", {})
    of_resource = body["resource"]["attributes"]
    if not type(attributes) is type(inherited) is type(of_resource) is dict:
        raise TypeError("attributes")
    start, end = body["start_time_unix_nano"], body["end_time_unix_nano"]
    return SkimmedSpan(
        _text(body["trace_id"]),
        _text(body["span_id"]),
        body["parent_span_id"] and _text(body["parent_span_id"]),
        None if start is None else int(_text(start)),
        None if end is None else int(_text(end)),
        _STATUSES[body["status"]["code"]],
        attributes,
        Resource(of_resource),
        _scope(_text(body["scope"]["name"])),
        inherited,
    )


@lru_cache(maxsize=1024)
def _scope(name: str) -> Scope:
    return Scope(name)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("text")
    return value


def pinned(snapshot: Snapshot, location: str) -> Store:
    """Give a store that shows one moment only, to verify what is read afterwards."""
    return cast("Store", _Pinned(snapshot, location))


class _Pinned:
    address = None

    def __init__(self, snapshot: Snapshot, location: str) -> None:
        self._snapshot = snapshot
        self.location = location

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        return nullcontext(self._snapshot)
