// The chat page: shows a chat, sends messages, follows what happens in it, and what people do with answers.

import { ApiError, describeError, getJson, newKey, parseEvents, request, send, streamTurn } from "./api.js";
import { ChatList } from "./chat_list.js";
import { CommandMenu, commandNote, fillNote, streamCommand } from "./command_menu.js";
import { Composer, hasKeyboard } from "./composer.js";
import { copyButton } from "./markdown.js";
import {
  approvalCard, button, callRow, cardsBody, element, messageItem, pictureOf, problemBlock, reasoningBlock, seconds, textBody,
  TurnView,
} from "./message_view.js";
import { openShareDialog } from "./share.js";
import { showCitation, showWhy, watchPanel } from "./side_panel.js";

const find = (id) => document.getElementById(id);
const [log, scroller, picker, models, status] = ["log", "scroll", "agent", "model", "status"].map(find);
const PAGE = 40;
const MAX_SHOWN = 500;
const SLICE_MS = 8; // half a frame
const RECONNECT_MS = 3000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const EXIT_WORDS = ["!exit", "/exit"];

let agents = [];
let chat = null; // the id of the chat that is shown; null for one that begins with the next message
let details = null; // what the server last said of it
let running = null; // the id of the turn that this page follows, "" until it is known, null when none runs
let handover = null; // the agent that the chat was handed to, and for how long
let handoverTimer = 0;
let watching = null; // ends the stream of what happens in the chat

const list = new ChatList({
  onOpen: (id) => go(id),
  onRemoved: (id) => id === chat && go(null),
  onProblem: (error) => complain(error),
});
const menu = new CommandMenu(find("message"), find("commands")); // before the composer: it takes some of its keys
const composer = new Composer({
  onSend: (message) => ask(message),
  chatId: () => chat,
  makeChat,
});

// Returns the id of the chat; before its first message it is made, so that files have a place.
let made = null; // the chat that is being made

async function makeChat() {
  if (chat) return chat;
  made ??= send("POST", "/api/chats", { id: newKey(), agent: picker.value });
  try {
    const id = (await made).chat.id;
    if (!chat) {
      chat = id;
      history.replaceState(null, "", `/c/${id}`);
    }
    return id;
  } finally {
    made = null;
  }
}

// --- what is shown ---------------------------------------------------------------------------------------------------

let visit = 0; // counts what was opened: what belongs to an earlier visit touches the page no more

async function go(id) {
  document.body.classList.remove("menu-open");
  if (id !== null && id === chat && details) return;
  history.pushState(null, "", id ? `/c/${id}` : "/");
  await open(id);
}

async function open(id) {
  composer.leave();
  visit += 1;
  followed = null;
  watching?.abort();
  chat = id;
  details = null;
  log.replaceChildren();
  drawn.clear();
  setRunning(null);
  setStatus("");
  setTitle("");
  showHandover(null);
  find("panel").hidden = find("earlier").hidden = find("share").hidden = true;
  find("empty").hidden = id !== null;
  find("hint").hidden = !agents.find((each) => each.name === picker.value)?.is_embedded;
  list.select(id);
  composer.show();
  if (id) watch(id);
  if (hasKeyboard) find("message").focus();
}

// Shows the chat as it is stored, but not when a question was asked meanwhile. What is shown already stays as it is.
async function load() {
  const own = visit;
  const before = running;
  const limit = Math.min(MAX_SHOWN, Math.max(PAGE, details?.messages.length ?? 0));
  const now = await getJson(`/api/chats/${chat}?limit=${limit}`);
  if (visit !== own || (before === null && running !== null)) return;
  const isFirst = details === null;
  details = withEarlier(now, details);
  if ((isFirst || handover || now.handover) && agents.some((each) => each.name === now.chat.agent)) picker.value = now.chat.agent;
  showHandover(now.handover);
  setTitle(now.chat.title);
  find("share").hidden = false;
  find("earlier").hidden = !details.has_earlier;
  following(() => place(itemsOf(details.messages)));
  find("empty").hidden = log.children.length > 0;
  if (isFirst) scrollToEnd();
}

