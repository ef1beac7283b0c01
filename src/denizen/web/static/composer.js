// The box for messages: drafts that survive a reload, files by drop, paste or choice, and messages that wait their turn.

import { describeError, request, send } from "./api.js";
import { button, element } from "./message_view.js";

const find = (id) => document.getElementById(id);
const MAX_UPLOAD_BYTES = 8_000_000;
// On a touch screen Enter makes a new line, as people know it from there: the button sends.
export const hasKeyboard = matchMedia("(hover: hover) and (pointer: fine)").matches;

export class Composer {
  // `onSend` gets {text, uploads}; `chatId` returns the id of the chat, `makeChat` one that files can go to.
  constructor({ onSend, chatId, makeChat }) {
    this.box = find("message");
    this.files = find("files");
    this.queue = find("queue");
    Object.assign(this, { onSend, chatId, makeChat, isBusy: false, waiting: [], uploads: [] });
    find("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      if (!hasKeyboard && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.submit();
    });
    if (!hasKeyboard) {
      this.box.enterKeyHint = "enter";
      this.box.placeholder = "Write, then tap Send";
      find("keys").textContent = "Enter makes a new line, the button sends, / shows the commands.";
    }
    this.box.addEventListener("input", () => this.keepDraft());
    this.box.addEventListener("paste", (event) => {
      if (!event.clipboardData.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
    find("attach").addEventListener("click", () => find("file").click());
    find("file").addEventListener("change", () => {
      this.add(find("file").files);
      find("file").value = "";
    });
    const target = document.querySelector("main");
    target.addEventListener("dragover", (event) => {
      event.preventDefault();
      target.classList.add("dropping");
    });
    target.addEventListener("dragleave", () => target.classList.remove("dropping"));
    target.addEventListener("drop", (event) => {
      event.preventDefault();
      target.classList.remove("dropping");
      this.add(event.dataTransfer.files);
    });
  }

  // Shows the draft of the chat that is shown now.
  show() {
    const typed = this.isShown ? "" : this.box.value; // before this script was there
    this.isShown = true;
    this.box.value = typed || (localStorage.getItem(this.draftKey()) ?? "");
    this.uploads = [];
    this.waiting = [];
    this.drawFiles();
    this.drawQueue();
    this.fit();
  }

  // What waits goes back into the draft of the chat that is left.
  leave() {
    if (!this.isShown) return;
    this.box.value = [...this.waiting.map((each) => each.text), this.box.value].filter(Boolean).join("\n\n");
    this.waiting = [];
    this.keepDraft();
  }

  // Takes back a message that was not sent, and those that waited behind it.
  giveBack({ text, uploads }) {
    const back = [{ text, uploads }, ...this.waiting];
    this.waiting = [];
    this.uploads = [...back.flatMap((each) => each.uploads), ...this.uploads];
    this.drawFiles();
    this.drawQueue();
    this.fill([...back.map((each) => each.text), this.box.value].filter(Boolean).join("\n\n"));
  }

  // Keeps a message that was not sent for when its chat is shown again.
  keepFor(chat, text) {
    const key = `denizen.draft.${chat}`;
    localStorage.setItem(key, [text, localStorage.getItem(key)].filter(Boolean).join("\n\n"));
  }

  draftKey() {
    return `denizen.draft.${this.chatId() ?? "new"}`;
  }

  keepDraft() {
    this.fit();
    if (this.box.value) localStorage.setItem(this.draftKey(), this.box.value);
    else localStorage.removeItem(this.draftKey());
  }

  fill(text) {
    this.box.value = text;
    this.keepDraft();
    this.box.focus();
  }

  submit() {
    const text = this.box.value.trim();
    const ready = this.uploads.filter((each) => each.path);
    if (!text && !ready.length) return;
    if (this.uploads.some((each) => each.isLoading || each.problem)) {
      find("status").textContent = "Wait for the files, or remove those that failed.";
      return;
    }
    this.box.value = "";
    this.keepDraft();
    this.uploads = [];
    this.drawFiles();
    const message = { text: text || "See the file.", uploads: ready };
    if (this.isBusy) {
      this.waiting.push(message);
      this.drawQueue();
    } else {
      this.onSend(message);
    }
  }

  // To be called when a turn begins or ends: the next waiting message goes out when none runs.
  setBusy(isBusy) {
    this.isBusy = isBusy;
    const next = isBusy ? undefined : this.waiting.shift();
    this.drawQueue();
    if (next) this.onSend(next);
  }

  drawQueue() {
    this.queue.hidden = !this.waiting.length;
    this.queue.replaceChildren(...this.waiting.map((message, at) => {
      const row = element("li", "", message.text);
      const drop = button("Remove", () => {
        this.waiting.splice(at, 1);
        this.drawQueue();
      }, "tiny");
      drop.setAttribute("aria-label", `Do not send: ${message.text}`);
      row.append(drop);
      return row;
    }));
  }

  // --- files ---

  add(files) {
    for (const file of files) this.upload(file);
  }

  async upload(file) {
    const entry = { name: file.name || "picture.png", path: "", isLoading: true, problem: "" };
    this.uploads.push(entry);
    this.drawFiles();
    const before = this.draftKey();
    try {
      if (file.size > MAX_UPLOAD_BYTES) throw new Error("It is larger than 8 MB.");
      const query = new URLSearchParams({ name: entry.name });
      const options = { method: "PUT", body: file, headers: { "Content-Type": file.type || "application/octet-stream" } };
      Object.assign(entry, await (await request(`/api/upload/${await this.makeChat()}?${query}`, options)).json());
    } catch (error) {
      entry.problem = describeError(error).message;
    }
    if (this.uploads.includes(entry) && this.draftKey() !== before) {
      localStorage.removeItem(before); // the chat has an id now
      this.keepDraft();
    }
    entry.isLoading = false;
    this.drawFiles();
  }

  drawFiles() {
    this.files.hidden = !this.uploads.length;
    this.files.replaceChildren(...this.uploads.map((entry) => {
      const row = element("li", entry.problem ? "bad" : "");
      if (entry.media_type?.startsWith("image/")) row.append(Object.assign(element("img"), { src: entry.url, alt: "" }));
      row.append(element("span", "", entry.problem ? `${entry.name}: ${entry.problem}` : entry.name));
      if (entry.isLoading) row.append(element("span", "quiet", "uploading…"));
      const drop = button("Remove", () => this.drop(entry), "tiny");
      drop.setAttribute("aria-label", `Remove ${entry.name}`);
      row.append(drop);
      return row;
    }));
  }

  async drop(entry) {
    this.uploads = this.uploads.filter((each) => each !== entry);
    this.drawFiles();
    if (entry.path) await send("DELETE", entry.url).catch(() => {});
  }

  // The box grows with its text; the style sheet limits it.
  fit() {
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight + 2}px`;
  }
}
