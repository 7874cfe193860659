"""What entries themselves say about sizes and roots: any body gives an answer, never a traceback."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from bijotel.seal import body_hash
from bijotel.verify.vouched import load_notes, note_fault, read_fleet, sealed_note
from tests.evidence.chains import chain_of

ENTRY = chain_of(2).entries[1]
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=40)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner)
    ),
    max_leaves=6,
)
_CHAINS = st.fixed_dictionaries(
    {}, optional={"chain_id": _VALUES, "root_hash": _VALUES, "size": st.integers()}
)
_BODIES = st.one_of(
    st.binary(max_size=200),
    st.builds(json.dumps, _VALUES).map(str.encode),
    st.builds(lambda note: json.dumps({"note": note}), _VALUES).map(str.encode),
    st.builds(lambda chains: json.dumps({"chains": chains}), st.lists(_CHAINS, max_size=3)).map(
        str.encode
    ),
)


def holding(body: bytes, **columns):
    return ENTRY._replace(body=body, body_hash=body_hash(body), **columns)


@given(_BODIES)
def test_any_body_of_a_checkpoint_entry(body):
    """A code and words, or a note that can be compared."""
    fault = note_fault(holding(body, kind="checkpoint"))
    assert fault is not None
    assert fault[0] in {"malformed-note", "checkpoint-origin", "checkpoint-mismatch"}


@given(_BODIES)
def test_any_body_of_a_fleet_entry(body):
    """Chains with an id of 16 bytes and a size from 0 on, as many as can be read."""
    for chain_id, signed in read_fleet(holding(body, kind="fleet")):
        assert len(chain_id) == 16
        assert signed.size >= 0


def test_a_body_that_is_not_the_sealed_one_says_nothing(signer):
    """Somebody without the secret put it there."""
    note = chain_of(2).note(1, signer)
    body = json.dumps({"note": note.decode()}, separators=(",", ":"), ensure_ascii=False).encode()
    assert sealed_note(holding(body)) == note
    assert sealed_note(ENTRY._replace(body=body)) is None


def test_notes_are_named_by_their_files(tmp_path):
    """Octets by their number, files by their path."""
    (tmp_path / "a").write_bytes(b"x")
    notes = load_notes([b"y", tmp_path / "a", str(tmp_path / "a")])
    assert [note.name for note in notes] == ["1", str(tmp_path / "a"), str(tmp_path / "a")]
    assert [note.octets for note in notes] == [b"y", b"x", b"x"]
