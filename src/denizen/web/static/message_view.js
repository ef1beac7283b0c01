// One message of a chat as DOM: its text, pictures, tool calls, approvals and problems. `TurnView` shows a turn live.

import { describeError, send } from "./api.js";
import { renderMarkdown } from "./markdown.js";

const PLACE = /^[^\]\s:]+\/[^\]\s:]+\.[A-Za-z0-9]+(?::\d+(?:-\d+)?)?$/;
const CITATION = /\[([^\]\s:]+\/[^\]\s:]+\.[A-Za-z0-9]+(?::\d+(?:-\d+)?)?)\]/g;

export function element(tag, className = "", text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

export function button(label, act, className = "") {
  const made = Object.assign(element("button", className, label), { type: "button" });
  made.addEventListener("click", act);
  return made;
}

// An article for a message of `user` or `assistant`, with the name of its author.
export function messageItem(role, name) {
  const item = element("article", `message ${role}`);
  item.setAttribute("aria-label", name);
  item.append(element("p", "author quiet", name));
  return item;
}

// Text of a message; in answers, citations lead to what they cite.
export function textBody(text, isAnswer = false) {
  const body = element("div", "text");
  body.append(renderMarkdown(text));
  if (isAnswer) markCitations(body);
  return body;
}

// Citations such as `[guide.md:3-5]` become buttons; the chat opens their lines beside it.
function markCitations(body) {
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest("pre, code, a")) texts.push(walker.currentNode);
  for (const node of texts) {
    const parts = node.data.split(CITATION);
    if (parts.length === 1) continue;
    node.replaceWith(...parts.map((part, at) => (at % 2 === 0 ? part : citation(part))));
  }
  for (const link of body.querySelectorAll("a")) {
    if (PLACE.test(link.textContent) && !PLACE.test(link.getAttribute("href"))) link.replaceWith(citation(link.textContent));
  }
}

function citation(place) {
  const cite = Object.assign(element("button", "citation", place.split("/").pop()), { type: "button", title: place });
  cite.dataset.citation = place;
  return cite;
}

// Pictures of other servers are links: loading them would tell those servers who reads.
export function pictureOf(url) {
  const isOwn = url.startsWith("data:image/") || url.startsWith("/api/");
  if (!isOwn) return textBody(url);
  return Object.assign(element("img", "picture"), { src: url, alt: "Picture of the answer", loading: "lazy" });
}

export function cardsBody(cards) {
  const body = textBody(cards);
  body.classList.add("cards");
  return body;
}

export function reasoningBlock(text) {
  const block = element("details", "reasoning");
  block.append(element("summary", "", "Reasoning"), textBody(text));
  return block;
}

// A tool call. Returns the row, and a function that shows the result.
export function callRow(tool, args) {
  const row = element("details", "call");
  const title = element("summary");
  const state = element("span", "state quiet", "running…");
  title.append(tool, element("span", "brief quiet", Object.values(args).map(brief).join(", ")), state);
  row.append(title, element("pre", "args", JSON.stringify(args, null, 2)));
  const finish = (result) => {
    row.classList.toggle("failed", result.is_error);
    state.textContent = result.is_error ? "failed" : result.duration_ms == null ? "" : seconds(result.duration_ms);
    row.append(element("pre", "result", result.text + (result.truncated ? " …" : "")));
  };
  return [row, finish];
}

const brief = (value) => (typeof value === "string" ? value : JSON.stringify(value));
export const seconds = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

