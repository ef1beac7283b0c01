// A bot on discord.js. Arguments: base URL of the API without its version, token, channel id.
const discord = require("discord.js");

const [api, token, channelId] = process.argv.slice(2);
const { Guilds, GuildMembers, GuildMessages, GuildMessageReactions, MessageContent } = discord.GatewayIntentBits;
const client = new discord.Client({
  intents: [Guilds, GuildMembers, GuildMessages, GuildMessageReactions, MessageContent],
  rest: { api },
});

client.once("clientReady", async () => {
  const channel = client.channels.cache.get(channelId);
  const history = await channel.messages.fetch({ limit: 50 });
  const members = await channel.guild.members.fetch();
  await client.application.commands.create({ name: "ask", description: "Asks for a name." });
  const embed = new discord.EmbedBuilder().setTitle("Tide").setURL("https://tide.example/");
  const sent = await channel.send({ content: "draft", embeds: [embed] });
  await sent.edit(`${channel.guild.name}: ${members.size} members, ${history.map((each) => each.content).reverse().join(", ")}`);
  await sent.react("👍");
  const thread = await sent.startThread({ name: "Tide talk" });
  await thread.send("inside");
  await (await channel.send("gone soon")).delete();
  await channel.send({ content: "ready", files: [new discord.AttachmentBuilder(Buffer.from("high"), { name: "tide.txt" })] });
});

client.on("interactionCreate", async (interaction) => {
  if (interaction.isChatInputCommand()) {
    const button = new discord.ButtonBuilder().setCustomId("open").setLabel("Open").setStyle(discord.ButtonStyle.Primary);
    await interaction.reply({ content: "Press it.", components: [new discord.ActionRowBuilder().addComponents(button)] });
    await interaction.followUp({ content: "Only you see this.", flags: discord.MessageFlags.Ephemeral });
  } else if (interaction.isButton()) {
    const input = new discord.TextInputBuilder().setCustomId("name").setLabel("Name").setStyle(discord.TextInputStyle.Short);
    const modal = new discord.ModalBuilder().setCustomId("who").setTitle("Who?");
    await interaction.showModal(modal.addComponents(new discord.ActionRowBuilder().addComponents(input)));
  } else if (interaction.isModalSubmit()) {
    await interaction.deferReply();
    await interaction.editReply(`Hello ${interaction.fields.getTextInputValue("name")}`);
  }
});

client.on("messageCreate", async (message) => {
  if (!message.author.bot) await message.reply(`You said: ${message.content}`);
});

client.login(token);
