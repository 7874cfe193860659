// Verify one evidence file: an export of a log, or the proof of one entry.
//
//     signature -> note (origin, size, root) -> Merkle tree -> leaf -> entry's columns -> body
//
// Each kind of file has a script of its own; here is what they share.

const COULD_NOT_CHECK = ["format-unknown"];

/**
 * Verify an evidence file against public keys alone.
 *
 * `lines` are verifier key lines; `partial` accepts part of a log; `checkpoint` is the reader's
 * own copy of the signed note, as octets; `progress` is told how many octets were read.
 */
async function verifyEvidence(file, { lines, partial = false, checkpoint = null, progress = () => {} }) {
  const result = { findings: [], checked: {}, notChecked: [], signatures: [] };
  try {
    if (!globalThis.crypto?.subtle)
      throw new UnavailableError("WebCrypto is only there for local files and https: save this page and open the copy.");
    const keys = await readKeys(lines);
    const start = new Uint8Array(await file.slice(0, 9).arrayBuffer());
    const verify = startsWith(start, utf8("c2sp.org/")) ? verifyProof : verifyExport;
    await verify(file, keys, { partial, checkpoint, progress }, result);
  } catch (error) {
    if (error instanceof UsageError) return { ...result, exitCode: 2, reason: error.message };
    if (error instanceof UnavailableError) return { ...result, exitCode: 3, reason: error.message };
    if (!(error instanceof EvidenceError)) throw error;
    addFinding(result, error.code, error.message, error.where, error.seq);
  }
  result.findings = mergeRuns(result.findings);
  const isFalse = result.findings.some((finding) => !COULD_NOT_CHECK.includes(finding.code));
  return { ...result, exitCode: isFalse ? 1 : result.findings.length ? 3 : 0 };
}

async function readKeys(lines) {
  const keys = await Promise.all(lines.map(readKey));
  if (!keys.length) throw new UsageError("verifier key: at least one is required");
  if (keys.every((key) => key.algorithm !== 1))
    throw new UnavailableError("No browser can check ML-DSA-44 signatures: give the Ed25519 key too, or use tools/verify_evidence.py.");
  return keys;
}

function addFinding(result, code, message, column, seq = null) {
  const shown = seq === null ? message : `entry ${seq}: ${message.replace(`entry ${seq}: `, "")}`;
  result.findings.push({ code, seq, lastSeq: seq, column, message: shown });
}

function mergeRuns(findings) {
  const merged = [];
  for (const finding of findings) {
    const last = merged.at(-1);
    const isSame = last && last.code === finding.code && last.column === finding.column;
    if (isSame && last.lastSeq !== null && finding.seq === last.lastSeq + 1n) last.lastSeq = finding.lastSeq;
    else merged.push(finding);
  }
  return merged;
}

function compareWithReaders(own, readers) {
  const isSame = own.size === readers.size && isEqual(own.root, readers.root);
  if (own.origin === readers.origin && isSame) return;
  const readersOwn = `the reader's own checkpoint has size ${readers.size}, root ${hex(readers.root)}`;
  const what = `size ${own.size}, root ${hex(own.root)}: ${readersOwn}`;
  if (own.origin !== readers.origin)
    throw new EvidenceError("checkpoint-origin", "origin line", `origin ${own.origin}: the reader's own checkpoint is of ${readers.origin}`);
  if (own.size === readers.size)
    throw new EvidenceError("checkpoint-inconsistent", "size", `${what}; both are signed: they prove misconduct of the signer`);
  throw new EvidenceError("checkpoint-mismatch", "size", what);
}

/** What is said of the checkpoint in either kind of file. */
async function checkNote(octets, keys, options, result) {
  const head = await readCheckpoint(octets, keys);
  result.signatures = head.signatures;
  Object.assign(result.checked, { origin: head.origin, size: head.size, root: hex(head.root) });
  for (const { label, why } of head.signatures.filter(({ state, why }) => state !== "holds" && why.startsWith("ML-DSA")))
    result.notChecked.push(`the signature of ${label} (${why})`);
  return head;
}

// For a page's own tests, and for whoever opens the console.
globalThis.bijotel = { verifyEvidence, readCheckpoint, readKey, isSigned };
