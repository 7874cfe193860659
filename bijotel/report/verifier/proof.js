// The proof of one entry (C2SP tlog-proof): the entry itself, its place, hashes, a checkpoint.

const MAX_PROOF_BYTES = Math.floor((MAX_LINE_BYTES * 4) / 3) + MAX_NOTE_BYTES + 8192;
const MAX_HASHES = 63;
const PROOF = "c2sp.org/tlog-proof@v1";

const malformedProof = (message) => new EvidenceError("malformed-proof", "proof", `proof: ${message}`);

async function verifyProof(file, keys, options, result) {
  result.checked.kind = "proof of one entry";
  if (file.size > MAX_PROOF_BYTES) throw malformedProof(`${file.size} bytes: expected at most ${MAX_PROOF_BYTES}`);
  const proof = readProof(new Uint8Array(await file.arrayBuffer()));
  const head = await checkNote(proof.note, keys, options, result);
  if (options.checkpoint) compareWithReaders(head, await readCheckpoint(options.checkpoint, keys));
  const entry = readEntry(proof.extra);
  if (entry.seq !== proof.index) throw malformedProof(`index ${proof.index}: the entry's seq is ${entry.seq}`);
  const computed = await inclusionRoot(await leafOf(entry, head.chainId), entry.seq, head.size, proof.hashes);
  if (!isEqual(computed, head.root))
    throw new EvidenceError("checkpoint-mismatch", "root", `entry ${entry.seq}: the checkpoint of size ${head.size} does not cover it`);
  Object.assign(result.checked, { entries: 1n, ranges: [[entry.seq, entry.seq]], entry });
  result.notChecked.push("every other entry of the log", "the tag (it needs the HMAC secret)");
}

/** C2SP tlog-proof: extra (the entry's line), index, hashes, empty line, checkpoint. */
function readProof(octets) {
  const border = octets.findIndex((octet, place) => octet === 10 && octets[place + 1] === 10);
  const lines = new TextDecoder("latin1").decode(octets.subarray(0, Math.max(border, 0))).split("\n");
  if (border < 0 || lines[0] !== PROOF) throw malformedProof(`expected ${PROOF}, hashes, an empty line and a checkpoint`);
  if (lines.length < 3 || lines.length > MAX_HASHES + 3) throw malformedProof(`${lines.length} lines before the checkpoint: expected 3 to 66`);
  const extra = unbase64(field(lines[1], "extra"));
  const index = field(lines[2], "index");
  if (!extra) throw malformedProof("line 2: the extra data is not valid base64");
  if (!DECIMAL.test(index) || BigInt(index) > MAX_INTEGER) throw malformedProof("line 3: expected an index in decimal");
  const hashes = lines.slice(3).map(unbase64);
  const bad = hashes.findIndex((hash) => hash?.length !== 32);
  if (bad >= 0)
    throw new EvidenceError("malformed-proof", `line ${bad + 4}`, `proof: line ${bad + 4}: expected base64 of 32 bytes`);
  return { extra, index: BigInt(index), hashes, note: octets.subarray(border + 2) };
}

function field(line, name) {
  if (!line.startsWith(`${name} `)) throw malformedProof(`expected a line “${name} ...”`);
  return line.slice(name.length + 1);
}
