// Writes a new form from the parsed parts. So the model server cannot parse the client's form differently (RFC 7578).
import type { SentForm } from "../domain/models/sent-form.ts";
import { lengthOf, type Segment } from "./spool-source.ts";

/** A part of the new form: a text, or a file whose content is stored. */
export type WrittenPart =
  | { readonly name: string; readonly text: string }
  | {
      readonly name: string;
      readonly filename: string;
      readonly contentType: string | undefined;
      readonly content: Segment;
    };

/**
 * Matches characters that are removed from filenames, because parsers treat them differently. Examples are quotes,
 * escapes and path separators.
 */
const unsafeInFilename = /[^\p{L}\p{M}\p{N} ._()+-]/gu;
/** Maximum length of a filename. A longer filename is cut at its beginning, so that it keeps its extension. */
const maxFilename = 200;
/** Filename for a file without one, because some parsers take a part without a filename for a text. */
const noFilename = "file";
/** Matches the media type without its parameters, which parsers read differently. */
const plainType = /^[\w.+-]+\/[\w.+-]+(?=[ \t]*(?:;|$))/;
const unknownType = "application/octet-stream";

/** Returns the segments of the new form, and its request headers. */
export function writtenForm(parts: readonly WrittenPart[]): Omit<SentForm, "open"> & { segments: readonly Segment[] } {
  // The boundary is random and chosen only after the client has sent its files, so that no file can contain it.
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
