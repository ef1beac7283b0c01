// The messages of the room that is shown, each with the tools for it.

import { ask, find, make } from "./dom.js";
import { addInline, renderMarkdown } from "./markdown.js";
import { renderComponents, renderEmbed, renderFile } from "./parts.js";
import { isBefore, me, messagesOf, person, room, roomName, state } from "./state.js";

const EMOJI = ["👍", "👎", "❤️", "😂", "🎉", "😮", "😢", "🙏", "👀", "✅", "❌", "🔥", "🚀", "🤔", "👋", "⭐"];
const QUIET_MS = 7 * 60 * 1000; // within it, a person's next message stands below without a name
const FOLLOWED = 80; // pixels from the end within which new messages are followed

const [log, scroller] = [find("log"), find("scroll")];
let does = {}; // what the tools do: {open, reply, edit, remove, react, branch, press, vote, listCommands, runOn}

export const names = {
  person: (id) => person(id).name,
  role: (id) => state.roles.get(id)?.name ?? "role",
  room: (id) => (state.rooms.has(id) ? roomName(state.rooms.get(id)) : ""),
  open: (id) => does.open(id),
};

// --- the list --------------------------------------------------------------------------------------------------------

export function showRoom() {
  const known = [...messagesOf(state.room).values()].sort((one, other) => (isBefore(one.id, other.id) ? -1 : 1));
  log.replaceChildren(...known.map(render));
  group();
  noteEmpty();
  toEnd();
}

export function showEarlier(messages) {
  const height = scroller.scrollHeight;
  log.prepend(...messages.map(render));
  group();
  scroller.scrollTop += scroller.scrollHeight - height;
}

export function showMessage(message) {
  const fresh = render(message);
  const old = nodeOf(message.id);
  if (old) {
    const held = old.contains(document.activeElement) ? document.activeElement.dataset : null;
    old.replaceWith(fresh);
    if (held) (held.custom ? fresh.querySelector(`[data-custom="${CSS.escape(held.custom)}"]`) : fresh)?.focus();
  } else {
    const next = [...log.children].reverse().find((each) => isBefore(each.dataset.id, message.id));
    if (next) next.after(fresh);
    else log.prepend(fresh);
  }
  group();
  noteEmpty();
  if (following || (!old && message.author_id === me())) toEnd();
}

export function dropMessage(id) {
  nodeOf(id)?.remove();
  for (const line of log.querySelectorAll(`.reply[data-to="${id}"]`)) line.replaceWith(replyLine({ id, author_id: null }));
  group();
  noteEmpty();
}

// Whoever reads at the end stays there, whatever grows: the list, a picture, the box below.
let following = true;

function toEnd() {
  following = true;
  scroller.scrollTop = scroller.scrollHeight;
}
scroller.addEventListener("scroll", () => {
  following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < FOLLOWED;
}, { passive: true });
const watch = new ResizeObserver(() => following && toEnd());
watch.observe(scroller);
watch.observe(log);

const nodeOf = (id) => log.querySelector(`[data-id="${id}"]`);

function noteEmpty() {
  find("empty").hidden = log.childElementCount > 0;
}

// Days apart get a line, messages of one person in a row one name; only the last can be reached by the tab key, the
// others by arrow keys from there.
function group() {
  let last = null;
  for (const node of log.children) {
    const message = messagesOf(state.room).get(node.dataset.id);
    if (!message) continue;
    const time = new Date(message.time);
    const sameDay = last && new Date(last.time).toDateString() === time.toDateString();
    const follows = sameDay && last.author_id === message.author_id && time - new Date(last.time) < QUIET_MS
      && isSaid(last) && isSaid(message) && !message.reply && !message.used;
    node.classList.toggle("compact", Boolean(follows));
    if (sameDay) delete node.dataset.day;
    else node.dataset.day = time.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
    node.tabIndex = node === log.lastElementChild ? 0 : -1;
    last = message;
  }
}

const isSaid = (message) => ["default", "reply", "chat_input_command", "context_menu_command"].includes(message.kind);

// --- one message -----------------------------------------------------------------------------------------------------

