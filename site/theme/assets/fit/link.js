// What the reader has typed, in the address and out of it again: JSON, deflated, as base64 that an address can hold.
const NAME = "launch=";
export const LONGEST_LINK = 60_000;  // characters that browsers and trackers still take

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

export async function toAddress(state) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return `#${NAME}${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// null where the address holds none; an Error where it is damaged.
export async function fromAddress(hash) {
  if (!hash.startsWith(`#${NAME}`)) return null;
  const bytes = Uint8Array.from(atob(hash.slice(NAME.length + 1).replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0));
  const { files, gpu = "", gpus = "", own = {} } = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  if (!Array.isArray(files) || !files.every(each => Array.isArray(each) && each.length === 2 && each.every(one => typeof one === "string"))) throw new Error("files");
  return { files, gpu: String(gpu), gpus: String(gpus), own: Object.fromEntries(Object.entries(own).map(([name, said]) => [name, String(said)])) };
}
