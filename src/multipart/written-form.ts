// Writes a form again from its parsed parts, so that the upstream cannot parse the client's form differently (RFC
// 7578).
import type { SentForm } from "../domain/models/sent-form.ts";
import { lengthOf, type Segment } from "./spool-source.ts";

/** A part to write: a text, or a file whose content is stored. */
export type WrittenPart =
  | { readonly name: string; readonly text: string }
  | {
      readonly name: string;
      readonly filename: string;
      readonly contentType: string | undefined;
      readonly content: Segment;
    };

/**
 * Characters that are removed from filenames, such as quotes, escapes and path separators. Parsers treat them
 * differently.
 */
const unsafeInFilename = /[^\p{L}\p{M}\p{N} ._()+-]/gu;
/** Maximum length of a filename. A longer one loses its beginning and keeps its extension. */
const maxFilename = 200;
/** Filename for a file without one. Without a filename, some parsers take the part for a text. */
const noFilename = "file";
/** Media type without parameters, which parsers read differently. */
const plainType = /^[\w.+-]+\/[\w.+-]+(?=[ \t]*(?:;|$))/;
const unknownType = "application/octet-stream";

/** Returns the segments of the new form, and its request headers. */
export function writtenForm(parts: readonly WrittenPart[]): Omit<SentForm, "open"> & { segments: readonly Segment[] } {
  // Choose the boundary at random and only now, so that no file of the client can contain it.
  const boundary = `headrace-${crypto.randomUUID()}`;
  const segments: Segment[] = [];
  for (const part of parts) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${part.name}"`;
    if ("text" in part) segments.push({ bytes: Buffer.from(`${head}\r\n\r\n${part.text}\r\n`) });
    else {
      const filename = part.filename.toWellFormed().replace(unsafeInFilename, "_").slice(-maxFilename) || noFilename;
      const type = plainType.exec(part.contentType ?? "")?.[0] ?? unknownType;
      const rest = `; filename="${filename}"\r\nContent-Type: ${type}\r\n\r\n`;
      segments.push({ bytes: Buffer.from(head + rest) }, part.content, { bytes: Buffer.from("\r\n") });
    }
  }
  segments.push({ bytes: Buffer.from(`--${boundary}--\r\n`) });
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    length: segments.reduce((sum, segment) => sum + lengthOf(segment), 0),
    segments,
  };
}
