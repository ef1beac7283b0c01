// Requests to the server: JSON in and out, problems as errors, and the events of a turn as they come.

export class ApiError extends Error {
  // The problem that the server answered: {code, message, why, fix, reference}.
  constructor(problem, status) {
    super(problem.message);
    this.problem = problem;
    this.status = status;
  }
}

// The server did not answer, or broke off.
export class ConnectionError extends Error {}

const token = document.querySelector('meta[name="csrf-token"]')?.content;

export async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token && options.method && options.method !== "GET") headers["X-CSRF-Token"] = token;
  const response = await fetch(path, { ...options, headers }).catch((error) => {
    throw error.name === "AbortError" ? error : new ConnectionError("The server cannot be reached.");
  });
  if (response.status === 401) location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new ApiError(body.error ?? { message: `The server answered ${response.status}.` }, response.status);
  }
  return response;
}

export async function getJson(path) {
  return (await request(path)).json();
}

// Sends a JSON body, or none, and returns the answer's JSON, or null where it has no body.
export async function send(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const response = await request(path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

export function describeError(error) {
  if (error instanceof ApiError) return error.problem;
  if (error instanceof ConnectionError) return { message: error.message, fix: "Is it running?" };
  return { message: String(error.message ?? error) };
}

// Yields {type, ...} until the turn has ended. `onTurn` gets the id of the turn as soon as it is known.
export async function* streamTurn(path, body, key, onTurn) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  const response = await request(path, { method: "POST", headers, body: JSON.stringify(body) });
  const turn = response.headers.get("X-Denizen-Turn");
  onTurn(turn);
  let hasEnded = false;
  try {
    for await (const event of parseEvents(response.body)) {
      hasEnded ||= event.type === "finished" || event.type === "error";
      yield event;
    }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
  }
  if (hasEnded) return;
  yield { type: "notice", text: "The connection broke. Waiting for the answer…" };
  yield await waitForTurn(turn);
}

// Returns the last event of a turn, made from its record. Asks again while the server does not answer.
export async function waitForTurn(id) {
  for (;;) {
    const turn = await getJson(`/api/turns/${id}`).catch((error) => {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) throw error;
    });
    if (turn && turn.status !== "open") return lastEvent(turn);
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

export function lastEvent(turn) {
  const failed = turn.error && turn.status !== "cancelled";
  if (failed) return { type: "error", turn_id: turn.id, error: turn.error };
  return { type: "finished", turn_id: turn.id, status: turn.status, reply: turn.reply };
}

// Yields the JSON of each event of a stream.
export async function* parseEvents(stream) {
  let rest = "";
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  try {
    yield* readEvents(reader, rest);
  } finally {
    reader.cancel().catch(() => {}); // whoever stops reading gives the connection back
  }
}

async function* readEvents(reader, rest) {
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : new ConnectionError("The connection broke.");
    });
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) yield JSON.parse(data);
    }
  }
}

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
