// A chat that somebody shares, for reading.

import { ApiError, describeError, getJson } from "./api.js";
import { messageItem, pictureOf, problemBlock, textBody } from "./message_view.js";

const find = (id) => document.getElementById(id);

async function start() {
  const chat = await getJson(`/api/shared/${location.pathname.split("/").pop()}`);
  find("title").textContent = chat.title || "Shared chat";
  document.title = `${chat.title || "Shared chat"} · Denizen`;
  find("about").textContent = `With ${chat.agent}, last message on ${new Date(chat.updated_at).toLocaleString()}.`;
  find("log").replaceChildren(...chat.messages.map((message) => {
    const item = messageItem(message.role, message.author || (message.role === "user" ? "Somebody" : chat.agent));
    if (message.text) item.append(textBody(message.text));
    for (const url of message.images) item.append(pictureOf(url));
    return item;
  }));
}

start().catch((error) => {
  const isGone = error instanceof ApiError && error.status === 404;
  const problem = isGone
    ? { message: "There is no shared chat here.", fix: "Its owner may have ended the sharing." }
    : describeError(error);
  find("log").append(problemBlock(problem));
});
