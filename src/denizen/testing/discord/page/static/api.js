// Requests to /sim in the name of the person who is played, and the stream of what happens.

let who = "";

export class Refused extends Error {}

export function playAs(name) {
  who = name;
}

export async function call(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(address(path), options).catch(() => {
    throw new Refused("The simulator does not answer. Is it running?");
  });
  if (response.status === 204) return null;
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(found.error?.message ?? `The simulator answered ${response.status}.`);
  return found;
}

function address(path) {
  const query = who ? `${path.includes("?") ? "&" : "?"}as=${encodeURIComponent(who)}` : "";
  return `/sim${path}${query}`;
}

// Calls `handlers[name](body)` for each event. It comes back by itself after a break, also when the simulator was
// started anew, where the ids are new. Returns a function that ends it.
export function listen(handlers) {
  let source = null;
  let timer = 0;
  let ended = false;

  function open() {
    source = new EventSource(address("/events"));
    for (const [name, handle] of Object.entries(handlers)) {
      if (name !== "state") source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
    source.onopen = () => handlers.state(true);
    source.onerror = () => {
      handlers.state(false);
      if (source.readyState !== EventSource.CLOSED || ended) return; // else the browser tries again itself
      clearTimeout(timer);
      timer = setTimeout(retry, 1000);
    };
  }

  async function retry() {
    // Whoever was played may not be there any more: then it is whoever the simulator takes for granted.
    const answer = await fetch(address("/world")).catch(() => null);
    if (answer?.status === 404) playAs("");
    if (!ended) open();
  }

  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    source.close();
  };
}

export const toFile = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onerror = () => reject(new Refused(`${file.name} cannot be read.`));
  reader.onload = () => resolve({ name: file.name, type: file.type, data: reader.result.slice(reader.result.indexOf(",") + 1) });
  reader.readAsDataURL(file);
});
