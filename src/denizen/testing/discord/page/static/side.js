// The list of channels, threads and direct messages, the members, and who is played.

import { find, make } from "./dom.js";
import { avatar } from "./messages.js";
import { company, me, person, room, roomName, state } from "./state.js";

const NEW = "+";

export function showSide(open) {
  const { guilds, direct_messages: direct } = state.world;
  find("guild").textContent = guilds.map((each) => each.name).join(", ") || "No server";
  const parts = [];
  for (const guild of guilds) {
    const list = make("ul");
    for (const channel of guild.channels.filter((each) => !each.is_thread && each.kind !== "category")) {
      const threads = guild.channels.filter((each) => each.is_thread && each.parent_id === channel.id);
      list.append(make("li", {}, entry(channel, open), threads.length ? make("ul", {}, ...threads.map((each) => make("li", {}, entry(each, open)))) : null));
    }
    parts.push(make("h2", { class: "quiet" }, "Channels"), list);
  }
  parts.push(make("h2", { class: "quiet" }, "Direct messages"), make("ul", {}, ...directEntries(direct, open)));
  const focused = document.activeElement?.dataset?.room;
  find("channels").replaceChildren(...parts);
  if (focused) find("channels").querySelector(`[data-room="${focused}"]`)?.focus();
  showWho();
}

function entry(channel, open) {
  const waiting = state.unread.get(channel.id);
  const node = make("button", {
    type: "button", class: ["room", waiting !== undefined && "unread", channel.is_archived && "archived"].filter(Boolean).join(" "),
    "aria-current": channel.id === state.room ? "page" : null, onclick: () => open(channel.id),
  }, sign(channel), make("span", { class: "name" }, roomName(channel)));
  node.dataset.room = channel.id;
  if (channel.is_private) node.append(make("span", { class: "quiet" }, "private"));
  if (waiting) node.append(make("span", { class: "count", "aria-label": `${waiting} for you` }, String(waiting)));
  else if (waiting === 0) node.append(make("span", { class: "hidden" }, "unread"));
  return node;
}

function sign(channel) {
  if (channel.kind === "dm") return dot(person(channel.with[0]));
  const mark = channel.is_thread ? "↳" : channel.is_forum ? "▤" : "#";
  return make("span", { class: "sign", "aria-hidden": "true" }, mark);
}

const dot = (who) => make("span", { class: `dot${who.online ? " online" : ""}`, title: who.online ? "online" : "offline" });

// Bots are always there to be written to; people once there is something between them.
function directEntries(direct, open) {
  const known = new Set(direct.flatMap((each) => each.with));
  const others = state.world.people.filter((each) => each.bot && !known.has(each.id));
  return [
    ...direct.map((each) => make("li", {}, entry(each, open))),
    ...others.map((each) => make("li", {}, make("button", {
      type: "button", class: "room", onclick: () => open({ with: each.id }),
    }, dot(each), make("span", { class: "name" }, each.name)))),
  ];
}

function showWho() {
  const people = state.world.people.filter((each) => !each.bot);
  const who = find("who");
  who.replaceChildren(...people.map((each) => new Option(each.name, each.name)), new Option("New person…", NEW));
  who.value = person(me()).name;
  find("me-avatar").replaceWith(Object.assign(avatar(person(me())), { id: "me-avatar" }));
}

// `play(name)` is called for somebody who is there, `add()` for a new person.
export function bringWho(play, add) {
  find("who").addEventListener("change", (event) => {
    if (event.target.value !== NEW) return play(event.target.value);
    showWho();
    return add();
  });
}

export function showMembers(open) {
  const here = company(room());
  const groups = [["Bots", here.filter((each) => each.bot)], ["People", here.filter((each) => !each.bot)]];
  find("members").replaceChildren(...groups.filter(([, list]) => list.length).flatMap(([title, list]) => [
    make("h2", { class: "quiet" }, `${title} · ${list.length}`),
    make("ul", {}, ...list.map((each) => make("li", {}, memberEntry(each, open)))),
  ]));
}

function memberEntry(each, open) {
  const parts = [avatar(each), make("span", { class: "name" }, each.name), each.bot ? dot(each) : null];
  if (each.id === me()) return make("span", { class: "room" }, ...parts, make("span", { class: "quiet" }, "you"));
  return make("button", { type: "button", class: "room", title: `Write to ${each.name}`, onclick: () => open({ with: each.id }) }, ...parts);
}
