// The talk beside the form of an agent: a session of its own for each load of the page, whose answers stream in.

import { describeError, newKey, send, streamTurn } from "./api.js";
import { TurnView, element, messageItem, problemBlock, textBody } from "./message_view.js";

const find = (id) => document.getElementById(id);
const [log, status, form, message, stop] = ["test-log", "test-status", "test-form", "test-message", "test-stop"].map(find);
const agent = find("test").dataset.agent;
const session = `test-${newKey()}`;
let turn = "";

function change(draw) {
  draw();
  log.scrollTop = log.scrollHeight;
}

async function ask(text) {
  const asked = messageItem("user", "You");
  const answer = messageItem("assistant", agent);
  asked.append(textBody(text));
  change(() => log.append(asked, answer));
  const view = new TurnView(answer, (told) => (status.textContent = told), change);
  const body = { message: text, agent, session };
  for await (const event of streamTurn("/api/chat", body, newKey(), (id) => (turn = id))) view.show(event);
  const why = Object.assign(element("a", "quiet", "What it sent, used and cost"), { href: `/admin/turns/${turn}` });
  change(() => answer.append(why));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = message.value.trim();
  if (!text || turn) return;
  turn = "waiting";
  message.value = "";
  status.textContent = "Thinking…";
  stop.hidden = false;
  try {
    await ask(text);
  } catch (error) {
    change(() => log.append(problemBlock(describeError(error))));
    message.value ||= text;
  }
  turn = "";
  status.textContent = "";
  stop.hidden = true;
  message.focus();
});

message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

stop.addEventListener("click", () => turn && send("POST", `/api/turns/${turn}/cancel`).catch(() => {}));