// Tells that the chat is with an agent that it was handed to, and looks again when its time is over.
function showHandover(now) {
  clearTimeout(handoverTimer);
  handover = now ?? null;
  find("handover").hidden = !handover;
  picker.disabled = running !== null || handover !== null;
  if (!handover) return;
  const until = new Date(handover.until);
  const time = until.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  find("handover-text").textContent = `${handover.agent} answers here until ${time}, for ${handover.messages_left} more messages.`;
  const own = visit;
  const look = () => visit === own && running === null && load().catch(complain);
  handoverTimer = setTimeout(look, Math.min(Math.max(until - Date.now(), 0) + 1000, LONGEST_TIMER_MS));
}

// Adds the messages before those that were read now, if nothing is missing between.
function withEarlier(now, known) {
  const first = now.messages[0]?.sequence;
  if (known?.session_id !== now.session_id || !now.has_earlier) return now;
  const earlier = known.messages.filter((each) => each.sequence < first);
  if (!earlier.length || earlier.length === known.messages.length) return now;
  return { ...now, messages: [...earlier, ...now.messages], has_earlier: known.has_earlier };
}

// The end stays in view until the reader scrolls up.
let follows = true;
let lastTop = 0;
scroller.addEventListener("scroll", () => {
  const gap = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  if (gap < 4) follows = true;
  else if (scroller.scrollTop < lastTop - 1) follows = false;
  lastTop = scroller.scrollTop;
}, { passive: true });

function toEnd() {
  if (follows) scroller.scrollTop = scroller.scrollHeight;
}

// Twice: what comes into view gets its real height only then.
function scrollToEnd() {
  follows = true;
  toEnd();
  requestAnimationFrame(() => requestAnimationFrame(toEnd));
}

async function loadEarlier() {
  const own = visit;
  const before = details.messages[0].sequence;
  const query = new URLSearchParams({ before, limit: PAGE, session: details.session_id });
  const earlier = await getJson(`/api/chats/${chat}?${query}`);
  const isOld = () => visit !== own || before !== details.messages[0].sequence;
  if (isOld()) return;
  await drawInSlices(earlier.messages, isOld);
  if (isOld()) return;
  details = { ...details, messages: [...earlier.messages, ...details.messages], has_earlier: earlier.has_earlier };
  scroller.style.overflowAnchor = "none"; // not every browser keeps the place by itself
  const height = scroller.scrollHeight;
  place(itemsOf(details.messages), element("div", "block"));
  scroller.scrollTop += scroller.scrollHeight - height;
  requestAnimationFrame(() => { scroller.style.overflowAnchor = ""; });
  if (document.activeElement === find("earlier") && !details.has_earlier) scroller.focus();
  find("earlier").hidden = !details.has_earlier;
}

// --- messages as items of the page -----------------------------------------------------------------------------------

// What was drawn, by the id of its first message. It is drawn again only when it is different, so that what people have
// selected, opened or focused in it stays.
const drawn = new Map();

function itemsOf(messages) {
  return groupsOf(messages).flatMap((group) => {
    const fork = details?.forks.find((each) => each.sequence === group[0].sequence);
    const known = drawn.get(group[0].id);
    const parts = [fork, ...group];
    const isKnown = known?.parts.length === parts.length && parts.every((part, at) => isSame(part, known.parts[at]));
    if (isKnown || known?.items.some((item) => item.querySelector("form.edit"))) return known.items;
    const items = itemsOfGroup(group);
    drawn.set(group[0].id, { parts, items });
    return items;
  });
}

