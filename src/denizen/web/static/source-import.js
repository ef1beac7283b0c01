// Files for the import of sources: the text of a list goes into the field, a screenshot to the server, which reads it.

const form = document.getElementById("list-form");
const text = document.getElementById("text");
const file = document.getElementById("file");
const status = document.getElementById("file-status");
const token = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

function readAsDataUrl(picture) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(picture);
  });
}

async function readPicture(picture) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": token };
  const body = JSON.stringify({ image: await readAsDataUrl(picture) });
  const answer = await fetch("/api/sources/ocr", { method: "POST", headers, body });
  const told = await answer.json();
  if (!answer.ok) throw new Error([told.error?.message, told.error?.fix].filter(Boolean).join(" "));
  return told.sources.map(({ location, settings }) => {
    const given = Object.entries(settings).filter(([, value]) => value !== null);
    return { location, ...Object.fromEntries(given) };
  });
}

document.getElementById("file-field").hidden = false;
file.addEventListener("change", async () => {
  const [chosen] = file.files;
  if (!chosen) return;
  status.textContent = `Reading ${chosen.name}…`;
  try {
    text.value = chosen.type.startsWith("image/")
      ? JSON.stringify(await readPicture(chosen), null, 2)
      : await chosen.text();
    form.submit();
  } catch (error) {
    status.textContent = error.message;
  }
});
