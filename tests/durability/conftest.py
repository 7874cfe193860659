"""The provider and the processor of the processor's own tests."""

from tests.processor.conftest import db, make, provider

__all__ = ["db", "make", "provider"]