// Draws messages while frames go on: a page of them takes longer than one has.
async function drawInSlices(messages, isOld) {
  let began = performance.now();
  for (const group of groupsOf(messages)) {
    itemsOf(group);
    if (performance.now() - began < SLICE_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    if (isOld()) return;
    began = performance.now();
  }
}

const isSame = (one, other) => one === other || JSON.stringify(one) === JSON.stringify(other);

// The messages of one turn by the agent are shown as one.
function groupsOf(messages) {
  const groups = [];
  for (const message of messages) {
    const last = groups.at(-1)?.at(-1);
    const isMore = last?.role === "assistant" && message.role === "assistant" && last.turn_id === message.turn_id;
    if (isMore) groups.at(-1).push(message);
    else groups.push([message]);
  }
  return groups;
}

function itemsOfGroup(group) {
  const { role, author, turn_id } = group[0];
  const item = messageItem(role, role === "user" ? "You" : author || picker.value);
  const items = [item];
  for (const message of group) {
    fill(item, message);
    if (message.turn) items.push(...finish(item, message));
  }
  for (const each of items) each.dataset.turn = turn_id;
  return items;
}

// Puts the items into the log, and takes out what is neither among them nor a note. Notes stay where they are. New items
// follow the one before them, also into its block; those before all others come into `block`, if there is one.
function place(items, block = null) {
  const wanted = new Set(items);
  const isNote = (each) => each?.classList.contains("note");
  const old = entries().filter((each) => !wanted.has(each) && !isNote(each));
  for (const item of items) {
    const before = item.parentElement ? null : old.find((each) => each.dataset.turn === item.dataset.turn && each.className === item.className);
    if (before) replace(before, item);
  }
  for (const each of old) each.remove();
  if (block) log.prepend(block);
  const now = entries();
  let at = 0;
  let last = null;
  for (const item of items) {
    while (isNote(now[at])) last = now[at++];
    if (now[at] === item) at += 1;
    else if (last) last.after(item);
    else (block ?? log).prepend(item);
    last = item;
  }
  for (const each of log.querySelectorAll(".block:empty")) each.remove();
}

// What the log shows, in order. Earlier messages stand in blocks, a page each, so that the browser skips those at once
// which are out of sight.
const entries = () => [...log.children].flatMap((each) => (each.classList.contains("block") ? [...each.children] : each));

const nameOf = (control) => control.getAttribute("aria-label") ?? control.textContent;

// What somebody opened stays open, and who was there stays there.
function replace(before, item) {
  const opened = [...before.querySelectorAll("details")];
  const focused = before.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  before.replaceWith(item);
  item.querySelectorAll("details").forEach((each, at) => { each.open = opened[at]?.open ?? false; });
  if (focused === null) return;
  const same = [...item.querySelectorAll("button, summary, a, [tabindex]")].find((each) => nameOf(each) === focused);
  item.tabIndex = -1;
  (same ?? item).focus({ preventScroll: true });
}

function fill(item, message) {
  if (message.text && (message.role === "user" || !message.calls.length)) item.append(textBody(message.text, message.role === "assistant"));
  for (const file of message.uploads ?? []) {
    if (file.media_type.startsWith("image/")) item.append(pictureOf(file.url));
    else item.append(Object.assign(element("a", "file", file.name), { href: file.url }));
  }
  for (const call of message.calls) {
    const [row, end] = callRow(call.tool, call.args);
    end(call);
    item.append(row);
    if (call.approval) item.append(approvalCard(call.approval)[0]);
  }
  if (message.role === "user") item.append(questionTools(message));
}

// Adds what came of a turn, behind its last message. Returns further items: a question whose turn failed has no answer.
function finish(item, message) {
  const turn = message.turn;
  const isAnswer = message.role === "assistant";
  const hasNoAnswer = ["failed", "refused", "cancelled", "skipped"].includes(turn.status);
  const more = !isAnswer && hasNoAnswer ? [messageItem("assistant", turn.agent)] : [];
  const target = isAnswer ? item : more[0];
  if (!target) return more;
  const { reasoning, images, cards } = turn.extras;
  if (reasoning) target.insertBefore(reasoningBlock(reasoning), target.children[1] ?? null);
  for (const url of images) target.append(pictureOf(url));
  if (cards) target.append(cardsBody(cards));
  if (turn.error && turn.status !== "cancelled") target.append(problemBlock(turn.error));
  if (turn.status === "cancelled") target.append(element("p", "quiet", "Stopped."));
  if (turn.status === "skipped") target.append(element("p", "quiet", "Skipped by a hook."));
  if (turn.status !== "open") target.append(answerTools(message, turn));
  return more;
}

function setTitle(title) {
  find("title").textContent = document.querySelector(".topbar-title").textContent = title || "New chat";
  document.title = `${title || "New chat"} · Denizen`;
}

// --- what people do with messages ------------------------------------------------------------------------------------

function questionTools(message) {
  const tools = element("div", "tools");
  tools.append(
    copyButton(() => message.text, "Copy the message"),
    button("Edit", (event) => edit(message, event.currentTarget.closest(".message")), "tiny"),
    ...versions(message),
  );
  return tools;
}

function answerTools(message, turn) {
  const tools = element("div", "tools");
  const facts = [turn.model, turn.duration_ms == null ? "" : seconds(turn.duration_ms), turn.usage?.cost_usd ? `$${turn.usage.cost_usd}` : ""];
  if (message.role === "assistant" && message.text) tools.append(copyButton(() => message.text, "Copy the answer"));
  tools.append(button("Retry", () => retry(turn.id), "tiny"));
  if (message.role === "assistant") tools.append(...votes(message));
  tools.append(button("Why?", () => showWhy(turn.id), "tiny"), element("span", "quiet facts", facts.filter(Boolean).join(" · ")));
  return tools;
}

function votes(message) {
  const make = (vote, label, icon) => {
    const made = button("", () => toggle(vote), `tiny vote ${icon}`);
    made.setAttribute("aria-label", label);
    made.setAttribute("aria-pressed", String(message.feedback === vote));
    return made;
  };
  const up = make("positive", "Good answer", "icon-good");
  const down = make("negative", "Bad answer", "icon-bad");
  async function toggle(vote) {
    const now = message.feedback === vote ? null : vote;
    const reason = now === "negative" ? await askReason() : "";
    if (reason === null) return;
    try {
      await send("PATCH", `/api/messages/${message.id}/feedback`, { feedback: now, reason });
      Object.assign(message, { feedback: now, feedback_reason: reason });
      up.setAttribute("aria-pressed", String(now === "positive"));
      down.setAttribute("aria-pressed", String(now === "negative"));
    } catch (error) {
      setStatus(describeError(error).message);
    }
  }
  return [up, down];
}

function askReason() {
  const dialog = find("vote-dialog");
  find("vote-reason").value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "send" ? find("vote-reason").value : null), { once: true });
  });
}