function render(message) {
  const author = person(message.author_id);
  const time = new Date(message.time);
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const marks = ["message", message.for_me && "for-me", message.ephemeral && "ephemeral", !isSaid(message) && "system"];
  const node = make("article", { class: marks.filter(Boolean).join(" "), "aria-label": `${author.name}, ${clock}` });
  node.dataset.id = message.id;
  const when = make("time", { class: "quiet", dateTime: message.time, title: time.toLocaleString() }, clock);
  if (!isSaid(message)) {
    node.append(make("div", { class: "body" }, systemLine(message, author), " ", when));
    return node;
  }
  const badge = author.bot ? make("span", { class: "badge" }, "bot") : null;
  node.append(
    message.reply ? replyLine(message.reply) : message.used ? usedLine(message.used) : "",
    avatar(author),
    make("div", { class: "body" }, make("p", { class: "author" }, make("b", {}, author.name), badge, when), ...content(message)),
  );
  return node;
}

export function avatar(who) {
  const node = make("span", { class: "avatar", "aria-hidden": "true" }, [...who.name][0]?.toUpperCase() ?? "?");
  node.style.setProperty("--hue", String(Number(BigInt(who.id) % 360n) * 47 % 360));
  return node;
}

function replyLine(reply) {
  const found = reply.author_id !== null;
  const line = make("p", { class: "reply quiet" }, "↱ ");
  line.dataset.to = reply.id;
  if (!found) {
    line.append("The original message was deleted.");
    return line;
  }
  const text = make("span", { class: "snippet" });
  addInline(text, reply.text.replaceAll("\n", " ") || "a file", names);
  line.append(make("button", {
    type: "button", class: "link", "aria-label": `To ${person(reply.author_id).name}'s message`, onclick: () => focusOn(reply.id),
  }, make("b", {}, person(reply.author_id).name)), " ", text);
  return line;
}

const usedLine = (used) => make(
  "p", { class: "reply quiet" }, "↱ ", make("b", {}, person(used.person_id).name), " used ", make("code", {}, used.command),
);

function focusOn(id) {
  const node = nodeOf(id);
  if (!node) return;
  node.scrollIntoView({ block: "center" });
  node.focus();
}

function systemLine(message, author) {
  const who = make("b", {}, author.name);
  switch (message.kind) {
    case "thread_created": return make("span", {}, who, ` started a thread: ${message.text}`);
    case "channel_pinned_message": return make("span", {}, who, " pinned a message.");
    case "user_join": return make("span", {}, who, " is here.");
    case "thread_starter_message": {
      const quote = make("blockquote", { class: "text" });
      if (message.reply?.author_id) quote.append(make("b", {}, person(message.reply.author_id).name), ": ");
      addInline(quote, message.reply?.text ?? "", names);
      return make("span", {}, "This thread began with:", quote);
    }
    default: return make("span", {}, who, ` ${message.text}`);
  }
}

function content(message) {
  const parts = [];
  if (message.loading) parts.push(make("p", { class: "quiet thinking" }, `${person(message.author_id).name} is thinking…`));
  if (message.text) parts.push(make("div", { class: "text" }, renderMarkdown(message.text, names)));
  if (message.edited) {
    const mark = make("span", { class: "edited quiet", title: `Edited ${new Date(message.edited).toLocaleString()}` }, " (edited)");
    const end = parts.at(-1)?.lastElementChild;
    if (end?.tagName === "P") end.append(mark);
    else parts.push(mark);
  }
  for (const each of message.forwarded) {
    parts.push(make("blockquote", {}, make("p", { class: "quiet" }, "Forwarded"), renderMarkdown(each.text, names), ...hanging(each)));
  }
  parts.push(...hanging(message));
  for (const name of message.stickers) parts.push(make("p", { class: "quiet" }, `Sticker: ${name}`));
  if (message.poll) parts.push(renderPoll(message));
  parts.push(...renderComponents(message.components, names, (id, values) => does.press(message, id, values)));
  if (message.reactions.length) parts.push(make("div", { class: "row reactions" }, ...message.reactions.map((each) => renderReaction(message, each))));
  if (message.thread) {
    const { id, name, count } = message.thread;
    parts.push(make("button", { type: "button", class: "thread", onclick: () => does.open(id) },
      make("b", {}, name), ` ${count} ${count === 1 ? "message" : "messages"} ›`));
  }
  if (message.ephemeral) parts.push(make("p", { class: "quiet" }, "Only you can see this. ",
    make("button", { type: "button", class: "link", onclick: () => does.dismiss(message) }, "Dismiss")));
  return parts;
}

