// A page of the manual: its Markdown as DOM nodes, with an id for each heading, so that links lead to them.

const source = document.getElementById("text");
const reader = window.markdownit({ html: false, linkify: false });

function slug(text) {
  return text.trim().toLowerCase().replace(/[^\p{Letter}\p{Number}\s_-]/gu, "").replace(/\s/g, "-");
}

reader.core.ruler.push("headings", (state) => {
  const used = new Map();
  state.tokens.forEach((token, at) => {
    if (token.type !== "heading_open") return;
    const name = slug(state.tokens[at + 1].content);
    const times = used.get(name) ?? 0;
    used.set(name, times + 1);
    token.attrSet("id", times ? `${name}-${times}` : name);
  });
});
const page = window.DOMPurify.sanitize(reader.render(source.textContent), {
  ALLOWED_ATTR: ["href", "id", "start", "class"],
  FORBID_TAGS: ["img", "style", "form", "input"],
  SANITIZE_NAMED_PROPS: false,
  RETURN_DOM_FRAGMENT: true,
});
for (const table of page.querySelectorAll("table")) {
  const scroller = document.createElement("div");
  scroller.className = "table-scroll";
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "region");
  scroller.setAttribute("aria-label", "Table");
  table.className = "list";
  table.replaceWith(scroller);
  scroller.append(table);
}
for (const block of page.querySelectorAll("pre")) block.tabIndex = 0;
source.replaceWith(page);
document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
