// The form of a slash command that was chosen: a control for each of its options, those that must be given first.

import { Refused, call, toFile } from "./api.js";
import { find, make } from "./dom.js";
import { company, room, roomName, state } from "./state.js";

const WHOLE = 4, SWITCH = 5, PERSON = 6, ROOM = 7, ROLE = 8, ANYBODY = 9, NUMBER = 10, FILE = 11;
const PAUSE_MS = 200;

const form = find("command");
let close = () => {};

// `run(body)` sends it; `done()` is called when the form is gone, sent or not.
export function fillCommand(branch, run, done) {
  const where = state.room;
  const controls = branch.options.map((option) => [option, control(option, () => read(), branch, where)]);
  const read = () => Object.fromEntries(controls.filter(([, input]) => valueOf(input) !== null).map(([option, input]) => [option.name, typed(option, valueOf(input))]));
  const send = make("button", { type: "submit" }, "Run");
  form.replaceChildren(
    make("p", {}, make("b", {}, `/${branch.path}`), " ", make("span", { class: "quiet" }, `${branch.description} · ${branch.command.application}`)),
    ...controls.map(([option, input]) => make("label", {}, make("span", {}, option.name, option.required ? "" : " (optional)"), input,
      make("span", { class: "quiet" }, option.description === "…" ? "" : option.description ?? ""))),
    make("p", { class: "actions" }, make("button", { type: "button", onclick: () => close() }, "Cancel"), send),
  );
  close = () => {
    form.hidden = true;
    find("composer").hidden = false;
    form.replaceChildren();
    done();
  };
  form.onkeydown = (event) => {
    if (event.key === "Escape") close();
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    send.disabled = true;
    const sent = await run(async () => ({
      name: branch.path, application_id: branch.command.application_id, options: await withFiles(controls, read()),
    }));
    send.disabled = false;
    if (sent) close();
  };
  form.hidden = false;
  find("composer").hidden = true;
  (controls[0]?.[1] ?? send).focus();
}

export const closeCommand = () => !form.hidden && close();

function control(option, read, branch, where) {
  const required = Boolean(option.required);
  const choices = choicesOf(option);
  if (choices) {
    const select = make("select", { required }, new Option("", ""));
    for (const each of choices) select.append(new Option(each.name, String(each.value)));
    return select;
  }
  if (option.type === FILE) return make("input", { type: "file", required });
  const isNumber = option.type === WHOLE || option.type === NUMBER;
  const input = make("input", {
    required, type: isNumber && !option.autocomplete ? "number" : "text", autocomplete: "off",
    maxLength: option.max_length ?? 6000, minLength: option.min_length ?? 0,
  });
  if (isNumber) Object.assign(input, { step: option.type === NUMBER ? "any" : "1", min: option.min_value ?? "", max: option.max_value ?? "" });
  if (option.autocomplete) complete(input, option, read, branch, where);
  return input;
}

function choicesOf(option) {
  const people = () => company(room()).map((each) => ({ name: each.name, value: each.id }));
  const roles = () => [...state.roles.values()].map((each) => ({ name: `@${each.name}`, value: each.id }));
  if (option.choices?.length) return option.choices;
  switch (option.type) {
    case SWITCH: return [{ name: "yes", value: "true" }, { name: "no", value: "false" }];
    case PERSON: return people();
    case ROLE: return roles();
    case ANYBODY: return [...people(), ...roles()];
    case ROOM: return [...state.rooms.values()].filter((each) => each.kind !== "dm").map((each) => ({ name: `#${roomName(each)}`, value: each.id }));
    default: return null;
  }
}

// The application's own suggestions while the option is typed.
function complete(input, option, read, branch, where) {
  const list = make("datalist", { id: `choices-${option.name}` });
  let timer = 0;
  const look = async () => {
    const body = { name: branch.path, options: { ...read(), [option.name]: input.value }, focused: option.name };
    const found = await call("POST", `/channels/${where}/autocomplete`, body).catch(() => []);
    list.replaceChildren(...found.map((each) => make("option", { value: String(each.value), label: each.name })));
  };
  input.addEventListener("focus", look, { once: true });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  input.setAttribute("list", list.id);
  form.append(list);
  queueMicrotask(() => input.after(list));
}

const valueOf = (input) => (input.type === "file" ? input.files[0] ?? null : input.value === "" ? null : input.value);

function typed(option, value) {
  if (option.type === SWITCH) return value === "true";
  return option.type === WHOLE || option.type === NUMBER ? Number(value) : value;
}

async function withFiles(controls, values) {
  for (const [option] of controls) {
    if (option.type !== FILE || !values[option.name]) continue;
    if (values[option.name].size > state.world.file_size_bytes) throw new Refused("The file is too large.");
    values[option.name] = await toFile(values[option.name]);
  }
  return values;
}
