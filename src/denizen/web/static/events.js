// Reading a turn: the events of POST /api/chat as they come, and the record of a turn whose stream broke.

export class ApiError extends Error {
  // The problem that the server answered instead of events: {code, message, why, fix, reference}.
  constructor(problem) {
    super(problem.message);
    this.problem = problem;
  }
}

export async function getJson(path, options = {}) {
  return (await request(path, options)).json();
}

// Yields {type, ...} until the turn has ended. `onTurn` gets the id of the turn as soon as it is known.
export async function* streamTurn(body, key, onTurn) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  const response = await request("/api/chat", { method: "POST", headers, body: JSON.stringify(body) });
  const turn = response.headers.get("X-Denizen-Turn");
  onTurn(turn);
  try {
    for await (const event of parse(response.body)) {
      yield event;
      if (event.type === "finished" || event.type === "error") return;
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // TypeError is how fetch tells that the network broke
  }
  yield { type: "notice", text: "The connection broke. Waiting for the answer…" };
  yield await waitForTurn(turn);
}

// Returns the last event of a turn, made from its record. Asks again while the server does not answer.
export async function waitForTurn(id) {
  for (;;) {
    const turn = await getJson(`/api/turns/${id}`).catch((error) => {
      if (error instanceof ApiError) throw error;
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

// Adds the token without which the server changes nothing for a cookie alone.
function withToken(options = {}) {
  const token = document.querySelector('meta[name="csrf-token"]')?.content;
  return token && options.method ? { ...options, headers: { ...options.headers, "X-CSRF-Token": token } } : options;
}

async function request(path, options) {
  const response = await fetch(path, withToken(options));
  if (response.status === 401) location.assign("/login");
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new ApiError(body.error ?? { message: `The server answered ${response.status}.` });
  }
  return response;
}

async function* parse(stream) {
  let rest = "";
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}
