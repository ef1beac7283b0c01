// A bot on oceanic.js. Arguments: base URL of the API without its version, token, channel id.
const oceanic = require("oceanic.js");

const [api, token, channelId] = process.argv.slice(2);
const client = new oceanic.Client({
  auth: `Bot ${token}`,
  gateway: { intents: ["GUILDS", "GUILD_MEMBERS", "GUILD_MESSAGES", "GUILD_MESSAGE_REACTIONS", "MESSAGE_CONTENT"] },
  rest: { baseURL: `${api}/v10` },
});
client.on("error", (error) => {
  throw error;
});

client.once("ready", async () => {
  const channel = client.getChannel(channelId);
  const history = await channel.getMessages({ limit: 50 });
  const members = await channel.guild.fetchMembers();
  await client.application.createGlobalCommand({ type: 1, name: "ask", description: "Asks for a name." });
  const embeds = [{ title: "Tide", url: "https://tide.example/" }];
  const sent = await channel.createMessage({ content: "draft", embeds });
  await sent.edit({ content: `${channel.guild.name}: ${members.length} members, ${history.map((each) => each.content).reverse().join(", ")}` });
  await sent.createReaction("👍");
  const thread = await sent.startThread({ name: "Tide talk" });
  await thread.createMessage({ content: "inside" });
  await (await channel.createMessage({ content: "gone soon" })).delete();
  await channel.createMessage({ content: "ready", files: [{ name: "tide.txt", contents: Buffer.from("high") }] });
});

client.on("interactionCreate", async (interaction) => {
  if (interaction.isCommandInteraction()) {
    const button = { type: 2, style: 1, customID: "open", label: "Open" };
    await interaction.reply({ content: "Press it.", components: [{ type: 1, components: [button] }] });
    await interaction.createFollowup({ content: "Only you see this.", flags: 64 });
  } else if (interaction.isComponentInteraction()) {
    const input = { type: 4, style: 1, customID: "name", label: "Name" };
    await interaction.createModal({ customID: "who", title: "Who?", components: [{ type: 1, components: [input] }] });
  } else if (interaction.isModalSubmitInteraction()) {
    await interaction.defer();
    await interaction.editOriginal({ content: `Hello ${interaction.data.components.getTextInput("name", true)}` });
  }
});

client.on("messageCreate", async (message) => {
  if (message.author.bot) return;
  await client.rest.channels.createMessage(channelId, {
    content: `You said: ${message.content}`,
    messageReference: { messageID: message.id },
  });
});

client.connect();
