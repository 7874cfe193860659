// An export: a header with checkpoint, ranges and one proof, then a line for each entry.

const BATCH = { entries: 256, octets: 1024 * 1024 };

async function verifyExport(file, keys, options, result) {
  result.checked.kind = "export";
  const chunks = chunksOf(file, options.progress);
  try {
    await verifyLines(linesOf(chunks), keys, options, result);
    if (result.findings.length) await readOn(file, chunks);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    Object.assign(result, { findings: [], checked: { kind: "export" }, notChecked: [], signatures: [] });
    throw malformedExport("file", error.message);
  }
}

/** Read a compressed file to its end, whatever is in it. */
async function readOn(file, chunks) {
  if (await isCompressed(file)) while (!(await chunks.next()).done);
}

async function verifyLines(lines, keys, options, result) {
  try {
    await checkLines(lines, keys, options, result);
  } catch (error) {
    if (!(error instanceof EvidenceError)) throw error;
    addFinding(result, error.code, error.message, error.where, error.seq);
  }
}

async function checkLines(lines, keys, options, result) {
  const first = await lines.next();
  if (first.done || !first.value.length)
    throw Object.assign(new EvidenceError("truncated", "header", "export: the file is empty"), { seq: 0n });
  const header = readHeader(first.value);
  const head = await checkNote(utf8(header.checkpoint), keys, options, result);
  checkRanges(header.ranges, head.size);
  if (options.checkpoint) compareWithReaders(head, await readCheckpoint(options.checkpoint, keys));
  const [[from, to]] = header.ranges;
  const isWhole = header.ranges.length === 1 && from === 0n && to === head.size - 1n;
  const entries = new Entries(lines, header.ranges, head.chainId, result);
  await checkRoot(head, header, entries, result);
  Object.assign(result.checked, { entries: entries.count, kinds: entries.kinds, ranges: header.ranges });
  const shown = `entries ${showRanges(header.ranges)} of ${head.size}`;
  if (!isWhole && !options.partial) addFinding(result, "export-partial", `the export holds ${shown} only`, "ranges");
  result.notChecked.push(`entries sealed after the checkpoint of size ${head.size}`);
  if (!isWhole) result.notChecked.push("entries outside the ranges");
  result.notChecked.push("tags (they need the HMAC secret)");
}

const showRanges = (ranges) => ranges.map(([first, last]) => `${first} to ${last}`).join(", ");

/** Compare the root of the entries with the signed one. What stops the reading is a finding. */
async function checkRoot(head, header, entries, result) {
  try {
    const root = await rangesRoot(head.size, header.ranges, entries, header.proof);
    await entries.refuseSurplus();
    if (isEqual(root, head.root)) result.findings.push(...entries.newer);
    else addFinding(result, "checkpoint-mismatch", `the entries lead to root ${hex(root)}, the checkpoint of size ${head.size} signs ${hex(head.root)}`, "ranges");
  } catch (error) {
    if (!(error instanceof EvidenceError)) throw error;
    addFinding(result, error.code, error.message, error.where, error.seq);
  }
}

/** The first line: a checkpoint, the ranges behind it, and one proof for them. */
function readHeader(line) {
  const whole = text(line);
  try {
    const { checkpoint, format, proof, ranges } = JSON.parse(whole);
    const hashes = proof.map(unhex);
    const isSound =
      checkpoint.isWellFormed() && format === "bijotel-export/1" && hashes.every((hash) => hash) &&
      proof.every((hash) => hash === hash.toLowerCase()) &&
      ranges.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isSafeInteger));
    if (isSound && JSON.stringify({ checkpoint, format, proof, ranges }) === whole)
      return { checkpoint, proof: hashes, ranges: ranges.map((pair) => pair.map(BigInt)) };
  } catch {
    // No JSON, or no such object: said below.
  }
  throw malformedExport("header", "expected a header of bijotel-export/1");
}