// "‹ 2 / 3 ›" at a message that has other versions.
function versions(message) {
  const fork = details?.forks.find((each) => each.sequence === message.sequence);
  if (!fork) return [];
  const step = (by, label, sign) => {
    const made = button(sign, () => activate(fork.sessions[fork.current + by]), "tiny");
    made.setAttribute("aria-label", label);
    made.disabled = !fork.sessions[fork.current + by];
    return made;
  };
  const count = element("span", "quiet", `${fork.current + 1} / ${fork.sessions.length}`);
  return [step(-1, "The version before", "‹"), count, step(1, "The next version", "›")];
}

async function activate(session) {
  try {
    await send("POST", `/api/chats/${chat}/sessions/${session}/activate`);
    await load();
  } catch (error) {
    complain(error);
  }
}

// Asks a question again, or another in its place: what was said from there on stays as another version.
async function branch(question, text) {
  if (running !== null) {
    setStatus("Wait for the answer, or stop it, first.");
    return;
  }
  const own = visit;
  setRunning("");
  try {
    await send("POST", `/api/chats/${chat}/branch`, { before_message_id: question.id });
    if (visit !== own) return;
    await load();
  } catch (error) {
    if (visit !== own) return;
    complain(error);
    setRunning(null);
    return;
  }
  if (visit === own) await ask({ text, uploads: question.uploads ?? [] });
}

function retry(turnId) {
  const question = details.messages.find((each) => each.role === "user" && each.turn_id === turnId);
  if (question) branch(question, question.text);
}

function edit(message, item) {
  item.querySelector("form.edit")?.remove();
  const form = element("form", "edit");
  const opener = document.activeElement;
  const cancel = () => {
    form.remove();
    opener.focus();
  };
  const box = Object.assign(element("textarea"), { value: message.text, rows: 3 });
  box.setAttribute("aria-label", "The message, to be changed");
  const row = element("div", "row");
  row.append(
    Object.assign(element("button", "primary", "Send as a new version"), { type: "submit" }),
    button("Cancel", cancel),
  );
  form.append(box, row);
  form.addEventListener("keydown", (event) => event.key === "Escape" && !event.isComposing && cancel());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (!text || running !== null) return;
    form.remove();
    find("message").focus();
    branch(message, text);
  });
  item.append(form);
  box.focus();
}

// --- one turn --------------------------------------------------------------------------------------------------------

