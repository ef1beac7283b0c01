// Commands in the chat: the menu that `/` opens over the message box, and how a command and its answer are shown.

import { getJson, parseEvents, request } from "./api.js";
import { element, textBody } from "./message_view.js";

const COMMAND = /^\s*\/([a-z0-9_-]+)(?:\s|$)/i;

export class CommandMenu {
  constructor(box, list) {
    Object.assign(this, { box, list, items: [], at: 0, commands: [] });
    this.isLoaded = getJson("/api/commands").then((commands) => { this.commands = commands; }).catch(() => {});
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-controls", list.id);
    box.addEventListener("input", () => this.open());
    box.addEventListener("blur", () => this.close());
    // Before the box takes the same keys for sending, and the page for stopping.
    box.addEventListener("keydown", (event) => this.press(event), { capture: true });
  }

  // Tells whether a message gives a command that the server knows.
  async isCommand(text) {
    await this.isLoaded;
    const name = text.match(COMMAND)?.[1].toLowerCase();
    return this.commands.some((each) => each.name === name);
  }

  press(event) {
    if (this.list.hidden || event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const takes = event.key === "Tab" || (event.key === "Enter" && !event.shiftKey);
    if (step) this.choose((this.at + step + this.items.length) % this.items.length);
    else if (event.key === "Escape") this.close();
    else if (takes && this.items[this.at].text.trimEnd() !== this.box.value) this.take(this.at);
    else {
      if (takes) this.close(); // it is written in full: the key does what it does without a menu
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  take(at) {
    this.box.value = this.items[at].text;
    this.box.dispatchEvent(new Event("input", { bubbles: true })); // the next word may be offered, too
  }

  open() {
    const typed = this.box.selectionEnd === this.box.value.length ? this.box.value : "";
    this.items = suggest(this.commands, typed);
    this.list.hidden = !this.items.length;
    this.list.replaceChildren(...this.items.map((item, at) => this.draw(item, at)));
    if (this.items.length) this.choose(0);
    else this.box.removeAttribute("aria-activedescendant");
  }

  draw(item, at) {
    const row = element("li");
    row.id = `${this.list.id}-${at}`;
    row.setAttribute("role", "option");
    row.append(element("span", "usage", item.usage), element("span", "quiet", item.description));
    row.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the box keeps the focus
      this.take(at);
    });
    return row;
  }

  choose(at) {
    this.at = at;
    for (const [place, row] of [...this.list.children].entries()) row.setAttribute("aria-selected", String(place === at));
    this.box.setAttribute("aria-activedescendant", this.list.children[at].id);
    this.list.children[at].scrollIntoView({ block: "nearest" });
  }

  close() {
    this.list.hidden = true;
    this.box.removeAttribute("aria-activedescendant");
  }
}

// Returns what can stand at the end of a text: a command, its subcommand, or a value that an option allows.
function suggest(commands, typed) {
  const [, name, rest] = typed.match(/^\/(\S*)(?:\s+(.*))?$/) ?? [];
  if (name === undefined) return [];
  const hasMore = (each) => each.subcommands?.length > 0 || each.options?.length > 0;
  const offer = (before, items) => items.map((each) => ({
    text: `${before}${each.name}${hasMore(each) ? " " : ""}`, usage: each.usage ?? each.name, description: each.description,
  }));
  const fits = (word) => (each) => each.name.startsWith(word.toLowerCase());
  // The shortest comes first, so that a command that is written in full does.
  const byLength = (a, b) => (a.name.length - b.name.length) * (name === "" ? 0 : 1);
  if (rest === undefined && !/\s$/.test(typed)) return offer("/", commands.filter(fits(name)).sort(byLength));
  const command = commands.find((each) => each.name === name.toLowerCase());
  if (!command) return [];
  const [word, ...others] = (rest ?? "").split(/\s+/);
  if (!command.subcommands.length) return offer(`/${command.name} `, choicesOf(command).filter(fits(rest ?? "")));
  if (!others.length) return offer(`/${command.name} `, command.subcommands.filter(fits(word)));
  const group = command.subcommands.find((each) => each.name === word.toLowerCase());
  return group ? offer(`/${command.name} ${group.name} `, choicesOf(group).filter(fits(others.join(" ")))) : [];
}

const choicesOf = (each) => (each.options.length === 1 ? each.options[0].choices.map((name) => ({ name, description: "" })) : []);

// Gives a command, and yields what happens.
export async function* streamCommand(body, key) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  const response = await request("/api/command", { method: "POST", headers, body: JSON.stringify(body) });
  yield* parseEvents(response.body);
}

// An article for a command: a note that is no message of the chat.
export function commandNote(text) {
  const note = element("article", "message note");
  note.setAttribute("aria-label", `Command ${text}`);
  note.append(element("p", "author quiet", text));
  return note;
}

// Shows how far a command is, in place of what was said before; its end, or the output of its program.
export function fillNote(note, event) {
  note.querySelector(".so-far")?.remove();
  if (event.type === "notice") {
    const body = textBody(event.text);
    body.classList.add("so-far");
    note.append(body);
  } else if (event.type === "shell_output") {
    const output = element("pre", event.is_error ? "output failed" : "output", event.text || "(no output)");
    output.tabIndex = 0; // it scrolls
    note.append(output);
    if (event.truncated) note.append(element("p", "quiet", "There was more."));
  } else if (event.text) {
    note.append(textBody(event.text));
  }
  note.classList.toggle("failed", Boolean(event.is_failure || event.is_error));
}
