// Elements and text. Whatever stands in evidence may have been written by someone who wants a
// reader to see something else: it only ever becomes text, never markup, and characters that
// steer or hide are shown by their number.

// Control, format, private and unassigned characters; but joiners, which spell words and emoji.
const INVISIBLE = /(?![\u200c\u200d\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Make an element: a tag, its attributes, and its children (text, elements, or null). */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.flat().filter((child) => child !== null));
  return made;
}

/** Text as nodes, its invisible characters as visible numbers. */
function visible(text) {
  const nodes = [];
  let start = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    if (match.index > start) nodes.push(text.slice(start, match.index));
    const number = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(element("span", { class: "character" }, `U+${number}`));
    start = match.index + match[0].length;
  }
  if (start < text.length) nodes.push(text.slice(start));
  return nodes;
}