function checkRanges(ranges, size) {
  if (!ranges.length) throw malformedExport("ranges", "ranges: expected at least one");
  let earliest = 0n;
  for (const [first, last] of ranges) {
    if (!(earliest <= first && first <= last && last < size))
      throw malformedExport("ranges", `range ${first} to ${last}: expected ${earliest} <= first <= last < ${size}`);
    earliest = last + 2n;
  }
}

/** The entries of an export in order; each is checked with the one before it. */
class Entries {
  #lines;
  #places;
  #chainId;
  #result;
  #ready = [];
  #last = null;

  constructor(lines, ranges, chainId, result) {
    this.#lines = lines;
    this.#places = placesOf(ranges);
    this.#chainId = chainId;
    this.#result = result;
    this.lastSeq = ranges.at(-1)[1];
    this.count = 0n;
    this.kinds = {};
    this.newer = [];
  }

  /** The next leaves, at least one and at most so many. */
  async take(most) {
    if (!this.#ready.length) await this.#fill();
    const { entry, error } = this.#ready[0];
    if (!entry) throw error;
    let end = this.#ready.findIndex((one) => one.error);
    if (end < 0) end = this.#ready.length;
    const taken = this.#ready.splice(0, BigInt(end) < most ? end : Number(most));
    for (const one of taken) this.#check(one);
    return taken.map((one) => one.leaf);
  }

  /** Read some lines ahead, so that their hashes are computed side by side. */
  async #fill() {
    await breathe();
    for (let octets = 0; this.#ready.length < BATCH.entries && octets < BATCH.octets; ) {
      const { value: place, done } = this.#places.next();
      if (done) break;
      const one = await this.#read(place);
      this.#ready.push(one);
      if (one.error) break;
      octets += one.entry.bodyOctets.length;
    }
    await Promise.all(
      this.#ready.filter((one) => one.entry).map(async (one) => { one.leaf = await leafOf(one.entry, this.#chainId); }),
    );
  }

  async #read({ seq, isFirst }) {
    try {
      const line = await this.#next();
      if (line === null) throw new EvidenceError("truncated", "seq", "the file ends where this entry should stand");
      const entry = readEntry(line);
      if (entry.seq > seq) throw new EvidenceError("seq-gap", "seq", `missing, the next one found is ${entry.seq}`);
      if (entry.seq < seq)
        throw Object.assign(new EvidenceError("seq-repeat", "seq", `stands where entry ${seq} should`), { seq: entry.seq });
      return { entry, isFirst };
    } catch (error) {
      if (!(error instanceof EvidenceError)) throw error;
      error.seq ??= seq;
      return { error };
    }
  }

  async #next() {
    const { value, done } = await this.#lines.next();
    return done ? null : value;
  }

  #check({ entry, isFirst }) {
    const before = isFirst ? (entry.seq === 0n ? new Uint8Array(32) : null) : this.#last.tag;
    if (before && !isEqual(entry.prev_tag, before))
      addFinding(this.#result, "link-mismatch", "prev_tag is not the tag of the entry before", "prev_tag", entry.seq);
    if (!isKnown(entry)) {
      const message = `entry ${entry.seq}: kind ${entry.kind}, format ${entry.fmt}: sealed by a newer library`;
      this.newer.push({ code: "format-unknown", seq: entry.seq, lastSeq: entry.seq, column: "fmt", message });
    }
    this.count += 1n;
    this.kinds[entry.kind] = (this.kinds[entry.kind] ?? 0) + 1;
    this.#last = entry;
  }

  /** Nothing may stand behind the last entry. */
  async refuseSurplus() {
    const behind = this.lastSeq + 1n;
    let seq = behind;
    try {
      const line = await this.#next();
      if (line === null) return;
      ({ seq } = readEntry(line));
    } catch (error) {
      if (error instanceof EvidenceError) error.seq ??= behind;
      throw error;
    }
    const code = seq < behind ? "seq-repeat" : "checkpoint-mismatch";
    throw Object.assign(new EvidenceError(code, "seq", "stands behind the last entry that the header names"), { seq });
  }
}

function* placesOf(ranges) {
  for (const [first, last] of ranges)
    for (let seq = first; seq <= last; seq++) yield { seq, isFirst: seq === first };
}
