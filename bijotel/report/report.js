// The report's own part: details when a decision is opened, filter and search.
// The verifier's scripts stand before this one; `element`, `visible` and `breathe` are theirs.

const STYLES = {
  included: "good", partial: "doubtful", dropped: "bad", unknown: "plain",
  verified: "good", "not verified": "doubtful", false: "bad",
};
const MOST_OPENED = 100;

const byId = (id) => document.getElementById(id);
const rows = [...document.querySelectorAll("#list > .decision")];
const blocks = new Map();
for (const block of document.querySelectorAll("script.details")) {
  // Each begins with its number: parsing all of them now would keep the reader waiting.
  blocks.set(/^\{"seq":(\d+)/.exec(block.textContent)[1], block);
}
const detailsOf = (row) => JSON.parse(blocks.get(row.dataset.seq).textContent);
const badge = (word) => element("span", { class: `badge ${STYLES[word]}` }, word);

// --- one decision --------------------------------------------------------------------------------

function fill(row) {
  if (row.querySelector(".inside")) return;
  const details = detailsOf(row);
  row.append(element("div", { class: "inside" },
    section("Question", ...(details.question ? [muted(details.asked), prose(details.question)] : [muted("not recorded")])),
    section("Sources", details.sources.length ? sourcesTable(details) : muted("none recorded for this call")),
    details.notes.length ? list("About the sources", details.notes) : null,
    section("Prompt", whyNotMarked(details), details.prompt.length ? promptText(details) : muted("not recorded")),
    section("Answer", answer(details)),
    section("Facts", facts(details.facts)),
    section("Trace", spansTable(details.spans)),
    section("Proof", ...proof(row, details))));
}

const section = (title, ...content) => element("div", {}, element("h3", {}, title), ...content);
const muted = (words) => element("p", { class: "muted" }, words);
const prose = (text) => element("pre", { tabindex: "0" }, ...visible(text));

const facts = (pairs) =>
  element("dl", {}, pairs.filter(([, value]) => value).flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, ...visible(value))]));

function answer({ answer: texts, tools }) {
  if (!texts.length && !tools.length) return muted("not recorded");
  return element("div", {}, texts.map(prose), tools.length ? list("Tool calls", tools) : null);
}

/** The prompt as it was recorded, every passage marked where it stands: by colour and by word. */
function promptText({ prompt: pieces, sources }) {
  let before = [];
  const marked = pieces.flatMap(([text, numbers]) => {
    const begun = numbers.filter((number) => !before.includes(number));
    before = numbers;
    if (!numbers.length) return visible(text);
    const words = numbers.map((number) => sources[number - 1].word);
    const style = words.includes("included") ? "good" : "doubtful";
    const labels = begun.map((number) => element("span", { class: "label" }, `${number} ${sources[number - 1].word}`));
    return [element("mark", { class: style }, labels, ...visible(text))];
  });
  return element("pre", { tabindex: "0" }, marked);
}

/** A status may be known without the text: then nothing can be marked. */
function whyNotMarked({ prompt: pieces, sources }) {
  const found = sources.some((one) => ["included", "partial"].includes(one.word));
  if (!pieces.length || !found || sources.some((one) => one.placed)) return "";
  return muted("Nothing is marked: the chain does not hold the passages' text.");
}

function sourcesTable({ sources }) {
  const headings = ["No.", "In the prompt", "Source", "Retriever", "Score", "Rank", "Text"];
  const cells = (one) => [
    `${one.number}`,
    element("span", {}, badge(one.word), " ", ...visible(one.how)),
    element("span", {}, element("span", { class: "mono" }, ...visible(one.id || "(no id)")), one.uri ? [element("br"), ...visible(one.uri)] : null,
      one.metadata ? [element("br"), ...visible(one.metadata)] : null),
    element("span", {}, ...visible(one.retriever), one.retrieved ? [element("br"), ...visible(one.retrieved)] : null),
    one.score,
    `${one.rank}`,
    one.text === null
      ? element("span", { class: "muted" }, one.placed ? "" : "not in the chain")
      : element("details", {}, element("summary", {}, "show"), prose(one.text)),
  ];
  return table("What was retrieved, and whether the prompt holds it", headings, sources.map(cells));
}

