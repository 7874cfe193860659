// Octets, text and hashes. SHA-256 is the browser's own (WebCrypto).

/** The evidence does not hold. `code` is the finding that says so, `where` its place. */
class EvidenceError extends Error {
  constructor(code, where, message) {
    super(message);
    this.code = code;
    this.where = where;
  }
}

/** The reader asked wrongly: no key, or a line that is no key. */
class UsageError extends Error {}

/** This browser cannot do what the check needs. */
class UnavailableError extends Error {}

const UTF8 = new TextEncoder();
const STRICT_UTF8 = { fatal: true, ignoreBOM: true };

const utf8 = (text) => UTF8.encode(text);

/** Decode UTF-8; null for octets that are none. */
function text(octets) {
  try {
    return new TextDecoder("utf-8", STRICT_UTF8).decode(octets);
  } catch {
    return null;
  }
}

function concat(parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

const isEqual = (a, b) => a.length === b.length && a.every((octet, place) => octet === b[place]);

const startsWith = (octets, start) => isEqual(octets.subarray(0, start.length), start);

const hex = (octets) => Array.from(octets, (octet) => octet.toString(16).padStart(2, "0")).join("");

/** Decode hexadecimal digits of either case; null for anything else. */
function unhex(digits) {
  if (typeof digits !== "string" || !/^(?:[0-9a-fA-F]{2})*$/.test(digits)) return null;
  const octets = new Uint8Array(digits.length / 2);
  for (let place = 0; place < octets.length; place++)
    octets[place] = parseInt(digits.substr(2 * place, 2), 16);
  return octets;
}

/** Base64 has many spellings of the same octets; only the one we would write is accepted. */
function unbase64(encoded) {
  try {
    const binary = atob(encoded);
    if (btoa(binary) !== encoded) return null;
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

/** An unsigned integer, big-endian. */
function packed(value, bytes) {
  const octets = new Uint8Array(bytes);
  for (let place = bytes - 1, rest = BigInt(value); place >= 0; place--, rest >>= 8n)
    octets[place] = Number(rest & 255n);
  return octets;
}

async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", concat(parts)));
}
