// Parts of a page that htmx loads again and again: says when they are not up to date any more.

const state = document.getElementById("live-state");

function tell(text) {
  if (!state || state.textContent === text) return;
  state.textContent = text;
  state.hidden = !text;
}

document.addEventListener("htmx:before:response", (event) => {
  // The sign-in has ended: the answer is another page.
  if (event.detail.ctx.response.raw.redirected) location.reload();
});
document.addEventListener("htmx:after:swap", () => tell(""));
document.addEventListener("htmx:response:error", () => tell("Not up to date: the server refused to tell more."));
document.addEventListener("htmx:error", () => tell("Not up to date: the server does not answer."));