const spansTable = (spans) =>
  table("Sealed spans of the trace", ["Entry", "Name", "Began", "Took", "Status", "Proof"],
    spans.map((span) => [`${span.seq}`, span.name, span.began, span.took, span.status, badge(span.proof)]));

// --- its proof -----------------------------------------------------------------------------------

function proof(row, { entry, findings, proof: held }) {
  const word = row.dataset.proof;
  return [
    element("p", {}, badge(word), " ", word === "verified"
      ? "Body, columns, tag and the link to the entry before hold."
      : word === "false" ? "What is shown here is as stored, and not to be trusted." : "Shown as stored: its tag was not checked."),
    findings.length ? list("Findings", findings) : null,
    facts(entry),
    held.line ? element("p", {}, `Covered by the checkpoint of size ${held.size}. The proof needs the public key alone.`) : muted(`No proof: ${held.why}.`),
    held.line ? actions(row.dataset.seq, held) : null,
  ].filter((part) => part);
}

function actions(seq, held) {
  const name = `entry-${seq}.tlog-proof`;
  const check = element("button", { type: "button", class: "no-print" }, "Check this proof here");
  const save = element("a", { class: "no-print", href: "#verifier", download: name }, `Save ${name}`);
  check.addEventListener("click", () => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([proofFile(seq, held)], name));
    byId("verifier-file").files = transfer.files;
    byId("verifier-result").replaceChildren();
    byId("verifier").scrollIntoView();
    byId("verifier-keys").focus();
  });
  save.addEventListener("click", () => { save.href = URL.createObjectURL(new Blob([proofFile(seq, held)])); });
  return element("div", { class: "actions" }, check, save);
}

/** The file that `bijotel prove` writes (C2SP tlog-proof). */
function proofFile(seq, { line, hashes }) {
  const note = JSON.parse(byId("checkpoint").textContent);
  const binary = Array.from(utf8(line), (octet) => String.fromCharCode(octet)).join("");
  return ["c2sp.org/tlog-proof@v1", `extra ${btoa(binary)}`, `index ${seq}`, ...hashes].join("\n") + `\n\n${note}`;
}

// --- filter and search ---------------------------------------------------------------------------

const haystacks = new Map();

/** All text of a decision, small letters; made when it is first searched. */
function haystack(row) {
  const { seq } = row.dataset;
  if (!haystacks.has(seq)) {
    const { proof: held, ...details } = detailsOf(row);
    details.prompt = details.prompt.map(([text]) => text).join("");
    haystacks.set(seq, `${row.textContent}\n${texts(details).join("\n")}`.toLowerCase());
  }
  return haystacks.get(seq);
}

const texts = (value) =>
  typeof value === "string" ? [value] : value && typeof value === "object" ? Object.values(value).flatMap(texts) : [];

let latest = 0;

async function filter() {
  const turn = ++latest;
  const words = byId("search").value.toLowerCase().trim();
  const [passages, proofs, outcome] = ["passages", "proof", "outcome"].map((name) => byId(`filter-${name}`).value);
  const hidden = [];
  for (const [place, row] of rows.entries()) {
    const fits =
      (!passages || row.dataset.passages.split(" ").includes(passages)) &&
      (!proofs || row.dataset.proof === proofs) &&
      (!outcome || row.dataset.outcome === outcome) &&
      (!words || haystack(row).includes(words));
    hidden.push(!fits);
    if (place % 50 === 0) {
      await breathe();
      if (turn !== latest) return; // the reader has gone on typing
      if (words) byId("shown").textContent = `Searching: ${place.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    }
  }
  for (const [place, row] of rows.entries()) row.hidden = hidden[place];
  const count = hidden.filter((each) => !each).length;
  byId("shown").textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} decisions shown.`;
}

function followAnchor() {
  const row = /^#entry-\d+$/.test(location.hash) && document.querySelector(location.hash);
  if (!row) return;
  row.hidden = false;
  row.open = true;
  row.scrollIntoView();
}

// `toggle` does not bubble: it is caught on its way down.
byId("list").addEventListener("toggle", (event) => {
  if (event.target.matches(".decision") && event.target.open) fill(event.target);
}, true);
byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("input", filter);
byId("open-shown").addEventListener("click", () => {
  for (const row of rows.filter((each) => !each.hidden).slice(0, MOST_OPENED)) row.open = true;
});
addEventListener("hashchange", followAnchor);
followAnchor();
