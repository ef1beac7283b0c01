// The page: who is played, which room is open, and what happens there.

import { Refused, call, listen, playAs, toFile } from "./api.js";
import * as composer from "./composer.js";
import { closeCommand, fillCommand } from "./command.js";
import { ask, find, make } from "./dom.js";
import { bringTools, dropMessage, showEarlier, showMessage, showRoom } from "./messages.js";
import { askModal } from "./parts.js";
import { bringWho, showMembers, showSide } from "./side.js";
import { company, forget, me, messagesOf, person, resetTo, room, roomName, state } from "./state.js";

const WHO = "denizen.simulator.who";
const ROOM = "denizen.simulator.room";
const TYPING_MS = 10_000;
const FIRST = "general";

let stop = () => {};
let loading = 0; // the newest room to be read; an older answer comes too late

// --- what happens ----------------------------------------------------------------------------------------------------

function onWorld(world) {
  const first = state.world?.me !== world.me || !state.rooms.has(state.room) || !world.people.some((each) => each.id === me());
  resetTo(world);
  playAs(person(me()).name);
  if (first || !room()) {
    forget();
    openRoom(preferredRoom());
    return;
  }
  showSide(openRoom);
  showMembers(openRoom);
  showHeader();
  if (composer.isFree()) composer.enterRoom();
}

function preferredRoom() {
  const wanted = sessionStorage.getItem(ROOM);
  const all = [...state.rooms.values()];
  const found = all.find((each) => each.id === state.room) ?? all.find((each) => each.id === wanted)
    ?? all.find((each) => each.name === FIRST) ?? all[0];
  return found?.id ?? null;
}

function onMessage(message) {
  const here = message.channel_id === state.room;
  const known = messagesOf(message.channel_id);
  const isNew = !known.has(message.id);
  if (state.messages.has(message.channel_id) || message.ephemeral) keep(message);
  state.typing.get(message.channel_id)?.delete(message.author_id);
  if (here) {
    showMessage(message);
    showTyping();
  } else if (isNew && !message.edited && message.author_id !== me() && Date.now() - new Date(message.time) < 60_000) {
    const direct = state.rooms.get(message.channel_id)?.kind === "dm";
    state.unread.set(message.channel_id, (state.unread.get(message.channel_id) ?? 0) + (message.for_me || direct ? 1 : 0));
    showSide(openRoom);
  }
}

function keep(message) {
  if (!state.messages.has(message.channel_id)) state.messages.set(message.channel_id, new Map());
  messagesOf(message.channel_id).set(message.id, message);
}

function onGone({ channel_id: id, ids }) {
  for (const each of ids) {
    messagesOf(id).delete(each);
    if (id === state.room) dropMessage(each);
  }
}

function onTyping({ channel_id: id, person_id: who }) {
  if (!state.typing.has(id)) state.typing.set(id, new Map());
  state.typing.get(id).set(who, Date.now() + TYPING_MS);
  setTimeout(showTyping, TYPING_MS + 50);
  showTyping();
}

function showTyping() {
  const now = Date.now();
  const typing = [...(state.typing.get(state.room) ?? [])].filter(([, until]) => until > now).map(([id]) => person(id).name);
  const names = typing.length > 2 ? "Several people" : typing.join(" and ");
  setStatus(typing.length ? `${names} ${typing.length > 1 ? "are" : "is"} typing…` : "");
}

let connected = true;

function setStatus(text) {
  find("status").textContent = connected ? text : "The connection is broken. Trying again…";
  find("status").classList.toggle("typing", connected && Boolean(text));
}

function onState(up) {
  const back = up && !connected;
  connected = up;
  showTyping();
  if (back && state.room) readRoom(); // what was missed
}

// --- rooms -----------------------------------------------------------------------------------------------------------

// A room's id, or {with: id} for the direct message with somebody.
async function openRoom(which) {
  closeSide();
  if (which?.with) {
    const found = await trying(() => call("POST", "/direct", { with: which.with }));
    if (!found) return;
    if (!state.rooms.has(found.id)) resetTo(await call("GET", "/world"));
    which = found.id;
  }
  closeCommand();
  state.room = which;
  if (which) sessionStorage.setItem(ROOM, which);
  state.unread.delete(which);
  showSide(openRoom);
  showMembers(openRoom);
  showHeader();
  composer.enterRoom();
  tell("");
  showTyping();
  showRoom();
  await readRoom();
  if (matchMedia("(pointer: fine)").matches) find("text").focus();
}

