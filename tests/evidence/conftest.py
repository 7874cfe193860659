"""The known chain and its keys, for every test of evidence."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from bijotel.signing import SigningKey
from bijotel.verifier_key import parse_verifier_key
from tests.conftest import DATA


@pytest.fixture(scope="session")
def known():
    """Known answers: heads, notes, proofs and exports of one small chain."""
    return json.loads((DATA / "known-answers-more.json").read_text())


@pytest.fixture(scope="session")
def vkey(known):
    """The Ed25519 verifier key of the known chain."""
    return parse_verifier_key(known["vkey"])


@pytest.fixture(scope="session")
def pq_vkey(known):
    """The ML-DSA-44 verifier key of the known chain."""
    return parse_verifier_key(known["ml_dsa_44"]["vkey"])


@pytest.fixture(scope="session")
def signer(known, vkey):
    """The Ed25519 signing key of the known chain."""
    seed = bytes.fromhex(known["signing_seed_ed25519"])
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed), vkey.name)


@pytest.fixture(scope="session")
def pq_signer(known, pq_vkey):
    """The ML-DSA-44 signing key of the known chain."""
    seed = bytes.fromhex(known["ml_dsa_44"]["seed"])
    return SigningKey(MLDSA44PrivateKey.from_seed_bytes(seed), pq_vkey.name)
