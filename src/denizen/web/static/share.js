// The dialog that shares a chat under a link, and ends the sharing.

import { describeError, send } from "./api.js";

const find = (id) => document.getElementById(id);

export function openShareDialog(chat) {
  const dialog = find("share-dialog");
  const draw = () => {
    const isShared = Boolean(chat.share_token);
    find("share-text").textContent = isShared
      ? "Everybody who has this link can read the chat, with what is said in it from now on. They do not see how the answers were found."
      : "A link is made with which everybody can read this chat, without signing in.";
    find("share-link-row").hidden = find("share-off").hidden = !isShared;
    find("share-on").hidden = isShared;
    find("share-link").value = isShared ? `${location.origin}/shared/${chat.share_token}` : "";
  };
  const change = async (is_public) => {
    try {
      chat.share_token = (await send("PATCH", `/api/chats/${chat.id}/share`, { is_public })).share_token ?? "";
      find("share-problem").textContent = is_public ? "" : "The link does not work any more; copies in caches end within 5 minutes.";
      draw();
    } catch (error) {
      find("share-problem").textContent = describeError(error).message;
    }
  };
  find("share-problem").textContent = "";
  find("share-on").onclick = () => change(true);
  find("share-off").onclick = () => change(false);
  find("share-close").onclick = () => dialog.close();
  find("share-copy").onclick = async () => {
    find("share-link").select();
    await navigator.clipboard.writeText(find("share-link").value).catch(() => {});
    find("share-problem").textContent = "Copied.";
  };
  draw();
  dialog.showModal();
}
