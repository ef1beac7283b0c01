// The box for writing: mentions and commands are completed while they are typed, files wait to be sent, a reply or an
// edit says what it is about.

import { find, make } from "./dom.js";
import { names } from "./messages.js";
import { size } from "./parts.js";
import { company, me, messagesOf, person, room, roomName, state } from "./state.js";

const TYPING_PAUSE_MS = 8000;
const OFFERS = 100;

const [box, offers, about] = ["text", "offers", "about"].map(find);
let does = {}; // {send, edit, typing, listCommands, choose, tell}
let replying = null;
let editing = null;
let files = [];
let typedAt = 0;
let offered = []; // [{label, note, take}] of the open list
let chosen = 0;
let asked = 0; // the newest question for commands; older answers are dropped

// --- what is shown ---------------------------------------------------------------------------------------------------

export function enterRoom() {
  leave();
  const here = room();
  const open = Boolean(here?.may_write) && !here.is_forum;
  box.disabled = find("send").disabled = find("attach").disabled = !open;
  const where = here?.kind === "dm" ? `@${roomName(here)}` : `${here?.is_thread ? "" : "#"}${roomName(here)}`;
  box.placeholder = open ? `Message ${where} as ${person(me()).name}` : here?.is_forum ? "A forum has posts only: use New post" : "You cannot write here";
}

export function reply(message) {
  leave();
  replying = message;
  showAbout(`Replying to ${person(message.author_id).name}`);
}

export function edit(message) {
  leave();
  editing = message;
  box.value = readable(message.text);
  fit();
  showAbout("Editing your message");
}

export function isFree() {
  return !box.value && !replying && !editing && !files.length;
}

export function write(text) {
  box.value = text;
  fit();
  box.focus();
}

function leave() {
  if (editing) box.value = "";
  replying = editing = null;
  about.hidden = true;
  fit();
}

function showAbout(text) {
  about.replaceChildren(text, " ", make("button", { type: "button", class: "link", onclick: () => { leave(); box.focus(); } }, "Cancel"));
  about.hidden = false;
  box.focus();
}

function showFiles() {
  find("files").replaceChildren(...files.map((file) => make("span", { class: "file" }, `${file.name} `, make("span", { class: "quiet" }, size(file.size)),
    make("button", { type: "button", class: "link", "aria-label": `Take ${file.name} out`, onclick: () => { files = files.filter((each) => each !== file); showFiles(); } }, "✕"))));
  find("files").hidden = !files.length;
}

function addFiles(list) {
  files = [...files, ...list].slice(0, 10);
  showFiles();
  box.focus();
}

// The box grows with its text; the style sheet limits it.
function fit() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

// --- mentions --------------------------------------------------------------------------------------------------------

function mentionable() {
  const here = [...company(room())].sort((one, other) => other.bot - one.bot);
  const found = here.map((each) => ({ name: each.name, note: each.bot ? "bot" : each.id === me() ? "you" : "" }));
  if (room()?.kind === "dm") return found;
  const roles = [...state.roles.values()].filter((each) => each.mentionable).map((each) => ({ name: each.name, note: "role" }));
  return [...found, ...roles];
}

const channels = () => [...state.rooms.values()].filter((each) => each.kind !== "dm").map((each) => ({ name: each.name, note: "" }));

// The server makes mentions of the names; what is edited shows names again.
function readable(text) {
  return text.replace(/<(@!?|@&|#)(\d+)>/g, (_, kind, id) => {
    if (kind === "#") return `#${names.room(id)}`;
    return `@${kind === "@&" ? names.role(id) : names.person(id)}`;
  });
}

// --- completion ------------------------------------------------------------------------------------------------------

