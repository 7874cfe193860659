"""The error tree: one root, three branches, stable codes and exit codes."""

from __future__ import annotations

import pickle

import pytest

from bijotel import errors
from bijotel.canonical import loads
from bijotel.errors import (
    BijotelError,
    CanonicalizationError,
    ConfigurationError,
    UnavailableError,
    VerificationError,
)
from bijotel.stores.base import AlreadySealedError, StoreBusyError

TREE = {
    BijotelError: (Exception, "error", 3),
    ConfigurationError: (BijotelError, "configuration", 2),
    UnavailableError: (BijotelError, "unavailable", 3),
    VerificationError: (BijotelError, "verification", 1),
    CanonicalizationError: (BijotelError, "canonicalization", 3),
    AlreadySealedError: (BijotelError, "already-sealed", 3),
    StoreBusyError: (BijotelError, "store-busy", 3),
}


def test_the_tree_is_complete():
    """Every error class of the module is in the table of this test."""
    classes = {value for value in vars(errors).values() if isinstance(value, type)}
    assert classes <= set(TREE)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_each_error_has_its_branch_code_and_exit_code(kind: type[BijotelError]):
    """Base class, code and exit code are stable; no error exits with 0."""
    base, code, exit_code = TREE[kind]
    assert kind.__base__ is base
    assert (kind.code, kind.exit_code) == (code, exit_code)
    assert exit_code != 0


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_each_error_can_be_pickled(kind: type[BijotelError]):
    """An error crosses processes with its class, message and code."""
    error = kind("what: expected this, got that")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == "what: expected this, got that"
    assert (again.code, again.exit_code) == (kind.code, kind.exit_code)


def test_a_code_of_one_error_survives_pickling():
    """The code that depth has is kept, and the class's own is not changed by it."""
    with pytest.raises(CanonicalizationError) as caught:
        loads(b"[" * 5000)
    assert pickle.loads(pickle.dumps(caught.value)).code == "too-deep"
    assert CanonicalizationError.code == "canonicalization"
