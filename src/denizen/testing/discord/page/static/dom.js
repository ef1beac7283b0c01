// Elements, and dialogs that ask for something. Text always goes in as text.

export const find = (id) => document.getElementById(id);

// `make("button", { class: "quiet", type: "button", onclick }, "Text", node)`; props that are null are left out.
export function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (name === "class") node.className = value;
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// A modal dialog with one control for each field: {name, label, long?, value?, required?, options?, multiple?, max?}.
// Resolves to the values by name, or to null when it is left.
export function ask(title, fields, action, { text = "", dangerous = false } = {}) {
  const controls = fields.map((field) => [field, control(field)]);
  const cancel = make("button", { type: "button", onclick: () => dialog.close("") }, "Cancel");
  const go = make("button", { type: "submit", class: dangerous ? "danger" : null }, action);
  const form = make(
    "form", { method: "dialog" },
    make("h2", {}, title),
    text ? make("p", {}, text) : null,
    ...controls.map(([field, input]) => make("label", {}, make("span", {}, field.label + optional(field)), input)),
    make("p", { class: "actions" }, cancel, go),
  );
  const dialog = make("dialog", { "aria-label": title }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault(); // closing by method=dialog is a form's navigation, which the page's policy forbids
    dialog.close("done");
  });
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      const values = controls.map(([field, input]) => [field.name, valueOf(input)]);
      resolve(dialog.returnValue === "done" ? Object.fromEntries(values) : null);
    });
  });
}

const optional = (field) => (field.required === false ? " (optional)" : "");

function control(field) {
  const required = field.required !== false;
  if (field.options) {
    const select = make("select", { required, multiple: Boolean(field.multiple) });
    for (const each of field.options) select.append(new Option(each.label, each.value, Boolean(each.default), Boolean(each.default)));
    return select;
  }
  const input = make(field.long ? "textarea" : "input", {
    required, value: field.value ?? "", placeholder: field.placeholder ?? "", maxLength: field.max ?? 4000,
  });
  if (field.long) {
    input.rows = 4;
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) input.form.requestSubmit();
    });
  }
  return input;
}

const valueOf = (input) => (input.multiple ? [...input.selectedOptions].map((each) => each.value) : input.value);
