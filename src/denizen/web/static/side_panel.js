// The panel beside the chat: the lines that an answer cites, and why an answer is as it is.

import { describeError, getJson } from "./api.js";
import { element, problemBlock, seconds } from "./message_view.js";

const find = (id) => document.getElementById(id);
let opener = null;

function openPanel(title) {
  opener = document.activeElement;
  find("panel-title").textContent = title;
  find("panel-body").replaceChildren(element("p", "quiet", "Loading…"));
  find("panel").hidden = false;
  find("panel").focus();
}

function closePanel() {
  find("panel").hidden = true;
  opener?.focus();
}

async function fill(title, read) {
  openPanel(title);
  try {
    find("panel-body").replaceChildren(...(await read()));
  } catch (error) {
    find("panel-body").replaceChildren(problemBlock(describeError(error)));
  }
}

// Opens the lines of a citation when its button is pressed. `details` returns the chat.
export function watchPanel(log, details) {
  find("panel-close").addEventListener("click", closePanel);
  document.addEventListener("keydown", (event) => event.key === "Escape" && !find("panel").hidden && closePanel());
  log.addEventListener("click", (event) => {
    const cite = event.target.closest("[data-citation]");
    if (!cite) return;
    const message = cite.closest(".message");
    const turn = message.dataset.turn ?? details()?.messages.findLast((each) => each.role === "assistant")?.turn_id;
    showCitation(turn, cite.dataset.citation);
  });
}

export function showCitation(turn, place) {
  return fill(place, async () => {
    const query = new URLSearchParams({ place });
    const found = await getJson(`/api/turns/${turn}/citation?${query}`);
    const lines = element("pre", "lines");
    found.lines.forEach((line, at) => {
      const number = found.from_line + at;
      const isCited = number >= found.first_line && number <= found.last_line;
      const row = element("span", isCited ? "line cited" : "line");
      row.append(element("span", "line-number", String(number)), line || " ", "\n");
      lines.append(row);
    });
    const about = element("p", "quiet", found.source ? `From the source ${found.source}.` : "");
    const parts = [about, lines];
    if (found.link) {
      parts.push(Object.assign(element("a", "", "Open the original"), { href: found.link, target: "_blank", rel: "noopener noreferrer" }));
    }
    return parts;
  });
}

export function showWhy(turnId) {
  return fill("Why this answer", async () => {
    const turn = await getJson(`/api/turns/${turnId}`);
    const cost = turn.usage.cost_usd ? `, $${turn.usage.cost_usd}` : "";
    const facts = facts_([
      ["Model", turn.model],
      ["Tokens", `${turn.usage.input_tokens} in (${turn.usage.cached_tokens} cached), ${turn.usage.output_tokens} out${cost}`],
      ["Route", turn.trace.route ? `${turn.trace.route.complexity}: ${turn.trace.route.reason}` : ""],
    ]);
    const parts = [facts];
    for (const prompt of turn.trace.prompts) {
      parts.push(element("h3", "", `Prompt of step ${prompt.step}`));
      const rows = prompt.segments.map((each) => [each.name, each.stability, each.tokens, each.text]);
      for (const share of prompt.messages) rows.push([share.kind, `${share.count} messages`, share.tokens, null]);
      if (prompt.tools.length) rows.push(["tools", prompt.tools.join(", "), prompt.tool_tokens, null]);
      parts.push(table(["Part", "Kind", "Tokens"], rows));
    }
    if (turn.trace.steps.length) {
      parts.push(element("h3", "", "Requests"));
      parts.push(table(["Model", "Time", "In", "Cached", "Out", "Cost"], turn.trace.steps.map((step) => [
        step.model, seconds(step.duration_ms), step.usage.input_tokens, step.usage.cached_tokens, step.usage.output_tokens,
        step.usage.cost_usd ? `$${step.usage.cost_usd}` : "",
      ])));
    }
    if (turn.trace.calls.length) {
      parts.push(element("h3", "", "Tool calls"));
      parts.push(table(["Tool", "Decision", "Time"], turn.trace.calls.map((call) => [
        call.tool, `${call.decision}: ${call.reason}`, seconds(call.duration_ms),
      ])));
    }
    if (turn.citations.length) {
      parts.push(element("h3", "", "Citations"));
      parts.push(table(["Place", "Proof"], turn.citations.map((each) => [
        each.first_line ? `${each.path}:${each.first_line}-${each.last_line}` : each.path, each.doubt ? `taken out: ${each.doubt}` : "proved",
      ])));
    }
    return parts;
  });
}

function facts_(pairs) {
  const made = element("dl", "facts");
  for (const [name, value] of pairs) if (value) made.append(element("dt", "", name), element("dd", "", value));
  return made;
}

function table(heads, rows) {
  const made = element("table", "list");
  const head = element("tr");
  head.append(...heads.map((each) => element("th", "", each)));
  const body = rows.map((row) => {
    const line = element("tr");
    line.append(...row.slice(0, heads.length).map((each) => element("td", typeof each === "number" ? "number" : "", String(each ?? ""))));
    if (typeof row[heads.length] === "string") line.title = row[heads.length];
    return line;
  });
  made.append(head, ...body);
  const frame = element("div", "table-scroll");
  frame.tabIndex = 0;
  frame.append(made);
  return frame;
}
