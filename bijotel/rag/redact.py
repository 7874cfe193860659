"""Masks credentials in addresses and in text that quotes them. Pure.

Two kinds: what stands between user and host of an address (``svc:p@ss/w#1@db``), and the value
of a parameter whose name says that it is a secret (``X-Amz-Signature=...``, ``Password=...;``).
Host, user, path, all other parameters and their order stay as they are. A malformed address
fails closed: parsers take ``svc:p@ss/w#1@db`` for host ``ss``, so nothing here relies on one.

What is masked twice stays the same. That a value *looks* like a secret is not judged.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

MASK = "REDACTED"
"""What stands in place of a credential."""

# Schemes whose paths and queries often hold an "@" and whose ports are numbers.
_WEB = ("http:", "https:", "ws:", "wss:", "file:")

_SECRET_NAME = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|apikey|accesskey|secretkey|privatekey|accountkey"
    r"|subscriptionkey|sharedaccesssignature|authorization|credentials?|token)$"
)
# A cursor through result pages is called a token as well.
_CURSOR_NAME = re.compile(r"(?:page|next|continuation|sync)")
# In a query string these are credentials; in prose and metadata they are ordinary words.
_QUERY_NAME = re.compile(r"(?:signature|accessid|accesskeyid)$|^(?:sig|key|auth|pass|jwt)$")

_PARAMETER = re.compile(r"(?<![\w.%-])([\w.%-]{1,64})\s{0,4}(=)\s{0,4}")
# Prose, JSON and YAML write a colon as well. In an identifier ("token:17") it means nothing.
_NAME = re.compile(r"(?<![\w.%-])([\w.%-]{1,64})[\"']?\s{0,4}([=:])\s{0,4}(?!//)")
_QUERY_VALUE = re.compile(r"[^&#\s\"<>]+")
_ENCODED_VALUE = re.compile(r"(?=[^&#?%\s\"<>]*%)[^&#?\s\"<>]+")
# Masked before; then ODBC braces and libpq quotes, of bounded length so that scanning is linear.
_TEXT_VALUE = re.compile(
    r"REDACTED(?=[\s;,}\])&#\"']|$)"
    r"|(?:\{(?:[^}]|\}\}){0,256}\}|\"[^\"]{0,256}\"|'(?:[^'\\]|\\.){0,256}')[^\s;,}\])&#\"']*"
    r"|[^;\s]+"
)
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*\]|[^:@]*)(?::\d+)?")
_MAX_DEPTH = 3
_QUERY_TAIL = re.compile(r"[?&][^=&?#@]*=[^&#@]*$")


def redact_address(text: str) -> str:
    """Mask the credentials of a text that is one address as a whole, blanks included."""
    if "//" in text and "@" in text:
        text = _mask_addresses(text)
    return _mask_values(text, _PARAMETER)


def redact_text(text: str) -> str:
    """Mask the credentials of all addresses and parameters that a text quotes."""
    if "//" in text and "@" in text:
        text = re.sub(r"\S+", lambda word: _mask_addresses(word[0]), text)
    return _mask_values(text, _NAME)


@lru_cache(maxsize=1024)
def names_secret(name: str) -> bool:
    """Return whether a metadata key or parameter of this name holds a credential."""
    plain = _normal(name)
    return bool(_SECRET_NAME.search(plain)) and not _CURSOR_NAME.search(plain)


@lru_cache(maxsize=1024)
def _names_query_secret(name: str) -> bool:
    return names_secret(name) or bool(_QUERY_NAME.search(_normal(name)))


def _normal(name: str) -> str:
    return re.sub(r"[\W_]", "", unquote(name)).lower()


def _mask_addresses(text: str) -> str:
    """Mask the password behind each ``//``; from the last one on, since addresses nest."""
    *heads, rest = text.split("//")
    for head in reversed(heads):
        rest = f"{head}//{_mask_password(rest, web=head[-6:].lower().endswith(_WEB))}"
    return rest


def _mask_password(rest: str, *, web: bool) -> str:
    """Mask from the first ``:`` to the last ``@`` that can end a password."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    colon = authority.find(":")
    if colon < 0:
        return rest
    if _HOST_AND_PORT.fullmatch(authority):
        end = -1 if web else _last_at(rest, len(authority), web=web)
    elif web and "@" in authority:
        end = _last_at(rest, len(authority), web=web)
    else:
        end = rest.rfind("@")  # a broken or a database address: the password may hold / ? and #
    return rest if end <= colon else f"{rest[: colon + 1]}{MASK}{rest[end:]}"


def _last_at(rest: str, authority: int, *, web: bool) -> int:
    """Return the last ``@`` that is not plainly part of a path or a query, or -1."""
    end = rest.rfind("@")
    while end >= authority:
        before = rest[:end]
        in_path = web and before.endswith("/")
        if not in_path and not _QUERY_TAIL.search(before, max(0, end - 256)):
            break
        end = rest.rfind("@", 0, end)
    return end


def _mask_values(text: str, names: re.Pattern[str], depth: int = 0) -> str:
    """Mask the values of parameters named like secrets, in query strings and in prose."""
    if "=" not in text and ":" not in text:
        return text
    parts: list[str] = []
    done = 0
    for found in names.finditer(text):
        masked = None if found.start() < done else _mask_value(text, found, depth)
        if masked is not None:
            parts += (text[done : found.end()], masked[0])
            done = masked[1]
    return "".join((*parts, text[done:])) if parts else text


def _mask_value(text: str, found: re.Match[str], depth: int) -> tuple[str, int] | None:
    """Return what replaces the value behind a name, and where the value ends."""
    name, start = found[1], found.end()
    lead = text[found.start() - 1 : found.start()]
    if lead in {"?", "&", "#"} and found[2] == "=":
        if _names_query_secret(name):
            value = _QUERY_VALUE.match(text, start)
            return value and (MASK, value.end())
        value = _ENCODED_VALUE.match(text, start)
        return value and (_mask_encoded(value[0], depth), value.end())
    # "//token:..@host" is user and password, which were masked with the address.
    if lead == "/" or not names_secret(name) or not (value := _TEXT_VALUE.match(text, start)):
        return None
    quoted = value[0][0] if value[0][0] in "\"'" and value[0].endswith(value[0][0]) else ""
    return f"{quoted}{MASK}{quoted}", value.end()  # JSON in a text stays JSON


def _mask_encoded(value: str, depth: int) -> str:
    """Mask within an address that is handed on, percent-encoded, in another one's query."""
    inner = unquote(value)
    if inner == value:
        return value
    if depth >= _MAX_DEPTH:
        return MASK
    masked = _mask_values(_mask_addresses(inner), _PARAMETER, depth + 1)
    return value if masked == inner else quote(masked, safe="")
