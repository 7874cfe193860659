"""The user's own prices, in a TOML file.

::

    # US dollars for a million tokens
    [models."acme-unknown-1"]
    input = 3
    output = 15
    cache_read = 0.30   # a part of the input; where it is missing, the price of input
    cache_write = 3.75  # the same

    [models."ollama/llama3"]  # of this provider only
    input = 0
    output = 0
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bijotel.cost.model import Rates
from bijotel.errors import ConfigurationError

LARGEST: Final = 10**9
"""Dollars for a million tokens."""
MOST_DECIMALS: Final = 18

_REQUIRED: Final = ("input", "output")
_OPTIONAL: Final = ("cache_read", "cache_write")


def read_price_file(path: str | os.PathLike[str]) -> dict[str, Rates]:
    """Read prices by model name, in lower case.

    Raises:
        ConfigurationError: the file cannot be read, is no TOML, or holds something else.
    """
    name = os.fspath(path)
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        document = toml.loads(Path(path).read_text(encoding="utf-8"), parse_float=Decimal)
    except RecursionError:
        raise ConfigurationError(f"price file {name}: cannot be read: nested too deep") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"price file {name}: cannot be read: {error}") from None
    models = document.get("models", {})
    unknown = ", ".join(document.keys() - {"models"})
    if unknown or not isinstance(models, Mapping):
        raise ConfigurationError(
            f'price file {name}: expected nothing but tables [models."NAME"], '
            f"got {unknown or type(models).__name__}"
        )
    return {model.lower(): _price(f"price file {name}: {model}", models[model]) for model in models}


def _price(where: str, table: Any) -> Rates:
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: expected a table of prices, got {_shown(table)}")
    unknown = sorted(table.keys() - {*_REQUIRED, *_OPTIONAL})
    if unknown:
        known = ", ".join((*_REQUIRED, *_OPTIONAL))
        raise ConfigurationError(f"{where}: {unknown[0]} is not known; expected {known}")
    for name in _REQUIRED:
        if name not in table:
            raise ConfigurationError(f"{where}: {name} is missing")
    return Rates(**{name: _amount(f"{where}: {name}", value) for name, value in table.items()})


def _amount(where: str, value: Any) -> Decimal:
    number = Decimal(value) if type(value) is int else value
    if isinstance(number, Decimal) and number.is_finite() and 0 <= number <= LARGEST:
        digits = number.as_tuple().exponent
        if isinstance(digits, int) and digits >= -MOST_DECIMALS:
            return number
    raise ConfigurationError(
        f"{where}: expected dollars for a million tokens, at most {LARGEST} and with at most "
        f"{MOST_DECIMALS} decimals, got {_shown(value)}"
    )


def _shown(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:.20g}"
    if type(value) is int:  # a very long one cannot be written as decimal digits
        return f"{Decimal(value):.20g}"
    return f"{value!r:.40}" if isinstance(value, (str, bool)) else type(value).__name__