async function readRoom() {
  const [question, id] = [++loading, state.room];
  if (!id) return;
  if (room()?.is_forum) {
    showPosts();
    return;
  }
  const page = await trying(() => call("GET", `/channels/${id}/messages`));
  if (!page || question !== loading) return;
  const own = [...messagesOf(id).values()].filter((each) => each.ephemeral);
  state.messages.set(id, new Map());
  [...page.messages, ...own].forEach(keep);
  state.more.set(id, page.more);
  find("earlier").hidden = !page.more;
  showRoom();
  showHint();
}

async function readEarlier() {
  const id = state.room;
  const first = messagesOf(id).keys().next().value;
  const page = await trying(() => call("GET", `/channels/${id}/messages?before=${first}`));
  if (!page || id !== state.room) return;
  state.messages.set(id, new Map([...page.messages.map((each) => [each.id, each]), ...messagesOf(id)]));
  find("earlier").hidden = !page.more;
  showEarlier(page.messages);
}

function showPosts() {
  find("earlier").hidden = find("hint").hidden = true;
  const posts = [...state.rooms.values()].filter((each) => each.parent_id === state.room);
  find("log").replaceChildren(...posts.map((each) => make("button", { type: "button", class: "post", onclick: () => openRoom(each.id) },
    make("b", {}, each.name), make("span", { class: "quiet" }, each.is_archived ? " archived" : ""))));
  find("empty").hidden = posts.length > 0;
}

function showHeader() {
  const here = room();
  const parent = state.rooms.get(here?.parent_id);
  const mark = here?.kind === "dm" ? "@" : here?.is_thread ? "" : "#";
  find("title").replaceChildren(...(here?.is_thread && parent
    ? [make("button", { type: "button", class: "link", onclick: () => openRoom(parent.id) }, `#${parent.name}`), " › "] : []), here ? mark + roomName(here) : "");
  find("topic").textContent = here?.topic ?? "";
  find("new-thread").hidden = !here?.may_write || here.is_thread || here.kind === "dm";
  find("new-thread").replaceChildren(make("span", { class: "wide" }, "New "), here?.is_forum ? "post" : "thread");
  document.title = `${here ? mark + roomName(here) : ""} · ${find("guild").textContent}, simulated`;
  if (here?.is_forum) showPosts();
}

// What a newcomer can do, until there is something to see.
function showHint() {
  const bot = company(room()).find((each) => each.bot);
  const untouched = ![...messagesOf(state.room).values()].some((each) => person(each.author_id).bot || each.author_id === me());
  const hint = find("hint");
  hint.hidden = !bot || !untouched || !room()?.may_write;
  if (hint.hidden) return;
  const text = room().kind === "dm" ? "Hello!" : `@${bot.name} when does the last ferry leave in winter?`;
  const away = bot.online ? "" : ` ${bot.name} is offline at the moment.`;
  hint.replaceChildren(`You play the people here; choose whom at the end of the list of channels.${away} Try: `,
    make("button", { type: "button", class: "link", onclick: () => composer.write(text) }, text));
}

// --- acts ------------------------------------------------------------------------------------------------------------

// Runs it and tells in words what was refused. Null then, else its result.
async function trying(work) {
  try {
    const found = await work();
    tell("");
    return found ?? true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell(error.message);
    return null;
  }
}

function tell(text) {
  find("problem").hidden = !text;
  find("problem").textContent = text;
}

const place = (message) => `/channels/${message.channel_id}/messages/${message.id}`;

async function send({ text, reply_to: reply, files }) {
  const where = state.room;
  const tooLarge = files.find((each) => each.size > state.world.file_size_bytes);
  return trying(async () => {
    if (tooLarge) throw new Refused(`${tooLarge.name} is too large.`);
    const body = { text, reply_to: reply, files: await Promise.all(files.map(toFile)) };
    const message = await call("POST", `/channels/${where}/messages`, body);
    find("hint").hidden = true;
    onMessage(message);
    return message;
  });
}

async function use(work) {
  const used = await trying(work);
  if (!used) return null;
  if (!used.acknowledged) tell("The application did not respond.");
  if (used.modal) sendModal(used.modal); // the form of the command need not wait for it
  return used;
}

