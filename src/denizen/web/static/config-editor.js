// The editor of the configuration: leads to a line, tells the line of the cursor, and warns before a change is lost.

import { KeyMenu } from "./config-keys.js";

const editor = document.getElementById("text");
const place = document.getElementById("place");
const before = editor.value;
let isSaving = false;

function show() {
  const upto = editor.value.slice(0, editor.selectionStart).split("\n");
  place.textContent = `Line ${upto.length}, column ${upto.at(-1).length + 1}`;
}

function goTo(line) {
  const lines = editor.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  editor.focus();
  editor.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  const height = parseFloat(getComputedStyle(editor).lineHeight);
  editor.scrollTop = Math.max(0, (line - 5) * height);
  show();
}

for (const link of document.querySelectorAll("a[data-line]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    goTo(Number(link.dataset.line));
  });
}
if (!editor.readOnly) new KeyMenu(editor, document.getElementById("keys"));
if (editor.dataset.line) goTo(Number(editor.dataset.line));
for (const each of ["keyup", "click", "select"]) editor.addEventListener(each, show);
editor.form.addEventListener("submit", () => { isSaving = true; });
window.addEventListener("beforeunload", (event) => {
  if (!isSaving && editor.value !== before) event.preventDefault();
});
