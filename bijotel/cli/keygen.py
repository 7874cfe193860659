"""``bijotel keygen``: make an HMAC key, or the key pairs that sign checkpoints."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from bijotel.cli.options import json_option
from bijotel.cli.session import Session
from bijotel.cli.text import escape
from bijotel.errors import ConfigurationError
from bijotel.key_files import PRIVATE, NewFile, write_new_files
from bijotel.keys import SECRET_FILE_VARIABLE, HmacKey
from bijotel.signing import SigningKey, generate_signing_key, public_path, save_signing_keys
from bijotel.verifier_key import DEFAULT_KEY_NAME, ML_DSA_44


@click.command(short_help="Make an HMAC key, or a pair that signs checkpoints.")
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="Where to write the secret (mode 0600); - for an HMAC key on standard output.",
)
@click.option("--signing", is_flag=True, help="Make a signing key, and its public half beside it.")
@click.option(
    "--name",
    metavar="NAME",
    help=f"Name of the signing key; checkpoints carry it.  [default: {DEFAULT_KEY_NAME}]",
)
@click.option("--ml-dsa", is_flag=True, help="Make a second pair, ML-DSA-44, for the long term.")
@json_option
@click.pass_obj
def keygen(session: Session, target: str, *, signing: bool, name: str | None, ml_dsa: bool) -> None:
    """Make an HMAC key of 32 random bytes. Never overwrites a file.

    Whoever has the key can forge entries: keep it where nobody who can write to
    the store can read it.

    With --signing: an Ed25519 private key, and beside it the public key (.pub) that
    auditors get. Whoever has the private key can vouch for a log that never was.
    """
    if signing:
        _make_signing_keys(session, target, name or DEFAULT_KEY_NAME, ml_dsa=ml_dsa)
    elif name is not None or ml_dsa:
        raise ConfigurationError("--name and --ml-dsa go with --signing")
    elif target == "-":
        _print_hmac_key(session)
    else:
        _make_hmac_key(session, Path(target))


def _print_hmac_key(session: Session) -> None:
    if session.json:
        raise ConfigurationError("-o -: the key itself is no JSON document; leave --json out")
    material = secrets.token_bytes(32)
    session.output.line(material.hex())
    session.messages.line(f"key id: {HmacKey(material).key_id.hex()}")


def _make_hmac_key(session: Session, path: Path) -> None:
    material = secrets.token_bytes(32)
    key_id = HmacKey(material).key_id.hex()
    write_new_files([NewFile(path, f"{material.hex()}\n".encode(), PRIVATE)])
    if session.json:
        session.output.document({"key_id": key_id, "file": str(path)})
        return
    session.output.line(f"key id:  {key_id}")
    session.output.line(f"written: {escape(str(path))} (mode 0600)")
    session.output.line(f"seal:    export {SECRET_FILE_VARIABLE}={escape(str(path.absolute()))}")
    session.output.line(f"verify:  bijotel verify --db STORE --key file:{escape(str(path))}")


def _make_signing_keys(session: Session, target: str, name: str, *, ml_dsa: bool) -> None:
    if target == "-":
        raise ConfigurationError("-o -: a signing key is written to files only")
    path = Path(target)
    pairs = [(generate_signing_key(name), path)]
    if ml_dsa:
        second = path.with_name(f"{path.stem}.mldsa{path.suffix or '.pem'}")
        pairs.append((generate_signing_key(name, ML_DSA_44), second))
    save_signing_keys(*pairs)
    if session.json:
        session.output.document({"keys": [_document(*pair) for pair in pairs]})
        return
    for key, private in pairs:
        session.output.line(f"key:     {key.verifier.name}+{key.verifier.key_hash.hex()}")
        session.output.line(f"written: {escape(str(private))} (mode 0600)")
        session.output.line(f"written: {escape(str(public_path(private)))} (for auditors)")
    options = " ".join(f"--signing-key file:{escape(str(private))}" for _, private in pairs)
    session.output.line(f"sign:    bijotel checkpoint --db STORE {options}")


def _document(key: SigningKey, path: Path) -> dict[str, str]:
    return {
        "public_key": str(key.verifier),
        "file": str(path),
        "public_file": str(public_path(path)),
    }