async function ask({ text, uploads }) {
  if (handover && EXIT_WORDS.includes(text.trim().toLowerCase())) return give(text);
  if (text.startsWith("/") && !uploads.length && await menu.isCommand(text)) return give(text);
  const isFirst = chat === null || details === null;
  chat ??= newKey();
  const asked = chat;
  const own = visit;
  let isTaken = false;
  const take = (turn) => {
    isTaken = true;
    if (isFirst) list.load();
    question.dataset.turn = item.dataset.turn = turn;
    if (visit !== own) return;
    setRunning(turn);
    if (isFirst) list.select(asked);
  };
  if (isFirst) history.replaceState(null, "", `/c/${chat}`);
  const question = messageItem("user", "You");
  question.append(textBody(text));
  for (const file of uploads) if (file.media_type.startsWith("image/")) question.append(pictureOf(file.url));
  const item = messageItem("assistant", picker.value);
  log.append(question, item);
  find("empty").hidden = true;
  scrollToEnd();
  setRunning("");
  setStatus("Thinking…");
  const view = new TurnView(item, setStatus, following);
  const body = { message: text, agent: picker.value, model: models.value, uploads: uploads.map((each) => each.path) };
  try {
    for await (const event of streamTurn(`/api/chats/${asked}`, body, newKey(), take)) {
      if (visit !== own) return; // something else is shown now; the turn goes on without this page
      if (event.type === "title") {
        setTitle(event.title);
        list.rename(asked, event.title);
      } else {
        view.show(event);
        if (event.type === "finished" || event.type === "error") endTurn(own, isFirst);
      }
    }
  } catch (error) {
    if (visit !== own) {
      if (!isTaken) composer.keepFor(asked, text);
      return;
    }
    following(() => item.append(problemBlock(describeError(error))));
    if (isTaken) {
      await endTurn(own, isFirst);
      return;
    }
    composer.giveBack({ text, uploads }); // and what waited behind it: the reason holds for that, too
    setStatus("");
    setRunning(null);
  }
}

// Gives a command. Its answer is shown as a note, unless it starts a turn.
async function give(text) {
  const isFirst = chat === null || details === null;
  chat ??= newKey();
  const own = visit;
  const note = commandNote(text);
  let view = null;
  log.append(note);
  find("empty").hidden = true;
  scrollToEnd();
  setRunning("");
  setStatus("Working…");
  try {
    for await (const event of streamCommand({ input: text, chat, agent: picker.value }, newKey())) {
      if (visit !== own) return;
      if (event.type === "turn") {
        const item = messageItem("assistant", event.agent);
        item.dataset.turn = event.turn_id;
        following(() => log.append(item));
        setRunning(event.turn_id);
        setStatus("Thinking…");
        view = new TurnView(item, setStatus, following);
      } else if (event.type === "shell_output" || event.type === "command") {
        following(() => fillNote(note, event));
        if (event.agent) picker.value = event.agent;
      } else if (event.type === "title") {
        setTitle(event.title);
        list.rename(chat, event.title);
      } else {
        view?.show(event);
        if (!view && event.type === "notice") following(() => fillNote(note, event));
        if (!view && event.type === "error") following(() => note.append(problemBlock(event.error)));
      }
    }
  } catch (error) {
    if (visit !== own) return;
    following(() => note.append(problemBlock(describeError(error))));
    if (!view) composer.giveBack({ text, uploads: [] });
  }
  if (visit !== own) return;
  if (view) return endTurn(own, isFirst);
  setStatus("");
  if (!isFirst) await load().catch(complain);
  if (visit === own) setRunning(null);
}

// Shows the chat as it is stored now: with durations, versions, and what people may do with the answer.
async function endTurn(own, isFirst) {
  if (visit !== own) return;
  setStatus("");
  if (isFirst) list.select(chat);
  if (isFirst) list.load();
  await load().catch(complain);
  if (visit !== own) return;
  setRunning(null);
  if (isFirst) watch(chat);
}

// Shows the chat, and follows what happens in it: a turn that runs already, and messages from another tab or client.
// The server tells first that there is something to load, and each turn after the message that began it.
// A page that nobody sees does not: a browser has six connections to a server, for all its tabs.
let followed = null; // the view of a turn that this page did not begin

async function watch(id) {
  watching?.abort();
  if (document.hidden) return details ?? load().catch(complain);
  const own = (watching = new AbortController());
  if (followed) followed = running = null; // its beginning is told again; the page stays busy
  const shown = details ?? load().catch(() => {}); // beside the stream, whose first event has it read what came meanwhile
  try {
    const response = await request(`/api/events/chats/${id}`, { signal: own.signal });
    for await (const event of parseEvents(response.body)) {
      await shown;
      if (own.signal.aborted) return;
      await follow(event, own.signal);
    }
  } catch (error) {
    if (own.signal.aborted) return;
    if (details === null && !log.querySelector(".problem")) complain(error);
    if (error instanceof ApiError && error.status < 500 && error.status !== 429) return;
  }
  setTimeout(() => !own.signal.aborted && watch(id), RECONNECT_MS);
}

