// The keys that may stand at the cursor of the configuration, offered below it by Ctrl+Space and while one is typed.

const LINE = /^( *)((?:- +)*)(?:("[^"]*"|'[^']*'|[^\s#:'"-][^:#]*):(?=\s|$)(.*))?/;
const TYPED = /^( *)((?:- +)*)([A-Za-z_][\w-]*)?$/;
const SHOWN = 60;

export class KeyMenu {
  constructor(editor, list) {
    Object.assign(this, { editor, list, keys: [], at: -1, typed: "", known: new Map() });
    editor.setAttribute("aria-autocomplete", "list");
    editor.setAttribute("aria-controls", list.id);
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the editor keeps the cursor
    editor.addEventListener("input", () => this.open(2));
    editor.addEventListener("blur", () => this.close());
    editor.addEventListener("click", () => this.close());
    editor.addEventListener("scroll", () => this.close());
    editor.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.ctrlKey && event.key === " ") this.open(0).then(() => this.choose(0));
    else if (this.list.hidden) return;
    else if (step) this.choose((Math.max(this.at, step > 0 ? -1 : 0) + step + this.keys.length) % this.keys.length);
    else if (event.key === "Escape") this.close();
    else if (["Enter", "Tab"].includes(event.key) && this.at >= 0) this.take(this.at);
    else {
      if (["ArrowLeft", "ArrowRight", "Home", "End", "Tab"].includes(event.key)) this.close();
      return; // without a choice the key does what it does without a menu
    }
    event.preventDefault();
  }

  // Offers the keys at the cursor, once so many characters of one are typed.
  async open(least) {
    const { value, selectionStart: start, selectionEnd: end } = this.editor;
    const place = start === end ? readPlace(value, start) : null;
    if (!place || place.typed.length < least) return this.close();
    const found = await this.load(place.path);
    if (this.editor.value !== value || this.editor.selectionStart !== start) return undefined; // typed on meanwhile
    this.typed = place.typed;
    this.keys = found.filter((each) => each.name.startsWith(place.typed)).slice(0, SHOWN);
    if (!this.keys.length || (this.keys.length === 1 && this.keys[0].name === place.typed)) return this.close();
    this.list.replaceChildren(...this.keys.map((key, at) => this.draw(key, at)));
    this.list.hidden = false;
    this.put(start);
    return this.choose(-1);
  }

  load(path) {
    if (!this.known.has(path)) {
      const answer = fetch(`/admin/config/keys?path=${encodeURIComponent(path)}`);
      this.known.set(path, answer.then((each) => (each.ok ? each.json() : [])).catch(() => []));
    }
    return this.known.get(path);
  }

  draw(key, at) {
    const row = document.createElement("li");
    row.id = `${this.list.id}-${at}`;
    row.setAttribute("role", "option");
    const name = document.createElement("code");
    const hint = document.createElement("span");
    name.textContent = key.name;
    hint.textContent = key.hint;
    hint.className = "quiet";
    row.append(name, hint);
    row.addEventListener("mousedown", () => this.take(at));
    return row;
  }

  choose(at) {
    if (this.list.hidden) return;
    this.at = at;
    [...this.list.children].forEach((row, number) => row.setAttribute("aria-selected", String(number === at)));
    const row = this.list.children[at];
    row?.scrollIntoView({ block: "nearest" });
    if (row) this.editor.setAttribute("aria-activedescendant", row.id);
    else this.editor.removeAttribute("aria-activedescendant");
  }

  take(at) {
    const end = this.editor.selectionStart;
    this.editor.setRangeText(`${this.keys[at].name}: `, end - this.typed.length, end, "end");
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.at = -1;
    this.editor.removeAttribute("aria-activedescendant");
  }

  // Puts the list below the cursor, within the editor's width.
  put(at) {
    const style = getComputedStyle(this.editor);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const lines = this.editor.value.slice(0, at).split("\n");
    const left = lines.at(-1).length * pen.measureText("m").width - this.editor.scrollLeft + parseFloat(style.paddingLeft);
    const top = lines.length * parseFloat(style.lineHeight) - this.editor.scrollTop + parseFloat(style.paddingTop);
    this.list.style.left = `${Math.max(0, Math.min(left, this.editor.clientWidth - this.list.offsetWidth))}px`;
    this.list.style.top = `${this.editor.offsetTop + top}px`;
  }
}

// Returns the path of the map in which a key at that position would stand, and what is typed of it; null where none goes.
export function readPlace(text, at) {
  const lines = text.slice(0, at).split("\n");
  const here = lines.pop().match(TYPED);
  if (!here) return null;
  const parts = [];
  let limit = here[1].length + here[2].length; // keys to the left of it are above it
  if (here[2]) {
    parts.unshift("[0]");
    limit = here[1].length + 1; // a list may stand right below its key
  }
  for (const line of lines.reverse()) {
    if (!limit) break;
    const [, spaces, dashes, key, value] = line.match(LINE);
    if (key === undefined) continue;
    const column = spaces.length + dashes.length;
    if (column > limit || (column === limit && !dashes)) continue;
    if (column < limit) {
      if (value.replace(/(^|\s)#.*/, "").trim()) return null; // it has a value already
      const name = key.replace(/^(["'])(.*)\1$/, "$2").trim();
      parts.unshift(/^[\w-]+$/.test(name) ? name : `"${name}"`);
      limit = column;
    }
    if (dashes) {
      parts.unshift("[0]");
      limit = spaces.length + 1;
    }
  }
  return { path: parts.join(".").replaceAll(".[", "["), typed: here[3] ?? "" };
}
