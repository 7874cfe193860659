// Verifier keys, signed notes and checkpoints (C2SP signed-note, tlog-checkpoint).
// Nothing in a note is believed before its signature was checked.

const MAX_NOTE_BYTES = 1_000_000;
const MAX_SIGNATURES = 100;
const MAX_INTEGER = 2n ** 63n - 1n;
const KEY_BYTES = { 1: 32, 6: 1312 };
const KEY_NAMES = { 1: "Ed25519", 6: "ML-DSA-44" };
const DECIMAL = /^(?:0|[1-9][0-9]{0,18})$/;
const CHAIN_ORIGIN = /^([^\n]+)\/([0-9a-f]{32})$/;
// What Python calls white space, which is what the other verifiers go by.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SIGNATURE_LINE = new RegExp(`^— ([^${SPACE}+]+) ([A-Za-z0-9+/]+={0,2})$`, "u");

const malformedNote = (message, where = "note") =>
  new EvidenceError("malformed-note", where, `note: ${message}`);

/** Read a verifier key line: NAME+HASH+KEY. */
async function readKey(line) {
  const match = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/.exec(line);
  const octets = match && unbase64(match[3]);
  if (!octets)
    throw new UsageError(`verifier key: expected NAME+HASH+KEY on one line, got “${line.slice(0, 60)}”`);
  const [, name, keyHash] = match;
  if (name.length > 200 || !/^[!-*,-~]*[!-*,-.0-~]$/.test(name))
    throw new UsageError(`verifier key: “${name.slice(0, 40)}” is no name that a key can have`);
  if (KEY_BYTES[octets[0]] !== octets.length - 1)
    throw new UsageError(`verifier key ${name}: expected an Ed25519 or ML-DSA-44 key`);
  const computed = hex((await sha256(utf8(`${name}\n`), octets)).subarray(0, 4));
  if (computed !== keyHash)
    throw new UsageError(`verifier key ${name}: expected hash ${computed} for this name and key, got ${keyHash}`);
  return { name, keyHash, algorithm: octets[0], octets: octets.subarray(1), label: `${name}+${keyHash}` };
}

/** Take a signed note apart. */
function readNote(octets) {
  if (octets.length > MAX_NOTE_BYTES)
    throw malformedNote(`${octets.length} bytes: expected at most ${MAX_NOTE_BYTES}`);
  const whole = text(octets);
  if (whole === null) throw malformedNote("expected UTF-8", `line ${lineOfBadOctet(octets)}`);
  const control = whole.search(/[\x00-\x09\x0b-\x1f]/);
  if (control >= 0) throw malformedNote("a control character", `line ${lineAt(whole, control)}`);
  if (whole.startsWith("\ufeff")) throw malformedNote("starts with a byte order mark", "line 1");
  const border = whole.lastIndexOf("\n\n");
  const rest = whole.slice(border + 2);
  if (border < 0 || !rest)
    throw malformedNote("no signature: expected text, an empty line and signature lines");
  if (!rest.endsWith("\n"))
    throw malformedNote(`line ${lineAt(whole, whole.length)}: the final newline is missing`);
  const lines = rest.slice(0, -1).split("\n");
  if (lines.length > MAX_SIGNATURES)
    throw malformedNote(`${lines.length} signatures: expected at most ${MAX_SIGNATURES}`);
  const first = lineAt(whole, border) + 2;
  const signatures = lines.map((line, place) => readSignature(line, `line ${first + place}`));
  return { text: whole.slice(0, border + 1), signatures };
}

const lineAt = (whole, place) => whole.slice(0, place).split("\n").length;

function lineOfBadOctet(octets) {
  let good = 0;
  for (let step = octets.length; step >= 1; step = Math.floor(step / 2))
    while (good + step <= octets.length && isUtf8Start(octets.subarray(0, good + step))) good += step;
  return octets.subarray(0, good).filter((octet) => octet === 10).length + 1;
}

function isUtf8Start(octets) {
  try {
    new TextDecoder("utf-8", STRICT_UTF8).decode(octets, { stream: true });
    return true;
  } catch {
    return false;
  }
}

function readSignature(line, where) {
  const match = SIGNATURE_LINE.exec(line);
  if (!match) throw malformedNote("expected “— NAME BASE64”", where);
  const octets = unbase64(match[2]);
  if (!octets || octets.length <= 4)
    throw malformedNote("the signature is not valid base64 of at least 5 bytes", where);
  return { name: match[1], keyHash: hex(octets.subarray(0, 4)), octets: octets.subarray(4) };
}

/** Read the three lines that a checkpoint signs. */
function readTreeHead(signed) {
  const lines = signed.split("\n");
  if (lines.length !== 4 || lines[3] || !lines[0])
    throw malformedNote(`expected origin, size and root hash, got ${lines.length - 1} lines`, "note text");
  const [origin, size, encoded] = lines;
  if (utf8(origin).length > 255) throw malformedNote("origin over 255 bytes", "line 1");
  if (!DECIMAL.test(size) || BigInt(size) > MAX_INTEGER)
    throw malformedNote("expected a size in decimal", "line 2");
  const root = unbase64(encoded);
  if (root?.length !== 32) throw malformedNote("expected base64 of 32 bytes", "line 3");
  return { origin, size: BigInt(size), root };
}

/** Read a checkpoint and check that every one of these keys signed it. */
async function readCheckpoint(octets, keys) {
  const note = readNote(octets);
  const head = readTreeHead(note.text);
  const signatureOf = (key) =>
    note.signatures.find((one) => one.name === key.name && one.keyHash === key.keyHash);
  const foreign = keys.filter((key) => CHAIN_ORIGIN.exec(head.origin)?.[1] !== key.name);
  // A key that has not signed because it is another log's is told so. Where its signature is
  // there, that decides first: without it nothing in the text may be believed.
  if (foreign.length && !foreign.some(signatureOf)) throw ofAnotherLog(head, foreign[0]);
  for (const key of keys) await checkSignature(key, signatureOf(key), utf8(note.text));
  if (foreign.length) throw ofAnotherLog(head, foreign[0]);
  return { ...head, chainId: unhex(head.origin.slice(-32)), signatures: describeSignatures(note, keys) };
}

const ofAnotherLog = (head, key) =>
  new EvidenceError("checkpoint-origin", "origin line",
    `origin “${head.origin.slice(0, 300)}”: expected ${key.name}/ and a chain id: a checkpoint of another log`);

async function checkSignature(key, signature, message) {
  if (!signature)
    throw new EvidenceError("checkpoint-signature", "note", `signature: key ${key.label} has not signed this note`);
  if (key.algorithm === 1 && !(await isSigned(key, signature.octets, message)))
    throw new EvidenceError("checkpoint-signature", "signature line", `signature: that of key ${key.label} does not hold`);
}

async function isSigned(key, signature, message) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", key.octets, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name === "DataError") return false;
    throw new UnavailableError(
      "This browser cannot check Ed25519 signatures. Use a newer one, or tools/verify_evidence.py.");
  }
  return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, message);
}

/** Say of every signature line what became of it; called when none of the checks failed. */
function describeSignatures(note, keys) {
  return note.signatures.map((one) => {
    const key = keys.find((each) => each.name === one.name && each.keyHash === one.keyHash);
    const label = `${one.name}+${one.keyHash}`;
    if (!key) return { label, state: "not checked", why: "no such key was given" };
    if (key.algorithm === 1) return { label, state: "holds", why: KEY_NAMES[1] };
    return { label, state: "not checked", why: `${KEY_NAMES[key.algorithm]}: no browser can check it` };
  });
}
