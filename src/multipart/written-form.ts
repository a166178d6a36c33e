// Writes a form anew from the parsed parts, so that the upstream cannot read the form differently (RFC 7578).
import type { SentForm } from "../domain/models/sent-form.ts";
import { lengthOf, type Segment } from "./spool-source.ts";

/** A part to write: a text, or a file whose content is spooled. */
export type WrittenPart =
  | { readonly name: string; readonly text: string }
  | {
      readonly name: string;
      readonly filename: string;
      readonly contentType: string | undefined;
      readonly content: Segment;
    };

/**
 * Characters that are removed from a filename. Parsers read the rest alike; quotes, escapes and path separators are
 * removed.
 */
const unsafeInFilename = /[^\p{L}\p{M}\p{N} ._()+-]/gu;
/** Maximum length in UTF-16 units. A longer filename keeps its end, which has the extension. */
const maxFilename = 200;
/** Filename of a file without one. Some parsers treat a part without a filename as a text. */
const noFilename = "file";
/** Media type without parameters, because parsers differ in how they read parameters. */
const plainType = /^[\w.+-]+\/[\w.+-]+(?=[ \t]*(?:;|$))/;
const unknownType = "application/octet-stream";

/** Returns the segments of the form, and the request headers that describe the form. */
export function writtenForm(parts: readonly WrittenPart[]): Omit<SentForm, "open"> & { segments: readonly Segment[] } {
  // The boundary is random and made after all contents are known, so that a client cannot put it into a file.
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
