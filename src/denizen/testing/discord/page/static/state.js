// What the page knows: the world as the person sees it, and the messages of the rooms that were opened.

export const state = {
  world: null,
  room: null, // the id of the channel, thread or direct message that is shown
  messages: new Map(), // room id -> Map of message id -> message
  more: new Map(), // room id -> whether there are earlier ones
  unread: new Map(), // room id -> how many that are for this person, 0 when there are only others
  typing: new Map(), // room id -> Map of person id -> until when (ms)
};

export function resetTo(world) {
  state.world = world;
  state.people = new Map(world.people.map((each) => [each.id, each]));
  state.rooms = new Map([...world.guilds.flatMap((each) => each.channels), ...world.direct_messages].map((each) => [each.id, each]));
  state.roles = new Map(world.guilds.flatMap((each) => each.roles).map((each) => [each.id, each]));
}

export function forget() {
  for (const each of [state.messages, state.more, state.unread, state.typing]) each.clear();
}

export const me = () => state.world.me;
export const person = (id) => state.people.get(id) ?? { id, name: "somebody", bot: false, online: false };
export const room = () => state.rooms.get(state.room);
export const messagesOf = (id) => state.messages.get(id) ?? new Map();

export function roomName(channel) {
  if (!channel) return "unknown";
  return channel.kind === "dm" ? person(channel.with[0]).name : channel.name;
}

// The people who can be mentioned in a room: members of the guild, or both sides of a direct message.
export function company(channel) {
  if (channel?.kind === "dm") return [me(), ...channel.with].map(person);
  return (state.world.guilds[0]?.members ?? []).map(person);
}

// Ids are numbers of up to 20 digits, more than a number of JavaScript can hold.
export const isBefore = (one, other) => (one.length === other.length ? one < other : one.length < other.length);

// A file of the simulator, whatever name of this machine the page was opened with; "" for anything outside.
export function ownUrl(url) {
  return url?.startsWith(`${state.world.cdn_url}/`) ? `/cdn${url.slice(state.world.cdn_url.length)}` : "";
}
