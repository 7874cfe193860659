"""Credentials are masked; everything else of an address stays."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bijotel.rag.redact import names_secret, redact_address, redact_text

ADDRESSES = {
    # pre-signed addresses
    "https://b.s3.example.com/private/r.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=EXAMPLE%2F20300101%2Feu&X-Amz-Signature=deadbeef&page=3": "https://b.s3.example.com/private/r.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=REDACTED&X-Amz-Signature=REDACTED&page=3",
    "https://h/r?x-amz-security-token=abc/+=&X-AMZ-SIGNATURE=1#p=2": "https://h/r?x-amz-security-token=REDACTED&X-AMZ-SIGNATURE=REDACTED#p=2",
    "https://h/r?X%2DAmz%2DSignature=abc&a=1": "https://h/r?X%2DAmz%2DSignature=REDACTED&a=1",
    "https://h/r?AWSAccessKeyId=AK&Signature=s%2B&Expires=17": "https://h/r?AWSAccessKeyId=REDACTED&Signature=REDACTED&Expires=17",
    "https://storage.googleapis.com/b/o?X-Goog-Date=1&X-Goog-Credential=c&X-Goog-Signature=s": "https://storage.googleapis.com/b/o?X-Goog-Date=1&X-Goog-Credential=REDACTED&X-Goog-Signature=REDACTED",
    "https://a.blob.core.windows.net/c/f.pdf?sv=2024-01-01&sp=r&sig=a%2Fb%3D&se=2030": "https://a.blob.core.windows.net/c/f.pdf?sv=2024-01-01&sp=r&sig=REDACTED&se=2030",
    "https://h/cb#access_token=abc&state=1": "https://h/cb#access_token=REDACTED&state=1",
    "https://h/x?key=AIza&api_key=k&Token=t&q=what": "https://h/x?key=REDACTED&api_key=REDACTED&Token=REDACTED&q=what",
    # user and password
    "postgresql://svc+rag:p%40ss@db.internal:5432/rag": "postgresql://svc+rag:REDACTED@db.internal:5432/rag",
    "postgres://svc:p@ss/w#1@db:5432/x": "postgres://svc:REDACTED@db:5432/x",
    "postgres://svc:pa/ss@db/x": "postgres://svc:REDACTED@db/x",
    "postgres://svc:pa?ss@db/x": "postgres://svc:REDACTED@db/x",
    "postgres://svc:12/34@db/x": "postgres://svc:REDACTED@db/x",
    "postgres://svc:two words@db/x": "postgres://svc:REDACTED@db/x",
    'postgres://svc:quo"te@db/x': "postgres://svc:REDACTED@db/x",
    "s3://KEYID:topsecret@bucket/k": "s3://KEYID:REDACTED@bucket/k",
    "redis://:secret@cache:6379/0": "redis://:REDACTED@cache:6379/0",
    "mongodb://u:p@h1:27017,h2:27017/db?replicaSet=r": "mongodb://u:REDACTED@h1:27017,h2:27017/db?replicaSet=r",
    "https://u:p@host/path?email=a@b.com&n=1": "https://u:REDACTED@host/path?email=a@b.com&n=1",
    "https://u:p@registry.example.com/@scope/pkg": "https://u:REDACTED@registry.example.com/@scope/pkg",
    "https://u:p@[::1]:8443/x": "https://u:REDACTED@[::1]:8443/x",
    "//u:p@host/x": "//u:REDACTED@host/x",
    "jdbc:postgresql://host/db?user=x&password=y&ssl=true": "jdbc:postgresql://host/db?user=x&password=REDACTED&ssl=true",
    # an address inside another
    "https://proxy/fetch?u=postgres://svc:pw@db/x": "https://proxy/fetch?u=postgres://svc:REDACTED@db/x",
    "https://h/go?url="
    + quote("https://s3/x?X-Amz-Signature=abc&p=1", safe="")
    + "&n=2": "https://h/go?url="
    + quote("https://s3/x?X-Amz-Signature=REDACTED&p=1", safe="")
    + "&n=2",
    # connection strings
    "Server=db;User Id=svc;Password=p&w#1;Database=x": "Server=db;User Id=svc;Password=REDACTED;Database=x",
    "Driver={x};Pwd={a;b}}c};Uid=u": "Driver={x};Pwd=REDACTED;Uid=u",
    "host=db user=svc password='a b\\'c' dbname=x": "host=db user=svc password='REDACTED' dbname=x",
    "AccountName=a;AccountKey=abc==;EndpointSuffix=core.windows.net": "AccountName=a;AccountKey=REDACTED;EndpointSuffix=core.windows.net",
    "BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=abc": "BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=REDACTED",
    "?sv=2024&sig=abc": "?sv=2024&sig=REDACTED",
}

HARMLESS = [
    "",
    "warranty.md",
    "docs/a.md#part=2",
    "https://example.com/a?page=3&sort=asc#top",
    "https://example.com:8443/@user/post",
    "https://example.com:8080/users/a@b.com",
    "https://medium.com/@user/post:1",
    "https://[::1]:8080/x@y",
    "https://h/list?page_token=abc&nextPageToken=d&continuation_token=e",
    "s3://bucket/key@v2:final",
    "gs://bucket/2024-01-01T10:00:00@v2.pdf",
    "mailto:someone@example.com",
    "git@github.com:org/repo.git",
    "pkg:npm/foo@1.0",
    "redis://cache:6379/0",
    "postgresql://db.internal:5432/rag?user=svc@tenant",
    "file:///srv/docs/a@b:c.md",
    "C:\\docs\\a.pdf",
    "max_tokens=5&author=x&design=y",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_credentials_in_an_address_are_masked(address):
    """Signatures, tokens and passwords go; host, user, path, order and other values stay."""
    assert redact_address(address) == ADDRESSES[address]


@pytest.mark.parametrize("address", [a for a in ADDRESSES if "two words" not in a])
def test_credentials_in_running_text_are_masked(address):
    """An address that a text quotes is masked as it would be alone."""
    expected = f"could not read {ADDRESSES[address]} , giving up"
    assert redact_text(f"could not read {address} , giving up") == expected


@pytest.mark.parametrize("address", HARMLESS)
def test_an_address_without_credentials_stays(address):
    """Nothing is masked that is no credential."""
    assert redact_address(address) == address
    assert redact_text(address) == address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"password": "x y", "n": 1}', '{"password": "REDACTED", "n": 1}'),
        ("{'api_key': 'k', 'n': 1}", "{'api_key': 'REDACTED', 'n': 1}"),
        ("api-key: abc and more", "api-key: REDACTED and more"),
        ("see a@b.com: secret://vault/x", "see a@b.com: secret://vault/x"),
        ("the key = 3 and signature: f(x)", "the key = 3 and signature: f(x)"),
    ],
)
def test_named_secrets_in_text_are_masked(text, expected):
    """Names that are telling in any text hide their values; ordinary words do not."""
    assert redact_text(text) == expected


def test_addresses_nested_deeper_than_anyone_does_are_masked_whole():
    """Three levels are taken apart, the fourth is not worth it."""
    nested = "https://h/x?sig=abc&p=1"
    for _ in range(5):
        nested = f"https://h/go?url={quote(nested, safe='')}&n=1"
    masked = redact_address(nested)
    assert masked.startswith("https://h/go?url=https%3A%2F%2Fh%2Fgo%3Furl%3D")
    assert "abc" not in masked
    assert "REDACTED" in masked
    harmless = "https://h/go?url=100%25&q=%zz"
    assert redact_address(harmless) == harmless


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("password", True),
        ("DB-Password", True),
        ("openai_api_key", True),
        ("X-Amz-Security-Token", True),
        ("Authorization", True),
        ("client.secret", True),
        ("total_tokens", False),
        ("next_page_token", False),
        ("signature", False),
        ("key", False),
        ("author", False),
    ],
)
def test_names_of_secrets(name, is_secret):
    """A metadata key tells by its end, in any spelling."""
    assert names_secret(name) is is_secret


_ALPHABET = st.sampled_from([*"ab1:@/?#&=%;{}'\" \n.", "//", "sig=", "password=", "%3D", "https:"])


@given(st.lists(_ALPHABET, max_size=30).map("".join))
def test_masking_is_done_once_and_for_all(text):
    """What is masked already is not masked further."""
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.text(alphabet="abc123@/#?:%+!$&=;'", max_size=12))
def test_no_part_of_a_database_password_stays(password):
    """Whatever stands between the first colon and the last at sign is gone, malformed or not."""
    masked = redact_address(f"postgres://svc:x{password}Zq@db.internal:5432/rag")
    assert masked == "postgres://svc:REDACTED@db.internal:5432/rag"


@pytest.mark.parametrize(
    "hostile", ["//a:b@" * 10_000, "p={" * 20_000, "a" * 60_000, "?a=%25%25" * 8_000, "x " * 30_000]
)
def test_hostile_text_takes_no_time(hostile):
    """Sixty thousand characters made to be slow take less than a second."""
    begin = time.thread_time()
    redact_text(hostile)
    redact_address(hostile)
    assert time.thread_time() - begin < 1
