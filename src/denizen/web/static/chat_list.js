// The list of chats in the sidebar: search, open, rename, pin, delete.

import { describeError, getJson, send } from "./api.js";
import { button, element } from "./message_view.js";

const find = (id) => document.getElementById(id);
const PAGE = 40;

export class ChatList {
  // `onOpen` gets the id of a chat to show, `onRemoved` that of one that is gone.
  constructor({ onOpen, onRemoved, onProblem }) {
    this.list = find("chats");
    this.search = find("chat-search");
    this.more = find("more-chats");
    Object.assign(this, { onOpen, onRemoved, onProblem, current: null, chats: [] });
    let typing = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.load(), 200);
    });
    this.more.addEventListener("click", () => this.load(this.chats.at(-1)?.updated_at));
  }

  async load(before = "") {
    const query = new URLSearchParams({ limit: PAGE });
    if (this.search.value.trim()) query.set("search", this.search.value.trim());
    if (before) query.set("before", before);
    try {
      const found = await getJson(`/api/chats?${query}`);
      this.chats = before ? [...this.chats, ...found] : found;
      this.more.hidden = found.length < PAGE;
      this.draw();
    } catch (error) {
      this.onProblem(error);
    }
  }

  select(id) {
    this.current = id;
    this.draw();
  }

  rename(id, title) {
    const chat = this.chats.find((each) => each.id === id);
    if (chat) chat.title = title;
    this.draw();
  }

  draw() {
    find("no-chats").hidden = this.chats.length > 0;
    find("no-chats").textContent = this.search.value ? "No chat has these words." : "Your chats will stand here.";
    const place = placeOf(document.activeElement, this.list);
    const opened = this.list.querySelector("details[open]")?.closest("li").dataset.chat;
    this.list.replaceChildren(...this.chats.map((chat) => this.row(chat)));
    const openedNow = opened && this.list.querySelector(`li[data-chat="${opened}"] details`);
    if (openedNow) openedNow.open = true;
    if (place) this.goTo(place);
  }

  // Somebody who was in the list by keyboard stays there: at the same control, or where its row was.
  goTo({ chat, row, control }) {
    const same = this.list.querySelector(`li[data-chat="${chat}"]`);
    const target = same ?? this.list.children[Math.min(row, this.list.children.length - 1)];
    const focusable = target?.querySelectorAll("a, summary, button")[same ? control : 0] ?? find("new");
    focusable.focus();
  }

  row(chat) {
    const item = element("li", "chat-row");
    item.dataset.chat = chat.id;
    const link = Object.assign(element("a", "", chat.title || "New chat"), { href: `/c/${chat.id}`, title: chat.title });
    if (chat.id === this.current) link.setAttribute("aria-current", "page");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab
      event.preventDefault();
      this.onOpen(chat.id);
    });
    const menu = element("details", "chat-menu");
    const opener = element("summary", "icon-more");
    opener.setAttribute("aria-label", `More about ${chat.title || "New chat"}`);
    const choices = element("div", "menu");
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      event.stopPropagation(); // it closes the menu, and not the sidebar of a phone, too
      menu.open = false;
      opener.focus();
    });
    const act = (label, change, className) => button(label, () => {
      menu.open = false;
      opener.focus();
      change();
    }, className);
    choices.append(
      act("Rename", () => this.ask(chat)),
      act(chat.is_pinned ? "Unpin" : "Pin", () => this.change(chat, { is_pinned: !chat.is_pinned })),
      act("Delete", () => this.remove(chat), "danger"),
    );
    menu.append(opener, choices);
    if (chat.is_pinned) item.append(element("span", "pin icon-pin"));
    item.append(link, menu);
    return item;
  }

  async ask(chat) {
    const title = prompt("Title of the chat", chat.title);
    if (title?.trim()) await this.change(chat, { title: title.trim() });
  }

  async change(chat, body) {
    try {
      await send("PATCH", `/api/chats/${chat.id}`, body);
      await this.load();
    } catch (error) {
      alert(describeError(error).message);
    }
  }

  async remove(chat) {
    if (!confirm(`Delete "${chat.title || "New chat"}" for good, with its files?`)) return;
    try {
      await send("DELETE", `/api/chats/${chat.id}`);
      this.onRemoved(chat.id);
      await this.load();
    } catch (error) {
      alert(describeError(error).message);
    }
  }
}

// Where in the list an element is: its chat, the row, and the how-manieth control of the row.
function placeOf(at, list) {
  const item = at?.closest("li");
  if (!item || !list.contains(item)) return null;
  const controls = [...item.querySelectorAll("a, summary, button")];
  return { chat: item.dataset.chat, row: [...list.children].indexOf(item), control: controls.indexOf(at) };
}

// Only one menu is open at a time, and a click elsewhere closes it.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.chat-menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
