// What a reader can take along: the picture as PNG, the columns as a table or CSV.

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 5000);
}

export function pictureFile(plot, slug, words) {
  const drawn = plot.export("png").canvas;
  const scale = window.devicePixelRatio || 1, foot = 34 * scale;
  const canvas = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height + foot });
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.body);
  pen.fillStyle = style.getPropertyValue("--c-panel");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawn, 0, 0);
  pen.fillStyle = style.getPropertyValue("--c-ink-soft");
  pen.font = `${12 * scale}px system-ui, sans-serif`;
  pen.fillText(words, 8 * scale, canvas.height - 12 * scale, canvas.width - 16 * scale);
  canvas.toBlob(blob => save(blob, `${slug}.png`));
}

const rows = columns => Math.max(...Object.values(columns).map(c => typeof c === "object" ? c.length : 1));
const cell = (column, i) => typeof column === "object" ? column[i] : column;
const text = value => typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value ?? "");

export function tables(parts) {
  return Object.entries(parts).map(([name, columns]) => {
    const table = document.createElement("table");
    const names = Object.keys(columns);
    table.createCaption().textContent = name.replaceAll("_", " ");
    const head = table.createTHead().insertRow();
    for (const column of names) head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: column.replaceAll("_", " ") }));
    const body = table.createTBody();
    for (let i = 0; i < rows(columns); i++) {
      const row = body.insertRow();
      for (const column of names) row.insertCell().textContent = text(cell(columns[column], i));
    }
    return table;
  });
}

const quoted = value => /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

export function tableFile(parts, slug) {
  const lines = [];
  for (const [name, columns] of Object.entries(parts)) {
    const names = Object.keys(columns);
    lines.push(`# ${name}`, names.map(quoted).join(","));
    for (let i = 0; i < rows(columns); i++) lines.push(names.map(c => quoted(String(cell(columns[c], i)))).join(","));
  }
  save(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }), `${slug}.csv`);
}

// Texts to take along, such as another program's settings: shown, copied or saved as a file. One without a word is not
// there, and one that comes is opened.
export function showDocuments(element, documents) {
  for (const [name, text] of Object.entries(documents)) {
    const box = element.querySelector(`[data-document="${name}"]`), place = box.querySelector("code");
    if (box.hidden && text) box.open = true;
    box.hidden = !text;
    if (place.textContent !== text) place.textContent = text;
  }
}

export function bindDocuments(element) {
  for (const box of element.querySelectorAll("[data-document]")) {
    const text = () => box.querySelector("code").textContent;
    const copy = box.querySelector("[data-copy-document]");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text());
        copy.textContent = "copied";
      } catch {  // a browser that forbids it: the text is selected instead
        getSelection().selectAllChildren(box.querySelector("code"));
        copy.textContent = "selected";
      }
      setTimeout(() => { copy.textContent = "copy"; }, 1600);
    });
    box.querySelector("[data-save-document]").addEventListener("click",
      () => save(new Blob([text()], { type: "text/plain" }), box.dataset.file));
  }
}