// A call that waits for people: its preview, and buttons for those who may decide. Returns the card, and a function that
// closes it.
export function approvalCard(approval) {
  const card = element("section", "approval");
  card.setAttribute("role", "group");
  card.setAttribute("aria-label", `Approval of ${approval.call.tool}`);
  card.tabIndex = -1;
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
    card.focus(); // the buttons go, or cannot be pressed for a while
    for (const each of row.children) each.disabled = true;
    try {
      const now = await send("POST", `/api/approvals/${approval.id}`, body);
      if (now.status === "pending") end.textContent = "Your approval is counted; others have to approve too.";
      else close(now);
    } catch (error) {
      end.textContent = describeError(error).message;
      for (const each of row.children) each.disabled = false;
    }
  };
  if (approval.may_decide) {
    row.append(
      button("Approve", () => decide({ decision: "approve" }), "primary"),
      button("For an hour here", () => decide({ decision: "approve", scope: "hour" })),
      button("Deny", () => decide({ decision: "deny", reason: reason.value }), "danger"),
      reason,
    );
  } else if (approval.status === "pending") {
    end.textContent = "Somebody else has to decide this.";
  }
  card.append(row, end);
  if (approval.status !== "pending") close(approval);
  return [card, close];
}

export function problemBlock(problem) {
  const block = element("div", "problem");
  block.setAttribute("role", "alert");
  for (const line of [problem.message, problem.why && `Why: ${problem.why.replace(/\.$/, "")}.`, problem.fix]) {
    if (line) block.append(renderMarkdown(line));
  }
  return block;
}

// Shows the events of a turn in one message. `onStatus` gets what is going on, `onChange` wraps each change of the page.
export class TurnView {
  constructor(item, onStatus, onChange) {
    this.item = item;
    this.onStatus = onStatus;
    this.onChange = onChange;
    this.calls = new Map();
    this.approvals = new Map();
    this.text = "";
    this.reasoning = "";
    this.body = null;
    this.timer = 0;
    this.pause_ms = 50;
  }

  show(event) {
    switch (event.type) {
      case "text":
        this.text += event.text;
        this.timer ||= setTimeout(() => this.onChange(() => this.draw()), this.pause_ms);
        break;
      case "retract":
        this.text = "";
        this.draw();
        break;
      case "reasoning":
        this.reasoning += event.text;
        this.onStatus("Reasoning…");
        break;
      case "tool_started":
        this.onChange(() => this.startCall(event));
        this.onStatus(`Using ${event.tool}…`);
        break;
      case "tool_finished":
        this.calls.get(event.call_id)?.(event);
        this.onStatus("Thinking…");
        break;
      case "approval_request":
        this.onChange(() => this.ask(event.approval));
        this.onStatus(`Waiting for approval of ${event.approval.call.tool}…`);
        break;
      case "approval_decided":
        this.approvals.get(event.approval.id)?.(event.approval);
        this.onStatus("Thinking…");
        break;
      case "notice":
        this.onStatus(event.text);
        break;
      case "finished":
        this.text = event.reply || this.text;
        this.onChange(() => this.finish(event));
        break;
      case "error":
        this.onChange(() => {
          this.draw();
          this.item.append(problemBlock(event.error));
        });
        break;
    }
  }

  startCall(event) {
    const [row, finish] = callRow(event.tool, event.args);
    this.calls.set(event.call_id, finish);
    this.item.append(row);
  }

  ask(approval) {
    if (this.approvals.has(approval.id)) return;
    const [card, close] = approvalCard(approval);
    this.approvals.set(approval.id, close);
    this.item.append(card);
    if (approval.may_decide && !document.activeElement?.value) card.focus(); // not a button: a key that was meant for the message must not decide
  }

  finish(event) {
    this.draw();
    const reasoning = event.reasoning || this.reasoning;
    if (reasoning) this.item.insertBefore(reasoningBlock(reasoning), this.item.children[1] ?? null);
    for (const url of event.images ?? []) this.item.append(pictureOf(url));
    if (event.cards) this.item.append(cardsBody(event.cards));
    if (event.status === "cancelled") this.item.append(element("p", "quiet", "Stopped."));
    if (event.status === "skipped") this.item.append(element("p", "quiet", "Skipped by a hook."));
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = 0;
    const began = performance.now();
    if (!this.text.trim()) {
      this.body?.remove();
      this.body = null;
      return;
    }
    const now = textBody(this.text, true);
    if (this.body) this.body.replaceWith(now);
    else this.item.append(now);
    this.body = now;
    this.pause_ms = Math.max(50, 4 * (performance.now() - began)); // at most a fifth of the time goes into drawing
  }
}