async function follow(event, signal) {
  if (event.type === "changed") {
    if (event.removed) return go(null);
    if (running !== null) return;
    await load();
    if (!signal.aborted && running === null && !details?.running.length) setRunning(null); // it has ended meanwhile
  } else if (event.type === "title") {
    setTitle(event.title);
    list.rename(chat, event.title);
  } else if (event.type === "message") {
    if (running !== null) return; // this page shows it already
    await load();
    if (signal.aborted || running !== null) return;
    const item = messageItem("assistant", picker.value);
    item.dataset.turn = event.turn_id;
    place(itemsOf(details.messages.filter((each) => each.role === "user" || each.turn_id !== event.turn_id))); // it is told anew
    log.append(item);
    scrollToEnd();
    setRunning(event.turn_id);
    setStatus("Thinking…");
    followed = new TurnView(item, setStatus, following);
  } else if (followed) {
    followed.show(event);
    if (event.type !== "finished" && event.type !== "error") return;
    followed = null;
    await endTurn(visit, false);
  }
}

function following(change) {
  change();
  if (follows) scrollToEnd();
}

function setStatus(text) {
  status.textContent = text;
}

function setRunning(turn) {
  running = turn;
  const isBusy = turn !== null;
  log.setAttribute("aria-busy", String(isBusy)); // screen readers wait for the whole answer
  if (!isBusy && document.activeElement === find("stop")) find("message").focus();
  find("stop").hidden = !isBusy;
  find("stop").disabled = !turn;
  find("send").textContent = isBusy ? "Queue" : "Send";
  models.disabled = isBusy;
  picker.disabled = isBusy || handover !== null;
  composer.setBusy(isBusy);
}

async function stop() {
  if (!running) return;
  setStatus("Stopping…");
  await send("POST", `/api/turns/${running}/cancel`).catch(() => setStatus("The turn could not be stopped."));
}

function complain(error) {
  log.append(problemBlock(describeError(error)));
  find("empty").hidden = true;
}

// --- the start -------------------------------------------------------------------------------------------------------

const idInAddress = () => location.pathname.match(/^\/c\/([\w-]+)$/)?.[1] ?? null;

async function start() {
  watchPanel(log, () => details);
  const [known, choices] = await Promise.all([getJson("/api/agents"), getJson("/api/models")]);
  agents = known;
  picker.replaceChildren(...agents.map((agent) => new Option(agent.name, agent.name)));
  const wanted = localStorage.getItem("denizen.agent");
  if (agents.some((agent) => agent.name === wanted)) picker.value = wanted;
  models.replaceChildren(new Option("of the agent", ""), ...choices.map((model) => new Option(model.name, model.name)));
  let draft = "";
  if (location.pathname === "/admin/ask") {
    const begun = await send("POST", "/api/chats", { agent: picker.value, mode: "admin" });
    // From our own pages only: else a link anywhere could put words into the mouth of an owner.
    const isOwn = document.referrer.startsWith(`${location.origin}/`);
    draft = isOwn ? new URLSearchParams(location.search).get("draft") ?? "" : "";
    history.replaceState(null, "", `/c/${begun.chat.id}`);
  }
  list.load();
  await open(idInAddress());
  if (draft) composer.fill(draft);
}

find("stop").addEventListener("click", stop);
find("handover-end").addEventListener("click", () => running === null && give(EXIT_WORDS[0]));
find("earlier").addEventListener("click", () => loadEarlier().catch(complain));
new IntersectionObserver((seen) => { // before the reader comes to the top
  if (seen.at(-1).isIntersecting && details && log.children.length) loadEarlier().catch(complain);
}, { root: scroller, rootMargin: "1500px 0px 0px 0px" }).observe(find("earlier"));
find("share").addEventListener("click", () => openShareDialog(details.chat));
find("new").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  go(null);
});
picker.addEventListener("change", () => localStorage.setItem("denizen.agent", picker.value));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || !find("panel").hidden) return;
  if (document.querySelector("dialog[open]") || document.body.classList.contains("menu-open")) return;
  if (event.target === find("message") || event.target === document.body || event.target.closest("#log, #scroll, #stop")) {
    if (!event.target.closest("form.edit")) stop();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) watching?.abort();
  else if (chat && details) watch(chat); // it tells what has happened meanwhile
});
window.addEventListener("pagehide", () => composer.leave());
window.addEventListener("popstate", () => idInAddress() !== chat && open(idInAddress()));
start().catch(complain);
