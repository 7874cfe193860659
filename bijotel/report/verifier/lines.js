// The lines of a file, plain or compressed, as a stream, so that its size does not matter.
//
// How much of a damaged gzip file still arrives hangs on the size of buffers. So whoever finds a
// fault asks for the damage of the whole file, and what was read before it does not count.

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const PIECE_BYTES = 4096;

const malformedExport = (where, message) => new EvidenceError("malformed-export", where, `export: ${message}`);

async function isCompressed(file) {
  return startsWith(new Uint8Array(await file.slice(0, 2).arrayBuffer()), Uint8Array.of(0x1f, 0x8b));
}

/** The compression of a file is damaged. */
class DamageError extends Error {}

/** The lines of a file that is given in chunks, without their newlines. */
async function* linesOf(chunks) {
  let rest = [];
  let waiting = 0;
  for (;;) {
    const { value: chunk, done } = await chunks.next(); // not "for await": that would close them
    if (done) break;
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      if (waiting + end - start > MAX_LINE_BYTES) throw malformedExport("line", "a line over the limit");
      yield rest.length ? concat([...rest, chunk.subarray(start, end)]) : chunk.subarray(start, end);
      [rest, waiting, start] = [[], 0, end + 1];
    }
    if (start < chunk.length) rest.push(chunk.subarray(start));
    waiting += chunk.length - start;
    if (waiting > MAX_LINE_BYTES) throw malformedExport("line", "a line over the limit");
  }
  if (waiting) throw malformedExport("line", "a line without a final newline");
}

/** A browser unpacks a chunk whole, to a thousand times its size: give it small ones. */
const inPieces = () =>
  new TransformStream({
    transform(chunk, pieces) {
      for (let start = 0; start < chunk.length; start += PIECE_BYTES)
        pieces.enqueue(chunk.subarray(start, start + PIECE_BYTES));
    },
  });

async function* chunksOf(file, progress) {
  let stream = file.stream();
  if (await isCompressed(file)) {
    if (!globalThis.DecompressionStream)
      throw new UnavailableError("This browser cannot decompress gzip: decompress the file first.");
    stream = stream.pipeThrough(inPieces()).pipeThrough(new DecompressionStream("gzip"));
  }
  const reader = stream.getReader();
  let octets = 0;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      progress((octets += value.length));
      yield value;
    }
  } catch (error) {
    if (error.name === "NotReadableError" || error.name === "NotFoundError")
      throw new UnavailableError(`The file cannot be read: ${error.message}`);
    throw new DamageError(`cannot be decompressed: ${error.message}`);
  }
}

let breathedAt = 0;

/** Let the page answer its reader now and then; promises alone would not. */
async function breathe() {
  if (performance.now() - breathedAt < 50) return;
  await new Promise((resume) => setTimeout(resume));
  breathedAt = performance.now();
}
