// The board of projects: moving tasks by dragging, by keys and by their selects, and loading the board again whenever
// something has changed anywhere.

import { describeError, send } from "./api.js";

const state = document.getElementById("board-state");
const board = () => document.getElementById("board");

document.documentElement.classList.add("scripted");

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

// Loads the page again and takes its board. The task that has the focus keeps it.
async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (answer.redirected) return location.reload();
  if (!answer.ok) throw new Error("The server refused to show the board.");
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("board");
  const focused = document.activeElement?.closest(".task")?.id;
  const part = document.activeElement?.tagName.toLowerCase();
  board().replaceWith(document.adoptNode(fresh));
  if (focused) document.getElementById(focused)?.querySelector(part === "select" ? "select" : "a")?.focus();
}

let running = null;
let again = false;

// One load at a time; what changes meanwhile is loaded behind it.
async function refreshSoon() {
  if (running) {
    again = true;
    return running;
  }
  running = refresh().catch((error) => say(`Not up to date: ${error.message}`));
  await running;
  running = null;
  if (again) {
    again = false;
    await refreshSoon();
  }
}

async function move(id, status) {
  const column = board().querySelector(`.column[data-status="${status}"]`);
  const label = column?.querySelector("h2").firstChild.textContent.trim() ?? status;
  try {
    await send("PATCH", `/api/tasks/${encodeURIComponent(id)}`, { status });
    await refreshSoon();
    say(`Moved to ${label}.`);
  } catch (error) {
    const problem = describeError(error);
    say([problem.message, problem.fix].filter(Boolean).join(" "));
    await refreshSoon();
  }
}

const taskOf = (event) => event.target.closest?.(".task");
const columnOf = (element) => element.closest?.(".column");

document.addEventListener("dragstart", (event) => {
  const task = taskOf(event);
  if (!task) return;
  event.dataTransfer.setData("text/plain", task.dataset.task);
  event.dataTransfer.effectAllowed = "move";
  task.classList.add("moving");
});

document.addEventListener("dragend", () => {
  for (const each of document.querySelectorAll(".moving, .target")) each.classList.remove("moving", "target");
});

document.addEventListener("dragover", (event) => {
  const column = columnOf(event.target);
  if (!column || !document.querySelector(".moving")) return;
  event.preventDefault();
  for (const each of document.querySelectorAll(".target")) if (each !== column) each.classList.remove("target");
  column.classList.add("target");
});

document.addEventListener("drop", (event) => {
  const column = columnOf(event.target);
  const task = document.querySelector(".moving");
  if (!column || !task) return;
  event.preventDefault();
  if (columnOf(task) !== column) move(task.dataset.task, column.dataset.status);
});

document.addEventListener("keydown", (event) => {
  const task = taskOf(event);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!task || !step || !event.shiftKey || event.target.tagName === "SELECT") return;
  const columns = [...board().querySelectorAll(".column")];
  const next = columns[columns.indexOf(columnOf(task)) + step];
  event.preventDefault();
  if (next) move(task.dataset.task, next.dataset.status);
});

document.addEventListener("change", (event) => {
  const task = taskOf(event);
  if (task && event.target.name === "status") move(task.dataset.task, event.target.value);
});

const events = new EventSource("/api/projects/events");
let known = null;
events.addEventListener("changed", (event) => {
  const { version } = JSON.parse(event.data);
  if (known !== null && version !== known) refreshSoon();
  known = version;
});
events.addEventListener("open", () => {
  if (state.textContent.startsWith("Not up to date")) say("");
});
events.addEventListener("error", () => say("Not up to date: the server does not answer."));
