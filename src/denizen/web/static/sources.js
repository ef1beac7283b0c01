// The state of the documents, in one line for owners and admins: read every five minutes, and synced when needed.

const EVERY_MS = 5 * 60 * 1000;
const line = document.getElementById("sources");

// Adds the token without which the server changes nothing for a cookie alone.
function withToken(options = {}) {
  const token = document.querySelector('meta[name="csrf-token"]')?.content;
  return token && options.method ? { ...options, headers: { ...options.headers, "X-CSRF-Token": token } } : options;
}

async function ask(path, options) {
  const answer = await fetch(path, withToken(options));
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return answer.json();
}

function say(text, why = "") {
  line.textContent = text;
  line.title = why;
  line.hidden = !text;
}

const time = (text) => text.slice(0, 16).replace("T", " ");

async function look() {
  const status = await ask("/api/snapshot/status");
  if (!status.needs_sync) {
    say(status.current ? `Documents as of ${time(status.last_sync_at ?? status.latest_at)} UTC.` : "");
    return;
  }
  const [latest] = await ask("/api/sync");
  if (!latest || latest.ended_at) await ask("/api/sync", { method: "POST" });
  say("Reading documents…", status.why);
}

async function watch() {
  await look().catch((error) => say("The state of the documents is unknown.", error.message));
  setTimeout(watch, EVERY_MS);
}

watch();