async function sendModal(modal) {
  const values = await askModal(modal);
  if (values) await use(() => call("POST", `/interactions/${modal.interaction_id}/modal`, { values }));
}

async function branch(message) {
  const named = await ask("New thread", [{ name: "name", label: "Name", max: 100, value: message.text.slice(0, 40).replace(/<[^>]*>|[*_`~|\n]/g, "").trim() }], "Create");
  const made = named && await trying(() => call("POST", `${place(message)}/thread`, named));
  if (made) enter(made.id);
}

async function newThread() {
  const forum = room().is_forum;
  const fields = [{ name: "name", label: forum ? "Title" : "Name", max: 100 }];
  if (forum) fields.push({ name: "text", label: "Text", long: true, max: 2000 });
  const given = await ask(forum ? "New post" : "New thread", fields, "Create");
  const made = given && await trying(() => call("POST", `/channels/${state.room}/threads`, given));
  if (made) enter(made.id);
}

async function enter(id) {
  if (!state.rooms.has(id)) resetTo(await call("GET", "/world"));
  openRoom(id);
}

async function remove(message) {
  if (!await ask("Delete this message?", [], "Delete", { text: message.text.slice(0, 200), dangerous: true })) return;
  await trying(() => call("DELETE", place(message)));
}

function dismiss(message) {
  onGone({ channel_id: message.channel_id, ids: [message.id] });
}

function react(message, key, wanted) {
  trying(() => call(wanted ? "PUT" : "DELETE", `${place(message)}/reactions/${encodeURIComponent(key)}`));
}

async function addPerson() {
  const given = await ask("New person", [{ name: "name", label: "Name", max: 32 }], "Join");
  const made = given && await trying(() => call("POST", "/people", given));
  if (made) play(given.name);
}

function play(name) {
  playAs(name);
  sessionStorage.setItem(WHO, name); // another tab may play somebody else
  localStorage.setItem(WHO, name);
  connect();
}

function connect() {
  stop();
  stop = listen({ world: onWorld, message: onMessage, gone: onGone, typing: onTyping, state: onState });
}

// --- the list of channels and of members -----------------------------------------------------------------------------

function closeSide() {
  document.body.classList.remove("side-open");
  find("shade").hidden = true;
  find("open-side").setAttribute("aria-expanded", "false");
}

function openSide() {
  document.body.classList.add("side-open");
  find("shade").hidden = false;
  find("open-side").setAttribute("aria-expanded", "true");
  find("channels").querySelector("[aria-current]")?.focus();
}

bringTools({
  open: openRoom, reply: composer.reply, edit: composer.edit, remove, dismiss, react, branch,
  press: (message, id, values) => use(() => call("POST", `${place(message)}/press`, { custom_id: id, values })),
  vote: (message, answer) => trying(() => call("POST", `${place(message)}/vote`, { answer })),
  listCommands: () => call("GET", `/channels/${state.room}/commands?kind=3`),
  runOn: (message, name) => use(() => call("POST", `${place(message)}/commands`, { name })),
});
composer.bringComposer({
  send,
  edit: (message, text) => trying(() => call("PATCH", place(message), { text })),
  typing: () => call("POST", `/channels/${state.room}/typing`).catch(() => null),
  listCommands: () => call("GET", `/channels/${state.room}/commands`),
  choose: (chosen) => {
    const where = state.room;
    fillCommand(chosen, (read) => use(async () => call("POST", `/channels/${where}/commands`, await read())), () => find("text").focus());
  },
});
bringWho(play, addPerson);
find("new-thread").addEventListener("click", newThread);
find("earlier").addEventListener("click", readEarlier);
find("open-side").addEventListener("click", openSide);
find("shade").addEventListener("click", closeSide);
find("show-members").addEventListener("click", (event) => {
  const open = document.body.classList.toggle("members-open");
  event.target.setAttribute("aria-expanded", String(open));
});
document.addEventListener("keydown", (event) => event.key === "Escape" && document.body.classList.contains("side-open") && closeSide());
if (matchMedia("(min-width: 70rem)").matches) find("show-members").click();
playAs(sessionStorage.getItem(WHO) ?? localStorage.getItem(WHO) ?? "");
connect();
