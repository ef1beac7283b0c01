// The chat page: sends a message, shows what happens in its turn, and the history of the session.

import { ApiError, getJson, lastEvent, streamTurn, waitForTurn } from "./events.js";
import { renderMarkdown } from "./markdown.js";

const SESSION = "default";
const find = (id) => document.getElementById(id);
const [log, scroller, picker, box, status] = ["log", "scroll", "agent", "message", "status"].map(find);

let agents = [];
let running = null; // the id of the turn that runs, "" until it is known, null when none does
const fresh = new Set(); // agents whose next message starts a new session

// --- messages and cards ---------------------------------------------------------------------------------------------------

function element(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function addMessage(role, name) {
  const item = element("article", `message ${role}`);
  item.setAttribute("aria-label", name);
  item.append(element("p", "author quiet", name));
  log.append(item);
  find("empty").hidden = true;
  return item;
}

function addText(item, text) {
  const body = element("div", "text");
  body.append(renderMarkdown(text));
  item.append(body);
  return body;
}

// Pictures of other servers are links: loading them would tell those servers who reads.
function addPicture(item, url) {
  if (!url.startsWith("data:image/")) {
    addText(item, url);
    return;
  }
  item.append(Object.assign(element("img", "picture"), { src: url, alt: "Picture of the answer" }));
}

function addCall(item, tool, args) {
  const row = element("details", "call");
  const title = element("summary", "");
  const state = element("span", "state quiet", "running…");
  title.append(tool, element("span", "brief quiet", Object.values(args).map(brief).join(", ")), state);
  row.append(title, element("pre", "args", JSON.stringify(args, null, 2)));
  item.append(row);
  return (result) => {
    row.classList.toggle("failed", result.is_error);
    state.textContent = result.is_error ? "failed" : result.duration_ms == null ? "" : seconds(result.duration_ms);
    row.append(element("pre", "result", result.text + (result.truncated ? " …" : "")));
  };
}

// Shows a call that waits for people: its preview, and buttons for those who may decide. Returns a function that closes it.
function addApproval(item, approval) {
  const card = element("section", "approval");
  card.setAttribute("role", "group");
  card.setAttribute("aria-label", `Approval of ${approval.call.tool}`);
  card.append(element("p", "head", `Approval needed: ${approval.call.tool}`), element("pre", "", approval.call.preview));
  const end = element("p", "quiet");
  end.setAttribute("role", "status");
  const reason = Object.assign(element("input", "reason"), { placeholder: "Reason for denying", maxLength: 500 });
  reason.setAttribute("aria-label", "Reason for denying");
  const row = element("div", "choices");
  const close = (now) => {
    row.remove();
    const ends = { approved: "Approved", denied: "Denied", expired: "Not approved in time" };
    end.textContent = ends[now.status] ?? now.status;
    const decision = now.decision ?? {};
    if (decision.by && now.status !== "expired") end.textContent += ` by ${decision.by}`;
    if (decision.note) end.textContent += `: ${decision.note}`;
  };
  const decide = async (body) => {
    for (const each of row.children) each.disabled = true;
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    try {
      const now = await getJson(`/api/approvals/${approval.id}`, options);
      if (now.status === "pending") end.textContent = "Your approval is counted; others have to approve too.";
      else close(now);
    } catch (error) {
      end.textContent = describeError(error).message;
      for (const each of row.children) each.disabled = false;
    }
  };
  const button = (label, body) => {
    const made = Object.assign(element("button", "", label), { type: "button" });
    made.addEventListener("click", () => decide(body()));
    return made;
  };
  if (approval.may_decide) {
    row.append(
      button("Approve", () => ({ decision: "approve" })),
      button("For an hour here", () => ({ decision: "approve", scope: "hour" })),
      button("Deny", () => ({ decision: "deny", reason: reason.value })),
      reason,
    );
  } else {
    end.textContent = "Somebody else has to decide this.";
  }
  card.append(row, end);
  item.append(card);
  card.tabIndex = -1;
  if (approval.may_decide) card.focus(); // not a button: a key that was meant for the message must not decide
  return close;
}

function addProblem(item, problem) {
  const block = element("div", "problem");
  block.setAttribute("role", "alert");
  for (const line of [problem.message, problem.why && `Why: ${problem.why.replace(/\.$/, "")}.`, problem.fix]) {
    if (line) block.append(renderMarkdown(line));
  }
  item.append(block);
}

const brief = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const seconds = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

// Keeps the end in view unless the reader has scrolled up.
function following(change) {
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
  change();
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

// --- one turn --------------------------------------------------------------------------------------------------------

// Shows the events of a turn in one message.
class TurnView {
  constructor(agent) {
    this.item = addMessage("assistant", agent);
    this.calls = new Map();
    this.approvals = new Map();
    this.text = "";
    this.body = null;
    this.frame = 0;
  }

  show(event) {
    switch (event.type) {
      case "text":
        this.text += event.text;
        this.frame ||= requestAnimationFrame(() => following(() => this.draw()));
        break;
      case "retract":
        this.text = "";
        this.draw();
        this.body = null;
        break;
      case "tool_started":
        following(() => this.calls.set(event.call_id, addCall(this.item, event.tool, event.args)));
        setStatus(`Using ${event.tool}…`);
        break;
      case "tool_finished":
        this.calls.get(event.call_id)?.(event);
        setStatus("Thinking…");
        break;
      case "approval_request":
        if (!this.approvals.has(event.approval.id)) {
          following(() => this.approvals.set(event.approval.id, addApproval(this.item, event.approval)));
        }
        setStatus(`Waiting for approval of ${event.approval.call.tool}…`);
        break;
      case "approval_decided":
        this.approvals.get(event.approval.id)?.(event.approval);
        setStatus("Thinking…");
        break;
      case "notice":
        setStatus(event.text);
        break;
      case "finished":
        this.text = event.reply || this.text;
        following(() => {
          this.draw();
          for (const url of event.images ?? []) addPicture(this.item, url);
          if (event.cards) addText(this.item, event.cards).classList.add("cards");
        });
        if (event.status === "cancelled") this.item.append(element("p", "quiet", "Stopped."));
        break;
      case "error":
        following(() => addProblem(this.item, event.error));
        break;
    }
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.text.trim()) {
      this.body?.remove();
      this.body = null;
      return;
    }
    this.body ??= addText(this.item, "");
    this.body.replaceChildren(renderMarkdown(this.text));
  }
}

async function send(text) {
  const agent = picker.value;
  addText(addMessage("user", "You"), text);
  const view = new TurnView(agent);
  scroller.scrollTop = scroller.scrollHeight;
  setRunning("");
  setStatus("Thinking…");
  try {
    const body = { message: text, agent, session: SESSION, new: fresh.has(agent) };
    for await (const event of streamTurn(body, newKey(), setRunning)) {
      fresh.delete(agent);
      view.show(event);
    }
  } catch (error) {
    following(() => addProblem(view.item, describeError(error)));
  }
  setStatus("");
  setRunning(null);
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function setStatus(text) {
  status.textContent = text;
}

function setRunning(turn) {
  running = turn;
  const busy = turn !== null;
  log.setAttribute("aria-busy", String(busy)); // screen readers wait for the whole answer
  find("send").hidden = busy;
  find("stop").hidden = !busy;
  find("stop").disabled = !turn;
  picker.disabled = find("new").disabled = busy;
  if (!busy) box.focus();
}

async function stop() {
  if (!running) return;
  setStatus("Stopping…");
  await getJson(`/api/turns/${running}/cancel`, { method: "POST" }).catch(() => setStatus("The turn could not be stopped."));
}

// --- sessions and agents ---------------------------------------------------------------------------------------------

async function showHistory() {
  log.replaceChildren();
  const agent = agents.find((each) => each.name === picker.value);
  find("hint").hidden = !agent?.is_embedded;
  const query = new URLSearchParams({ agent: picker.value });
  const messages = fresh.has(picker.value) ? [] : await getJson(`/api/sessions/${SESSION}/messages?${query}`);
  find("empty").hidden = messages.length > 0;
  let last = null; // the messages of one turn by the agent are shown as one
  for (const message of messages) {
    const joined = last?.role === message.role && last.turn_id === message.turn_id && message.role === "assistant";
    const item = joined ? last.item : addMessage(message.role, message.role === "user" ? "You" : picker.value);
    if (message.text && !message.calls.length) addText(item, message.text);
    for (const call of message.calls) {
      addCall(item, call.tool, call.args)(call);
      if (call.approval) addApproval(item, call.approval)(call.approval);
    }
    last = { ...message, item };
  }
  scroller.scrollTop = scroller.scrollHeight;
  if (last?.turn_id) await showEnd(last.turn_id);
}

// Shows the state of the last turn that its messages do not show: it failed, was stopped, or still runs.
async function showEnd(id) {
  const turn = await getJson(`/api/turns/${id}`);
  if (turn.status === "done") return;
  if (turn.status !== "open") {
    following(() => new TurnView(turn.agent).show(lastEvent(turn)));
    return;
  }
  setRunning(id);
  setStatus("Thinking…");
  const view = new TurnView(turn.agent);
  const pending = await getJson("/api/approvals?status=pending");
  for (const approval of pending.filter((each) => each.turn_id === id)) view.show({ type: "approval_request", approval });
  await waitForTurn(id);
  setStatus("");
  setRunning(null);
  await showHistory();
}

function startSession() {
  fresh.add(picker.value);
  showHistory().catch(complain);
  setStatus("A new session begins with your next message.");
  box.focus();
}

async function start() {
  agents = await getJson("/api/agents");
  picker.replaceChildren(...agents.map((agent) => new Option(agent.name, agent.name)));
  const wanted = localStorage.getItem("denizen.agent");
  if (agents.some((agent) => agent.name === wanted)) picker.value = wanted;
  await showHistory();
}

function describeError(error) {
  return error instanceof ApiError ? error.problem : { message: "The server cannot be reached.", fix: "Is it running?" };
}

function complain(error) {
  addProblem(addMessage("assistant", "Denizen"), describeError(error));
}

function submit() {
  const text = box.value.trim();
  if (!text || running !== null) return;
  box.value = "";
  fit();
  send(text);
}

// The box grows with its text; the style sheet limits it.
function fit() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

find("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
box.addEventListener("input", fit);
document.addEventListener("keydown", (event) => event.key === "Escape" && stop());
find("stop").addEventListener("click", stop);
find("new").addEventListener("click", startSession);
picker.addEventListener("change", () => {
  localStorage.setItem("denizen.agent", picker.value);
  showHistory().catch(complain);
});
start().catch(complain);
