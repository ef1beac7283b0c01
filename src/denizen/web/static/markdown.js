// A small part of Markdown as DOM nodes: code, bold, links, lists, headings. Text of a model only ever becomes text
// nodes; no HTML is parsed, and links lead to http, https and mailto only.

const INLINE = new RegExp([
  "(`+)([^`]|[^`][\\s\\S]*?[^`])\\1(?!`)", // code
  "\\*\\*([^\\n]+?)\\*\\*", // bold
  "(?<![\\w*])\\*([^\\s*](?:[^*\\n]*[^\\s*])?)\\*(?![\\w*])", // emphasis
  "\\[([^\\]\\n]+)\\]\\(([^()\\s]+)\\)", // a link
  "(https?:\\/\\/[^\\s<>\"'`)\\]]*[^\\s<>\"'`)\\].,;:!?])", // a bare address
].join("|"));
const BULLET = /^\s*[-*+]\s+(.*)$/;
const NUMBER = /^\s*(\d{1,9})[.)]\s+(.*)$/;

export function renderMarkdown(text) {
  const page = document.createDocumentFragment();
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length) {
    const fence = lines[at].match(/^\s*(```+|~~~+)\s*(\S*)/);
    if (fence) at = addFence(page, lines, at, fence);
    else if (BULLET.test(lines[at])) at = addList(page, lines, at, "ul", BULLET, 1);
    else if (NUMBER.test(lines[at])) at = addList(page, lines, at, "ol", NUMBER, 2);
    else if (/^#{1,6}\s/.test(lines[at])) page.append(filled("p", lines[at++].replace(/^#+\s+/, ""), "heading"));
    else if (!lines[at].trim()) at += 1;
    else at = addParagraph(page, lines, at);
  }
  return page;
}

function addFence(page, lines, at, [, mark, language]) {
  const end = lines.findIndex((line, number) => number > at && line.trim().startsWith(mark));
  const code = document.createElement("code");
  code.textContent = lines.slice(at + 1, end < 0 ? lines.length : end).join("\n");
  const block = document.createElement("pre");
  block.tabIndex = 0; // a wide block scrolls, by keyboard too
  if (language) block.setAttribute("aria-label", `Code, ${language}`);
  block.append(code);
  page.append(block);
  return end < 0 ? lines.length : end + 1;
}

function addList(page, lines, at, tag, pattern, group) {
  const list = document.createElement(tag);
  if (tag === "ol") list.start = Number(lines[at].match(pattern)[1]);
  for (; at < lines.length && pattern.test(lines[at]); at += 1) list.append(filled("li", lines[at].match(pattern)[group]));
  page.append(list);
  return at;
}

function addParagraph(page, lines, at) {
  const start = at;
  while (at < lines.length && lines[at].trim() && !/^\s*(```|~~~)|^#{1,6}\s/.test(lines[at])
         && (at === start || !(BULLET.test(lines[at]) || NUMBER.test(lines[at])))) at += 1;
  page.append(filled("p", lines.slice(start, at).join("\n")));
  return at;
}

function filled(tag, text, className = "") {
  const node = document.createElement(tag);
  if (className) node.className = className;
  addInline(node, text);
  return node;
}

function addInline(parent, text) {
  for (let rest = text; rest; ) {
    const match = rest.match(INLINE);
    if (!match) {
      parent.append(rest);
      return;
    }
    parent.append(rest.slice(0, match.index), inline(match));
    rest = rest.slice(match.index + match[0].length);
  }
}

function inline([whole, tick, code, bold, emphasis, label, target, bare]) {
  if (tick) return Object.assign(document.createElement("code"), { textContent: code.trim() || code });
  if (bold) return filled("strong", bold);
  if (emphasis) return filled("em", emphasis);
  if (bare) return link(bare, bare, whole);
  return link(target, label, whole);
}

function link(target, label, whole) {
  if (!/^(https?:|mailto:)/i.test(target)) return document.createTextNode(whole);
  return Object.assign(document.createElement("a"), {
    href: target, textContent: label, target: "_blank", rel: "noopener noreferrer",
  });
}
