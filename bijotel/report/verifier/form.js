// The form around the verifier: a file and a key in, a verdict with its reasons out.

const VERDICTS = {
  0: ["HOLDS", "good"],
  1: ["FALSE", "bad"],
  2: ["ASKED WRONGLY", "doubtful"],
  3: ["NOT CHECKED", "doubtful"],
};
const MAX_BODY_SHOWN = 200_000;

function startVerifier() {
  const byId = (name) => document.getElementById(`verifier-${name}`);
  const [form, drop, output] = [byId("form"), byId("drop"), byId("result")];
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    const show = (octets) => output.replaceChildren(`Reading: ${(octets / 1e6).toFixed(1)} MB`);
    show(0);
    try {
      const own = byId("checkpoint").files[0];
      const result = await verifyEvidence(byId("file").files[0], {
        lines: byId("keys").value.split("\n").map((line) => line.trim()).filter((line) => line),
        partial: byId("partial").checked,
        checkpoint: own ? new Uint8Array(await own.arrayBuffer()) : null,
        progress: show,
      });
      output.replaceChildren(...describe(result));
    } catch (error) {
      output.replaceChildren(...describe({ exitCode: 3, reason: `${error}`, findings: [], signatures: [], checked: {}, notChecked: [] }));
    }
    button.disabled = false;
  });
  for (const kind of ["dragover", "drop"]) drop.addEventListener(kind, (event) => event.preventDefault());
  drop.addEventListener("drop", (event) => { byId("file").files = event.dataTransfer.files; });
}

function describe({ exitCode, reason, findings, signatures, checked, notChecked }) {
  const [word, style] = VERDICTS[exitCode];
  return [
    element("p", { class: `verdict ${style}`, "data-exit-code": exitCode }, element("strong", {}, word), " ",
      ...visible(reason ?? summary(exitCode, checked))),
    findings.length ? table("Findings", ["Code", "Entry", "Column", "What"], findings.map(findingRow)) : null,
    signatures.length ? table("Signatures", ["Key", "State", "Why"], signatures.map((one) => [one.label, one.state, one.why])) : null,
    checked.entry ? entryTable(checked.entry) : null,
    notChecked.length ? list("What this does not say", notChecked) : null,
  ].filter((part) => part);
}

function summary(exitCode, { kind, ranges, origin, size, root, kinds }) {
  if (exitCode === 1 || !ranges) return `The ${kind ?? "file"} does not hold.`;
  const counted = Object.entries(kinds ?? {}).map(([name, count]) => `${count} ${name}`).join(", ");
  const held = kind === "export" ? `entries ${showRanges(ranges)}` : `entry ${ranges[0][0]}`;
  return `${kind}: ${held} of ${origin}: size ${size}, root ${root}${counted ? ` (${counted})` : ""}.`;
}

const findingRow = ({ code, seq, lastSeq, column, message }) => [
  code,
  seq === null ? "" : seq === lastSeq ? `${seq}` : `${seq} to ${lastSeq}`,
  column ?? "",
  message,
];

/** Make a table; a cell is text, or an element. */
function table(title, headings, rows) {
  const cell = (content) => element("td", {}, content instanceof Node ? content : visible(content));
  return element("table", {},
    element("caption", {}, title),
    element("thead", {}, element("tr", {}, headings.map((heading) => element("th", { scope: "col" }, heading)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell)))));
}

const list = (title, items) =>
  element("div", {}, element("h3", {}, title), element("ul", {}, items.map((item) => element("li", {}, ...visible(item)))));

/** The proven entry itself: its columns, and its body as it was sealed. */
function entryTable(entry) {
  const rows = ["seq", ...COLUMNS.map(([name]) => name).slice(1)].map((name) => {
    const value = entry[name] instanceof Uint8Array ? hex(entry[name]) : `${entry[name]}`;
    return [name, name.endsWith("_unix_nano") && entry[name] ? `${value} (${moment(entry[name])})` : value];
  });
  const cut = entry.body.length > MAX_BODY_SHOWN;
  const body = cut ? `${entry.body.slice(0, MAX_BODY_SHOWN)} ... (${entry.body.length} characters)` : entry.body;
  return element("div", {},
    table("The entry that was proven", ["Column", "Value"], rows),
    element("h3", {}, "Body"),
    element("pre", { tabindex: "0" }, ...visible(body)));
}

function moment(nanoseconds) {
  const date = new Date(Number(nanoseconds / 1_000_000n));
  return Number.isNaN(date.getTime()) ? "no date" : date.toISOString();
}

startVerifier();