const hanging = (each) => [...each.embeds.map((embed) => renderEmbed(embed, names)), ...each.attachments.map(renderFile)];

function renderReaction(message, reaction) {
  const people = reaction.people.map((id) => person(id).name).join(", ");
  return make("button", {
    type: "button", class: "reaction", title: people, "aria-pressed": String(reaction.mine),
    "aria-label": `${reaction.name}, ${people}`, onclick: () => does.react(message, reaction.key, !reaction.mine),
  }, `${reaction.name} ${reaction.people.length}`);
}

function renderPoll(message) {
  const { question, answers, open } = message.poll;
  const choices = answers.map((each) => make("button", {
    type: "button", disabled: !open, "aria-pressed": String(each.mine), onclick: () => does.vote(message, each.id),
  }, `${each.text} · ${each.count}`));
  return make("div", { class: "embed" }, make("p", { class: "heading" }, question), make("div", { class: "row" }, ...choices));
}

// --- tools -----------------------------------------------------------------------------------------------------------

// One bar of tools, which goes to the message that is pointed at or focused.
let bar = null;

function showTools(node) {
  if (!node || node.contains(bar)) return;
  const message = messagesOf(state.room).get(node.dataset.id);
  bar?.remove();
  bar = null;
  if (!message || message.loading || !isSaid(message)) return;
  const tools = message.ephemeral ? [] : toolsFor(message);
  if (!tools.length) return;
  bar = make("div", { class: "tools", role: "toolbar", "aria-label": "What to do with this message" },
    ...tools.map(([label, run]) => make("button", { type: "button", onclick: () => run(node) }, label)));
  node.append(bar);
}

function toolsFor(message) {
  const here = room();
  const own = message.author_id === me();
  return [
    ["React", (node) => pickEmoji(node, message)],
    here?.may_write && ["Reply", () => does.reply(message)],
    here && !here.is_thread && here.kind !== "dm" && !message.thread && ["Thread", () => does.branch(message)],
    own && ["Edit", () => does.edit(message)],
    (own || (here?.may_manage && here.kind !== "dm")) && ["Delete", () => does.remove(message)],
    ["Apps", () => runCommand(message)],
  ].filter(Boolean);
}

function pickEmoji(node, message) {
  bar.replaceChildren(...EMOJI.map((each) => make("button", {
    type: "button", "aria-label": `React with ${each}`, onclick: () => {
      bar?.remove();
      bar = null;
      node.focus();
      does.react(message, each, true);
    },
  }, each)));
  bar.classList.add("emoji");
  bar.firstElementChild.focus();
}

async function runCommand(message) {
  const commands = await does.listCommands();
  if (!commands.length) {
    await ask("Apps", [], "Close", { text: "No application offers anything for a message." });
    return;
  }
  const options = commands.map((each) => ({ label: `${each.name} (${each.application})`, value: each.name }));
  const chosen = await ask("Apps", [{ name: "name", label: "Command", options }], "Run");
  if (chosen) does.runOn(message, chosen.name);
}

export function bringTools(actions) {
  does = actions;
  const near = (event) => event.target.closest?.("#log > article");
  log.addEventListener("pointerover", (event) => event.pointerType === "mouse" && showTools(near(event)));
  log.addEventListener("focusin", (event) => showTools(near(event)));
  log.addEventListener("pointerup", (event) => {
    if (event.pointerType !== "mouse" && !event.target.closest("a, button, select, input, .spoiler")) showTools(near(event));
  });
  log.addEventListener("keydown", (event) => {
    const node = near(event);
    if (event.key === "Escape") find("text").focus();
    if (!node || event.target !== node) return;
    const next = { ArrowUp: node.previousElementSibling, ArrowDown: node.nextElementSibling }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}
