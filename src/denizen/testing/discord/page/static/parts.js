// What hangs on messages: embeds, files, buttons and selects, and the fields of modals.

import { ask, make } from "./dom.js";
import { addInline, link, renderMarkdown } from "./markdown.js";
import { company, ownUrl, room, roomName, state } from "./state.js";

const ROW = 1, BUTTON = 2, CHOICES = 3, TEXT_INPUT = 4, PEOPLE = 5, ROLES = 6, ANYBODY = 7, ROOMS = 8;
const SECTION = 9, TEXT = 10, THUMBNAIL = 11, GALLERY = 12, FILE = 13, LINE = 14, CONTAINER = 17, LABEL = 18;
const STYLES = { 1: "main", 2: "", 3: "good", 4: "danger", 5: "" };
const HTTP = /^https?:\/\//i;

// --- embeds and files ------------------------------------------------------------------------------------------------

export function renderEmbed(embed, names) {
  const card = make("div", { class: "embed" });
  if (embed.color) card.style.borderLeftColor = `#${embed.color.toString(16).padStart(6, "0")}`;
  if (embed.author?.name) card.append(titled("p", "quiet", embed.author.name, embed.author.url, names));
  if (embed.title) card.append(titled("p", "heading", embed.title, embed.url, names));
  if (embed.description) card.append(make("div", { class: "text" }, renderMarkdown(embed.description, names)));
  if (embed.fields?.length) {
    card.append(make("dl", {}, ...embed.fields.map((field) => make(
      "div", { class: field.inline ? "inline" : null },
      titled("dt", null, field.name, "", names),
      make("dd", { class: "text" }, renderMarkdown(field.value, names)),
    ))));
  }
  for (const part of [embed.image, embed.thumbnail]) if (part?.url) card.append(picture(part.url, part.description ?? ""));
  const when = embed.timestamp ? new Date(embed.timestamp).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
  const foot = [embed.footer?.text, when].filter(Boolean).join(" · ");
  if (foot) card.append(make("p", { class: "quiet" }, foot));
  return card;
}

function titled(tag, className, text, url, names) {
  const node = make(tag, { class: className });
  if (url && HTTP.test(url)) node.append(link(url, text));
  else addInline(node, text, names);
  return node;
}

// Pictures from elsewhere are not fetched: nothing on this page leaves the machine.
function picture(url, description) {
  const own = ownUrl(url);
  if (own) return make("a", { href: own, target: "_blank" }, make("img", { src: own, alt: description || "Image", loading: "lazy" }));
  return HTTP.test(url) ? link(url, `Image: ${url}`) : make("span", { class: "quiet" }, `Image: ${url}`);
}

export function renderFile(file) {
  const own = ownUrl(file.url);
  if (/^image\/(png|jpeg|gif|webp|avif)/.test(file.type)) return picture(file.url, file.description || file.name);
  if (file.type.startsWith("audio/")) return make("audio", { controls: true, src: own, preload: "none", "aria-label": file.name });
  const name = make("a", { href: own, download: file.name }, file.name);
  return make("p", { class: "file" }, name, make("span", { class: "quiet" }, ` ${size(file.size_bytes)}`));
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// --- components ------------------------------------------------------------------------------------------------------

// `press(customId, values)` is called for a button, and for a select once something was chosen.
export function renderComponents(components, names, press) {
  return components.map((each) => renderComponent(each, names, press)).filter(Boolean);
}

function renderComponent(each, names, press) {
  const inner = () => renderComponents(each.components ?? [], names, press);
  switch (each.type) {
    case ROW: return make("div", { class: "row" }, ...inner());
    case BUTTON: return renderButton(each, press);
    case CHOICES: case PEOPLE: case ROLES: case ANYBODY: case ROOMS: return renderSelect(each, press);
    case SECTION: return make("div", { class: "section" }, make("div", {}, ...inner()), renderComponent(each.accessory, names, press));
    case TEXT: return make("div", { class: "text" }, renderMarkdown(each.content, names));
    case THUMBNAIL: return picture(each.media.url, each.description ?? "");
    case GALLERY: return make("div", { class: "row" }, ...each.items.map((item) => picture(item.media.url, item.description ?? "")));
    case FILE: return picture(each.file.url, "");
    case LINE: return make("hr");
    case CONTAINER: return make("div", { class: "embed" }, ...inner());
    default: return null;
  }
}

function renderButton(each, press) {
  const label = [each.emoji?.name, each.label].filter(Boolean).join(" ");
  if (each.url && HTTP.test(each.url)) return make("a", { class: "button", href: each.url, target: "_blank", rel: "noopener noreferrer" }, `${label} ↗`);
  const button = make("button", { type: "button", class: STYLES[each.style] || null, disabled: Boolean(each.disabled) }, label);
  button.dataset.custom = each.custom_id;
  button.addEventListener("click", () => press(each.custom_id, []));
  return button;
}

function renderSelect(each, press) {
  const multiple = (each.max_values ?? 1) > 1;
  const title = each.placeholder || "Choose";
  const select = make("select", { multiple, disabled: Boolean(each.disabled), "aria-label": title });
  if (!multiple) select.append(new Option(title, "", true, true));
  for (const choice of choicesOf(each)) {
    const text = choice.description ? `${choice.label} — ${choice.description}` : choice.label;
    select.append(new Option(text, choice.value, Boolean(choice.default), Boolean(choice.default)));
  }
  const chosen = () => [...select.selectedOptions].map((option) => option.value).filter(Boolean);
  if (!multiple) {
    select.addEventListener("change", () => chosen().length && press(each.custom_id, chosen()));
    return select;
  }
  const send = make("button", { type: "button", onclick: () => press(each.custom_id, chosen()) }, "Choose");
  return make("span", { class: "row" }, select, send);
}

function choicesOf(each) {
  const people = company(room()).map((one) => ({ label: one.name, value: one.id }));
  const roles = [...state.roles.values()].map((one) => ({ label: `@${one.name}`, value: one.id }));
  switch (each.type) {
    case PEOPLE: return people;
    case ROLES: return roles;
    case ANYBODY: return [...people, ...roles];
    case ROOMS: return [...state.rooms.values()].filter((one) => one.kind !== "dm").map((one) => ({ label: `#${roomName(one)}`, value: one.id }));
    default: return each.options ?? [];
  }
}

// --- modals ----------------------------------------------------------------------------------------------------------

// The values by custom id, or null when the person leaves it.
export function askModal(modal) {
  const notes = modal.components.filter((each) => each.type === TEXT).map((each) => each.content).join("\n");
  const fields = modal.components.flatMap((each) => {
    if (each.type === LABEL) return [field(each.component, each.label)];
    return (each.components ?? []).map((one) => field(one, one.label));
  });
  return ask(modal.title, fields, "Submit", { text: notes });
}

function field(each, label) {
  const common = { name: each.custom_id, label: label ?? each.placeholder ?? "", required: each.required ?? true };
  if (each.type !== TEXT_INPUT) return { ...common, options: choicesOf(each), multiple: (each.max_values ?? 1) > 1 };
  return { ...common, long: each.style === 2, value: each.value ?? "", placeholder: each.placeholder ?? "", max: each.max_length ?? 4000 };
}
