// Discord's Markdown as DOM nodes. Untrusted text only ever becomes text nodes; no HTML is parsed, and links lead to http
// and https only. `names` says what mentions stand for: {person, role, room, open}.

import { make } from "./dom.js";

const INLINE = new RegExp([
  "\\\\(?<escaped>[\\\\`*_~|>#\\-\\[\\]()<@])",
  "(?<tick>`+)(?<code>[^`]|[^`][\\s\\S]*?[^`])\\k<tick>(?!`)",
  "\\|\\|(?<spoiler>[\\s\\S]+?)\\|\\|",
  "\\*\\*(?<bold>(?:[^*]|\\*(?!\\*))+?\\*?)\\*\\*(?!\\*)",
  "__(?<underline>[\\s\\S]+?)__(?!_)",
  "~~(?<struck>[\\s\\S]+?)~~",
  "\\*(?![\\s*])(?<italic>[^*]*?[^\\s*])\\*(?!\\*)",
  "(?<![\\w])_(?!\\s)(?<slanted>[^_]+?)_(?!\\w)",
  "\\[(?<label>[^\\]\\n]+)\\]\\(<?(?<target>https?:\\/\\/[^\\s<>)]+)>?\\)",
  "<(?<plain>https?:\\/\\/[^\\s<>]+)>",
  "(?<bare>https?:\\/\\/[^\\s<>\"'`|*\\]]*[^\\s<>\"'`|*\\].,;:!?)])",
  "<@!?(?<user>\\d+)>",
  "<@&(?<role>\\d+)>",
  "<#(?<channel>\\d+)>",
  "<\\/(?<command>[^:>\\n]+):\\d+>",
  "<a?:(?<emoji>\\w+):\\d+>",
  "<t:(?<stamp>-?\\d{1,13})(?::(?<style>[tTdDfFR]))?>",
  "(?<all>@everyone|@here)\\b",
].join("|"));
const FENCE = /```(?:([\w+#.-]*)\n)?([\s\S]+?)\n?```/;
const ITEM = /^(\s*)(?:[-*]|(\d{1,9})\.)\s+(\S.*)$/;

export function renderMarkdown(text, names) {
  const page = document.createDocumentFragment();
  for (let rest = text; rest; ) {
    const fence = rest.match(FENCE);
    addBlocks(page, fence ? rest.slice(0, fence.index) : rest, names);
    if (!fence) break;
    page.append(codeBlock(fence[1], fence[2]));
    rest = rest.slice(fence.index + fence[0].length).replace(/^\n/, "");
  }
  return page;
}

function codeBlock(language, code) {
  const label = language ? `Code, ${language}` : "Code"; // a wide block scrolls, by keyboard too
  return make("pre", { tabIndex: 0, role: "region", "aria-label": label }, make("code", {}, code));
}

function addBlocks(page, text, names) {
  const lines = text.split("\n");
  let plain = [];
  const flush = () => {
    while (plain.length && !plain.at(-1).trim()) plain.pop();
    if (plain.length) page.append(filled("p", plain.join("\n"), names));
    plain = [];
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const heading = line.match(/^(#{1,3})\s+(\S.*)$/);
    if (line.startsWith(">>> ")) {
      flush();
      page.append(make("blockquote", {}, renderMarkdown([line.slice(4), ...lines.slice(at + 1)].join("\n"), names)));
      return;
    }
    if (/^> ?/.test(line) && line.startsWith("> ")) {
      flush();
      const quoted = [];
      for (; at < lines.length && lines[at].startsWith("> "); at += 1) quoted.push(lines[at].slice(2));
      page.append(make("blockquote", {}, renderMarkdown(quoted.join("\n"), names)));
    } else if (heading) {
      flush();
      page.append(filled("p", heading[2], names, `heading h${heading[1].length}`));
      at += 1;
    } else if (line.startsWith("-# ")) {
      flush();
      page.append(filled("p", line.slice(3), names, "subtext"));
      at += 1;
    } else if (ITEM.test(line)) {
      flush();
      at = addList(page, lines, at, names);
    } else {
      if (plain.length || line.trim()) plain.push(line);
      at += 1;
    }
  }
  flush();
}

// A list with the lists that are indented below its items.
function addList(page, lines, at, names) {
  const [, indent, number] = lines[at].match(ITEM);
  const list = make(number ? "ol" : "ul", number ? { start: Number(number) } : {});
  let last = null;
  while (at < lines.length) {
    const item = lines[at].match(ITEM);
    if (!item || item[1].length < indent.length || (item[1].length === indent.length && Boolean(item[2]) !== Boolean(number))) break;
    if (item[1].length > indent.length && last) {
      at = addList(last, lines, at, names);
    } else {
      last = filled("li", item[3], names);
      list.append(last);
      at += 1;
    }
  }
  page.append(list);
  return at;
}

function filled(tag, text, names, className = null) {
  const node = make(tag, { class: className });
  addInline(node, text, names);
  return node;
}

export function addInline(parent, text, names) {
  for (let rest = text; rest; ) {
    const match = rest.match(INLINE);
    if (!match) {
      parent.append(rest);
      return;
    }
    parent.append(rest.slice(0, match.index), inline(match.groups, names));
    rest = rest.slice(match.index + match[0].length);
  }
}

function inline(found, names) {
  if (found.escaped) return document.createTextNode(found.escaped);
  if (found.tick) return make("code", {}, found.code.trim() || found.code);
  if (found.spoiler) return spoiler(found.spoiler, names);
  if (found.bold) return filled("strong", found.bold, names);
  if (found.underline) return filled("u", found.underline, names);
  if (found.struck) return filled("s", found.struck, names);
  if (found.italic || found.slanted) return filled("em", found.italic || found.slanted, names);
  if (found.label) return link(found.target, found.label);
  if (found.plain || found.bare) return link(found.plain || found.bare, found.plain || found.bare);
  if (found.user) return mention(`@${names.person(found.user)}`);
  if (found.role) return mention(`@${names.role(found.role)}`);
  if (found.channel) return roomLink(found.channel, names);
  if (found.command) return mention(`/${found.command}`);
  if (found.emoji) return document.createTextNode(`:${found.emoji}:`);
  if (found.stamp) return moment(Number(found.stamp), found.style);
  return mention(found.all);
}

const mention = (text) => make("span", { class: "mention" }, text);

function roomLink(id, names) {
  const name = names.room(id);
  if (!name) return mention("#no access");
  return make("button", { type: "button", class: "mention", onclick: () => names.open(id) }, `#${name}`);
}

function spoiler(text, names) {
  const node = filled("span", text, names, "spoiler");
  node.tabIndex = 0;
  node.setAttribute("role", "button");
  node.setAttribute("aria-label", "Spoiler, hidden");
  const show = () => {
    node.classList.add("shown");
    node.removeAttribute("aria-label");
    node.removeAttribute("role");
  };
  node.addEventListener("click", show);
  node.addEventListener("keydown", (event) => (event.key === "Enter" || event.key === " ") && show());
  return node;
}

function moment(seconds, style) {
  const time = new Date(seconds * 1000);
  if (Number.isNaN(time.getTime())) return document.createTextNode("Invalid date");
  const options = { t: { timeStyle: "short" }, T: { timeStyle: "medium" }, d: { dateStyle: "short" }, D: { dateStyle: "long" } }[style];
  return make("time", { dateTime: time.toISOString(), class: "mention" }, time.toLocaleString([], options ?? { dateStyle: "long", timeStyle: "short" }));
}

export function link(target, label) {
  return make("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, label);
}
