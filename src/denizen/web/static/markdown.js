// Markdown as DOM nodes: markdown-it reads it, DOMPurify lets through what a message may hold, highlight.js colours code.
// Pictures of other servers become links: loading them would tell those servers who reads.

// What reads it is large, so the page is painted first; scripts that import this one run then, too.
await painted();
await Promise.all(["markdown-it", "dompurify"].map(load));

function painted() {
  return new Promise((done) => (document.hidden ? done() : requestAnimationFrame(() => setTimeout(done))));
}

function load(name) {
  const script = Object.assign(document.createElement("script"), { src: new URL(`vendor/${name}.js`, import.meta.url).href });
  document.head.append(script);
  return new Promise((done, fail) => {
    script.onload = done;
    script.onerror = () => fail(new Error(`${name} could not be loaded.`));
  });
}

const reader = window.markdownit({ html: false, linkify: true, breaks: true });
reader.renderer.rules.image = (tokens, at) => {
  const source = reader.utils.escapeHtml(tokens[at].attrGet("src") ?? "");
  return `<a href="${source}">${reader.utils.escapeHtml(tokens[at].content || source)}</a>`;
};
reader.core.ruler.push("alignment", (state) => {
  for (const each of state.tokens) {
    const style = each.attrGet("style"); // of table cells; the policy forbids inline styles
    if (style === null) continue;
    each.attrs = each.attrs.filter(([name]) => name !== "style");
    each.attrJoin("class", style.includes("right") ? "align-right" : style.includes("center") ? "align-center" : "");
  }
});

const PURE = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "title"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|\/(?!\/)|#)/i,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

export function renderMarkdown(text) {
  const page = window.DOMPurify.sanitize(reader.render(text), PURE);
  for (const link of page.querySelectorAll("a[href]")) {
    if (link.getAttribute("href").startsWith("#")) continue;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const heading of page.querySelectorAll("h1, h2, h3, h4, h5, h6")) demote(heading);
  for (const table of page.querySelectorAll("table")) frame(table);
  for (const code of page.querySelectorAll("pre > code")) dress(code);
  return page;
}

// A message stands below the page's own headings.
function demote(heading) {
  const level = Math.min(6, Number(heading.tagName[1]) + 2);
  const lower = document.createElement(`h${level}`);
  lower.append(...heading.childNodes);
  heading.replaceWith(lower);
}

function frame(table) {
  const scroller = document.createElement("div");
  scroller.className = "table-scroll";
  scroller.tabIndex = 0; // what is wide scrolls, by keyboard too
  scroller.setAttribute("role", "region");
  scroller.setAttribute("aria-label", "Table");
  table.classList.add("list");
  table.replaceWith(scroller);
  scroller.append(table);
}

// Gives a block of code its language, a button that copies it, and colours.
function dress(code) {
  const language = [...code.classList].find((name) => name.startsWith("language-"))?.slice(9) ?? "";
  const block = code.parentElement;
  const text = code.textContent;
  const box = document.createElement("div");
  box.className = "code-block";
  const head = document.createElement("div");
  head.className = "code-head";
  const name = document.createElement("span");
  name.textContent = language || "text";
  head.append(name, copyButton(() => text, "Copy code"));
  block.tabIndex = 0;
  block.setAttribute("role", "region");
  block.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
  block.replaceWith(box);
  box.append(head, block);
  if (language) colour(code, text, language);
}

let highlighter = null;

async function colour(code, text, language) {
  highlighter ??= import("./vendor/highlight.js").then((module) => module.default);
  const tool = await highlighter.catch(() => null);
  if (!tool?.getLanguage(language)) return;
  const html = tool.highlight(text, { language, ignoreIllegals: true }).value;
  code.replaceChildren(window.DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true }));
}

// A button that copies what `read` returns and says so.
export function copyButton(read, label) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "tiny";
  const say = (text, name) => {
    button.textContent = text;
    button.setAttribute("aria-label", name);
  };
  say("Copy", label);
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard.writeText(read()).then(() => true, () => false);
    say(done ? "Copied" : "Not copied", done ? "Copied" : "Not copied");
    setTimeout(() => say("Copy", label), 1500);
  });
  return button;
}
