// The frame of every page: the menu on small screens, and what htmx sends with each request.

const button = document.getElementById("menu-button");
const sidebar = document.getElementById("sidebar");

function setMenu(isOpen) {
  document.body.classList.toggle("menu-open", isOpen);
  button.setAttribute("aria-expanded", String(isOpen));
  if (isOpen) sidebar.querySelector("a, button, input")?.focus();
}

button?.addEventListener("click", () => setMenu(!document.body.classList.contains("menu-open")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !document.body.classList.contains("menu-open")) return;
  setMenu(false);
  button.focus();
});
document.addEventListener("click", (event) => {
  if (document.body.classList.contains("menu-open") && !event.target.closest("#sidebar, #menu-button")) setMenu(false);
});

// The menu of administrators is longer than most windows: where one is has to be seen.
const current = sidebar?.querySelector(".links [aria-current]");
if (current) sidebar.scrollTop = current.offsetTop - sidebar.clientHeight / 2;

// A form whose act cannot be taken back says so in `data-confirm` and is asked about first.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !confirm(question)) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}, true);

// A form that takes long is not sent twice by a second click.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 3000);
});

const token = document.querySelector('meta[name="csrf-token"]')?.content;
document.addEventListener("htmx:config:request", (event) => {
  if (token) event.detail.ctx.request.headers["X-CSRF-Token"] = token;
});

// Times of the server are UTC; people read theirs.
function showLocalTimes() {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const when = new Date(each.dateTime);
    if (Number.isNaN(when.getTime())) continue;
    const timeStyle = "seconds" in each.dataset ? "medium" : "short";
    const told = when.toLocaleString([], { dateStyle: "medium", timeStyle });
    if (each.textContent === told) continue;
    each.title = each.textContent;
    each.textContent = told;
  }
}
showLocalTimes();
document.addEventListener("htmx:after:swap", showLocalTimes);
