// One line of an export: an entry's columns, their canonical form (RFC 8785), its leaf.

const MAX_BODY_BYTES = 16 * 1024 * 1024;
const KNOWN_KINDS = ["genesis", "span", "gap", "key", "checkpoint", "fleet", "import"];
// In the order in which a row is checked; null stands for text.
const COLUMNS = [
  ["seq", MAX_INTEGER], ["epoch", 2n ** 32n - 1n], ["key_id", [8]], ["kind", null],
  ["sealed_at_unix_nano", MAX_INTEGER], ["fmt", null], ["prev_tag", [32]], ["trace_id", [16, 0]],
  ["span_id", [8, 0]], ["name", null], ["start_unix_nano", MAX_INTEGER],
  ["end_unix_nano", MAX_INTEGER], ["dedup_key", [32, 0]], ["tag", [32]],
];
const BODY_DOMAIN = utf8("bijotel/v1/body\0");
const ENTRY_DOMAIN = utf8("bijotel/v1/entry\0");

/** Read an entry's line, without its newline. */
function readEntry(octets) {
  const line = text(octets);
  const entry = line === null ? null : takeApart(line);
  if (!entry)
    throw new EvidenceError("malformed-entry", "line",
      `entry line: expected the columns of an entry, got “${(line ?? "").slice(0, 60)}”`);
  if (entry.bodyOctets.length > MAX_BODY_BYTES)
    throw new EvidenceError("limit-exceeded", "body", `body: expected at most ${MAX_BODY_BYTES} bytes`);
  for (const [name, limit] of COLUMNS)
    if (!isSound(name, entry[name], limit))
      throw new EvidenceError("type-mismatch", name, `entry line: ${name}: a wrong type or length`);
  // Written again from what was understood, it must be the same line: no other member, no
  // repeated one, no white space, no capital in a hash, no leading zero in a number.
  if (written(entry) !== line)
    throw new EvidenceError("malformed-entry", "line", `entry ${entry.seq}: the line is not in canonical form`);
  return entry;
}

function takeApart(line) {
  try {
    const entry = { ...JSON.parse(line) };
    // JSON may spell half of a surrogate pair, UTF-8 cannot carry one.
    if (!entry.body.isWellFormed()) return null;
    entry.bodyOctets = utf8(entry.body);
    for (const [name, limit] of COLUMNS) {
      if (!(name in entry)) return null;
      if (Array.isArray(limit)) entry[name] = unhex(entry[name]);
      else if (name.endsWith("_unix_nano")) entry[name] = integer(entry[name]);
      // A double cannot hold every number: these are read from the line itself.
      else if (limit !== null) entry[name] = integer(token(line, name)) ?? undefined;
      if (entry[name] === null && limit !== null) return null;
      if (typeof entry[name] === "string" && !entry[name].isWellFormed()) return null;
    }
    return entry;
  } catch {
    return null;
  }
}

const integer = (digits) =>
  typeof digits === "string" && /^-?[0-9]{1,4300}$/.test(digits) ? BigInt(digits) : null;

/** What stands behind a member's name; within text its quotation marks would be escaped. */
function token(line, name) {
  const mark = `"${name}":`;
  return /^[^,}]*/.exec(line.slice(line.lastIndexOf(mark) + mark.length, line.length))[0];
}

function isSound(name, value, limit) {
  if (Array.isArray(limit)) return limit.includes(value.length);
  if (limit !== null) return typeof value === "bigint" && value >= 0n && value <= limit;
  return typeof value === "string" && (name === "name" || /^[\x00-\x7f]{0,64}$/.test(value));
}

function written(entry) {
  const quoted = (name) => `"${name}":${JSON.stringify(entry[name])}`;
  const digits = (name) => `"${name}":"${hex(entry[name])}"`;
  const time = (name) => `"${name}":"${entry[name]}"`;
  const number = (name) => `"${name}":${entry[name]}`;
  const members = [
    quoted("body"), digits("dedup_key"), time("end_unix_nano"), number("epoch"), quoted("fmt"),
    digits("key_id"), quoted("kind"), quoted("name"), digits("prev_tag"),
    time("sealed_at_unix_nano"), number("seq"), digits("span_id"), time("start_unix_nano"),
    digits("tag"), digits("trace_id"),
  ];
  return `{${members.join(",")}}`;
}

const isKnown = (entry) => KNOWN_KINDS.includes(entry.kind) && entry.fmt === `${entry.kind}/1`;

/** The entry's leaf: every column in the order of the format, each behind its length, and the tag. */
async function leafOf(entry, chainId) {
  const items = [
    chainId, packed(entry.seq, 8), packed(entry.epoch, 4), entry.key_id, utf8(entry.kind),
    packed(entry.sealed_at_unix_nano, 8), utf8(entry.fmt), await sha256(BODY_DOMAIN, entry.bodyOctets),
    entry.prev_tag, entry.trace_id, entry.span_id, utf8(entry.name),
    packed(entry.start_unix_nano, 8), packed(entry.end_unix_nano, 8), entry.dedup_key,
  ];
  const header = items.flatMap((item) => [packed(item.length, 4), item]);
  return sha256(LEAF, ENTRY_DOMAIN, ...header, entry.tag);
}