async function offer() {
  const question = ++asked;
  const before = box.value.slice(0, box.selectionStart);
  const command = /^\/([\w -]*)$/.exec(before);
  if (command && !editing) {
    const found = await does.listCommands().catch(() => []);
    if (question === asked) show(found.flatMap(branches).filter((each) => each.path.startsWith(command[1].toLowerCase())).map(commandOffer));
    return;
  }
  const mention = /(?:^|\s)([@#])([^\s@#]*)$/.exec(before);
  if (!mention) return show([]);
  const known = mention[1] === "@" ? mentionable() : channels();
  const start = mention[2].toLowerCase();
  const found = known.filter((each) => each.name.toLowerCase().startsWith(start));
  if (found.length === 1 && found[0].name.toLowerCase() === start) return show([]); // Enter sends what is complete
  return show(found.map((each) => ({
    label: mention[1] + each.name, note: each.note, take: () => insert(mention[2].length, `${each.name} `),
  })));
}

// A command, or each of its subcommands: {command, path, description, options}.
function branches(command) {
  const walk = (path, options, description) => {
    const inner = options.filter((each) => each.type === 1 || each.type === 2);
    if (!inner.length) return [{ command, path, description, options }];
    return inner.flatMap((each) => walk(`${path} ${each.name}`, each.options ?? [], each.description));
  };
  return walk(command.name, command.options, command.description);
}

const commandOffer = (each) => ({
  label: `/${each.path}`, note: `${each.description} · ${each.command.application}`,
  take: () => { box.value = ""; fit(); does.choose(each); },
});

function insert(typed, text) {
  const at = box.selectionStart;
  box.setRangeText(text, at - typed, at, "end");
  fit();
}

function show(list) {
  offered = list.slice(0, OFFERS);
  chosen = 0;
  offers.replaceChildren(...offered.map((each, index) => {
    const item = make("li", { role: "option", id: `offer-${index}` }, make("b", {}, each.label), " ", make("span", { class: "quiet" }, each.note));
    item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(index); });
    return item;
  }));
  offers.hidden = !offered.length;
  box.setAttribute("aria-expanded", String(Boolean(offered.length)));
  mark(0);
}

function mark(index) {
  chosen = (index + offered.length) % (offered.length || 1);
  [...offers.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
  if (offered.length) box.setAttribute("aria-activedescendant", `offer-${chosen}`);
  else box.removeAttribute("aria-activedescendant");
  offers.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function take(index) {
  const each = offered[index];
  show([]);
  each.take();
}

// --- sending ---------------------------------------------------------------------------------------------------------

async function submit() {
  const text = box.value.trim();
  if (!text && !files.length) return;
  const draft = { written: box.value, replying, editing, files };
  const done = editing ? does.edit(editing, text) : does.send({ text, reply_to: replying?.id, files });
  box.value = "";
  files = [];
  showFiles();
  leave();
  typedAt = 0;
  if (await done) return;
  ({ replying, editing, files } = draft); // refused: nothing of it is lost
  if (!box.value) box.value = draft.written;
  showFiles();
  fit();
  if (replying) showAbout(`Replying to ${person(replying.author_id).name}`);
  if (editing) showAbout("Editing your message");
}

function onKey(event) {
  if (event.isComposing) return;
  if (offered.length) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) mark(chosen + step);
    else if (event.key === "Escape") show([]);
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else return;
    event.preventDefault();
  } else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    submit();
  } else if (event.key === "Escape") {
    leave();
  } else if (event.key === "ArrowUp" && isFree()) {
    const own = [...messagesOf(state.room).values()].filter((each) => each.author_id === me() && !each.ephemeral && each.text);
    if (!own.length) return;
    event.preventDefault();
    edit(own.at(-1));
  }
}

function onInput() {
  fit();
  offer();
  if (!box.value || editing || box.value.startsWith("/") || Date.now() - typedAt < TYPING_PAUSE_MS) return;
  typedAt = Date.now();
  does.typing();
}

export function bringComposer(actions) {
  does = actions;
  find("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  box.addEventListener("keydown", onKey);
  box.addEventListener("input", onInput);
  box.addEventListener("blur", () => show([]));
  box.addEventListener("paste", (event) => event.clipboardData.files.length && addFiles(event.clipboardData.files));
  find("attach").addEventListener("click", () => find("picker").click());
  find("picker").addEventListener("change", (event) => { addFiles(event.target.files); event.target.value = ""; });
  find("room").addEventListener("dragover", (event) => event.preventDefault());
  find("room").addEventListener("drop", (event) => {
    event.preventDefault();
    if (!box.disabled) addFiles(event.dataTransfer.files);
  });
}
