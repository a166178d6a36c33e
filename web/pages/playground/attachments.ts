// Files of a message: images, documents and texts, as content parts of a chat.
import type { Attachment } from "./exchange.ts";

/** The maximum length of a message's encoded files, which must fit into one request. */
export const maxLength = 20_000_000;

const textNames = /\.(md|txt|csv|json|ya?ml|toml|xml|html|css|[jt]sx?|py|go|rs|java|c|h|cpp|sh|sql|log)$/i;

/** Reads a chosen file. Rejects if the browser cannot read it. */
export async function attachmentOf(file: File): Promise<Attachment> {
  const { name, type } = file;
  if (type.startsWith("text/") || type === "application/json" || textNames.test(name)) {
    return { name, kind: "text", data: await file.text() };
  }
  return { name, kind: type.startsWith("image/") ? "image" : "file", data: await dataUrlOf(file) };
}

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** Returns a message's content: the plain text if no file comes with it. */
export function contentOf(text: string, attachments: readonly Attachment[] = []): string | object[] {
  const parts: object[] = attachments.flatMap(({ name, kind, data }): object[] => {
    if (data === undefined) return [];
    if (kind === "image") return [{ type: "image_url", image_url: { url: data } }];
    if (kind === "file") return [{ type: "file", file: { filename: name, file_data: data } }];
    return [{ type: "text", text: `${name}:\n${data}` }];
  });
  return parts.length === 0 ? text : [...parts, { type: "text", text }];
}
