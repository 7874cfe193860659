"""The environment variables of the package, as ``opentelemetry-instrument`` lists them."""

BIJOTEL_DB = "BIJOTEL_DB"
"""Where the chain is kept: a path or a URL."""
BIJOTEL_CHAIN = "BIJOTEL_CHAIN"
"""The chain's name, ``default`` when unset."""
BIJOTEL_HMAC_SECRET = "BIJOTEL_HMAC_SECRET"  # noqa: S105 - a name
"""64 hex digits."""
BIJOTEL_HMAC_SECRET_FILE = "BIJOTEL_HMAC_SECRET_FILE"  # noqa: S105 - a name
"""A file of mode 0600 that holds 64 hex digits."""
