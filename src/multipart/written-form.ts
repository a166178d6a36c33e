// Writes a form anew from what was understood of another one, so that its server can read nothing else in it (RFC 7578).
import type { SentForm } from "../domain/models/sent-form.ts";
import { lengthOf, type Segment } from "./spool-source.ts";

/** A part as it is written: a text, or a file whose content is elsewhere. */
export type WrittenPart =
  | { readonly name: string; readonly text: string }
  | {
      readonly name: string;
      readonly filename: string;
      readonly contentType: string | undefined;
      readonly content: Segment;
    };

/** Characters of a filename that all parsers read alike: those of quotes, escapes and paths are not among them. */
const unsafeInFilename = /[^\p{L}\p{M}\p{N} ._()+-]/gu;
/** UTF-16 units; of a longer name its end, which says the format. */
const maxFilename = 200;
/** A part without a filename is a text to some parsers, whatever its type. */
const noFilename = "file";
/** Without parameters, as parsers differ in how they are written. */
const plainType = /^[\w.+-]+\/[\w.+-]+(?=[ \t]*(?:;|$))/;
const unknownType = "application/octet-stream";

/** The form's segments, and what the request that sends it has to say of it. */
export function writtenForm(parts: readonly WrittenPart[]): Omit<SentForm, "open"> & { segments: readonly Segment[] } {
  // Made when all contents are known, so that nobody can have put the boundary into one.
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
