// The Merkle tree of RFC 6962: leaves are hashed behind a 0, inner nodes behind a 1.

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

const nodeHash = (left, right) => sha256(NODE, left, right);

/** The root that one leaf and its siblings lead to (RFC 9162 section 2.1.3.2). */
async function inclusionRoot(leaf, index, size, hashes) {
  if (index >= size)
    throw new EvidenceError("proof-rejected", "proof", `index ${index}: expected 0 to ${size - 1n} in a tree of ${size} leaves`);
  let [node, place, last] = [leaf, index, size - 1n];
  for (const sibling of hashes) {
    if (last === 0n)
      throw new EvidenceError("proof-rejected", "proof", `${hashes.length} hashes: too many for leaf ${index} of ${size}`);
    if (place & 1n || place === last) {
      node = await nodeHash(sibling, node);
      for (; !(place & 1n) && place; place >>= 1n) last >>= 1n;
    } else {
      node = await nodeHash(node, sibling);
    }
    place >>= 1n;
    last >>= 1n;
  }
  if (last)
    throw new EvidenceError("proof-rejected", "proof", `${hashes.length} hashes: too few for a tree of ${size} leaves`);
  return node;
}

/** A subtree that is hashed from all its leaves, a batch at a time. */
class Subtree {
  #waiting = [];

  /** Append leaves; each level keeps the one node that has no sibling yet. */
  async add(leaves) {
    for (let level = 0, nodes = leaves; nodes.length; level++) {
      const single = this.#waiting[level];
      const row = single ? [single, ...nodes] : nodes;
      this.#waiting[level] = row.length % 2 ? row.at(-1) : null;
      const pairs = Array.from({ length: Math.floor(row.length / 2) }, (_, place) => 2 * place);
      nodes = await Promise.all(pairs.map((place) => nodeHash(row[place], row[place + 1])));
    }
  }

  async root() {
    const edge = this.#waiting.filter((node) => node);
    let root = edge.shift();
    for (const left of edge) root = await nodeHash(left, root);
    return root;
  }
}

/** The left half of a tree is the largest power of two that is smaller than the whole. */
function splitPoint(start, end) {
  return start + (1n << BigInt((end - start - 1n).toString(2).length - 1));
}

/** Walk the tree from the root, left first, and say what becomes of each subtree. */
function* walk(start, end, ranges) {
  const [first, last] = ranges[firstEndingFrom(ranges, start)] ?? [end, end];
  if (first >= end) {
    yield { step: "skipped", start, end };
  } else if (first <= start && end - 1n <= last) {
    yield { step: "covered", start, end };
  } else {
    const split = splitPoint(start, end);
    yield* walk(start, split, ranges);
    yield* walk(split, end, ranges);
    yield { step: "joined", start, end };
  }
}

function firstEndingFrom(ranges, start) {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][1] < start) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The root that exported leaves and the hashes of all other subtrees lead to. */
async function rangesRoot(size, ranges, leaves, proof) {
  const hashes = proof.values();
  const stack = [];
  for (const { step, start, end } of walk(0n, size, ranges)) {
    if (step === "skipped") {
      const hash = hashes.next().value;
      if (!hash)
        throw new EvidenceError("malformed-export", "proof", `proof: no hash for entries ${start} to ${end - 1n}`);
      if (hash.length !== 32)
        throw new EvidenceError("malformed-export", "proof", `a hash of ${hash.length} bytes: expected 32`);
      stack.push(hash);
    } else if (step === "covered") {
      stack.push(await coveredRoot(end - start, leaves));
    } else {
      const right = stack.pop();
      stack.push(await nodeHash(stack.pop(), right));
    }
  }
  if (!hashes.next().done)
    throw new EvidenceError("malformed-export", "proof", "proof: more hashes than the ranges demand");
  return stack.pop();
}

async function coveredRoot(count, leaves) {
  const subtree = new Subtree();
  for (let missing = count; missing > 0n; ) {
    const taken = await leaves.take(missing);
    await subtree.add(taken);
    missing -= BigInt(taken.length);
  }
  return subtree.root();
}
