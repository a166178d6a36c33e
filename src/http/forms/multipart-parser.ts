// Reads multipart/form-data (RFC 7578) from bytes as they come: holds no more of a part than what may be its end.

/** Told of the parts of a form in their order. */
export interface FormTaker {
  partBegan(part: PartHead): void;
  /** The bytes are valid during the call alone. */
  partData(bytes: Buffer): void;
  partEnded(): void;
}

export interface PartHead {
  name: string;
  /** Undefined for a field that is no file. */
  filename: string | undefined;
  contentType: string | undefined;
}

/** What is wrong with a form; `message` is fit for the client. */
export class FormError extends Error {
  override readonly name = "FormError";
}

/** Characters of a boundary at most (RFC 2046, 5.1.1). */
const longestBoundary = 70;
const longestHead = 8 * 1024;
const mostParts = 256;
const lineEnd = Buffer.from("\r\n");
const headEnd = Buffer.from("\r\n\r\n");

type State = "between" | "head" | "data" | "done";

export class MultipartParser {
  readonly #delimiter: Buffer;
  readonly #taker: FormTaker;
  #state: State = "data";
  /** Whether what comes is data of a part: before the first boundary it is nobody's. */
  #inPart = false;
  #parts = 0;
  /** Bytes before the first boundary. */
  #preamble = 0;
  /** Came, and cannot be told yet. The first boundary may stand at the very beginning, without a line end before it. */
  #kept: Buffer = lineEnd;

  /** Throws a FormError for a boundary that is none. */
  constructor(boundary: string, taker: FormTaker) {
    if (boundary.length === 0 || boundary.length > longestBoundary) {
      throw new FormError(`The boundary in Content-Type must have 1 to ${longestBoundary} characters.`);
    }
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
    this.#taker = taker;
  }

  /** Throws a FormError. */
  push(bytes: Buffer): void {
    let rest = this.#kept.length === 0 ? bytes : Buffer.concat([this.#kept, bytes]);
    for (;;) {
      const left = this.#step(rest);
      if (left === undefined) break;
      rest = left;
    }
  }

  /** All of the body came. Throws a FormError where the form is not whole. */
  end(): void {
    if (this.#state !== "done") throw new FormError("The form ends before its last boundary.");
  }

  /** Takes what it can from the beginning; gives the rest, or undefined where more has to come first. */
  #step(bytes: Buffer): Buffer | undefined {
    switch (this.#state) {
      case "data":
        return this.#data(bytes);
      case "between":
        return this.#between(bytes);
      case "head":
        return this.#head(bytes);
      case "done":
        this.#kept = nothing;
        return undefined;
    }
  }

  #data(bytes: Buffer): Buffer | undefined {
    const at = bytes.indexOf(this.#delimiter);
    if (at < 0) {
      const end = startOfTail(bytes, this.#delimiter);
      this.#give(bytes.subarray(0, end));
      this.#kept = Buffer.from(bytes.subarray(end));
      return undefined;
    }
    this.#give(bytes.subarray(0, at));
    if (this.#inPart) this.#taker.partEnded();
    this.#inPart = false;
    this.#state = "between";
    return bytes.subarray(at + this.#delimiter.length);
  }

  /** Behind a boundary: two hyphens end the form, and a line end begins a part; blanks may stand before that. */
  #between(bytes: Buffer): Buffer | undefined {
    let at = 0;
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
    if (at > longestBoundary) throw new FormError("There is more than a line end behind a boundary of the form.");
    if (bytes.length < at + 2) {
      this.#kept = Buffer.from(bytes);
      return undefined;
    }
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d) this.#state = "done";
    else if (bytes[at] === 0x0d && bytes[at + 1] === 0x0a) this.#state = "head";
    else throw new FormError("There is more than a line end behind a boundary of the form.");
    return bytes.subarray(this.#state === "done" ? at + 2 : at);
  }

  /** `bytes` begins with the line end behind the boundary, so that a head without fields ends as any other. */
  #head(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf(headEnd);
    if (end > longestHead || (end < 0 && bytes.length > longestHead)) {
      throw new FormError(`The head of a part of the form has more than ${longestHead} bytes.`);
    }
    if (end < 0) {
      this.#kept = Buffer.from(bytes);
      return undefined;
    }
    if (++this.#parts > mostParts) throw new FormError(`The form has more than ${mostParts} parts.`);
    this.#taker.partBegan(headOf(bytes.subarray(0, end).toString("utf8")));
    this.#inPart = true;
    this.#state = "data";
    return bytes.subarray(end + headEnd.length);
  }

  #give(bytes: Buffer): void {
    if (this.#inPart && bytes.length > 0) this.#taker.partData(bytes);
    if (this.#parts > 0) return;
    this.#preamble += bytes.length;
    if (this.#preamble > longestHead) throw new FormError("The form does not begin with the boundary of Content-Type.");
  }
}

const nothing = Buffer.alloc(0);

/** The place of what may be the beginning of `delimiter`, which has one carriage return alone, at the end of `bytes`. */
function startOfTail(bytes: Buffer, delimiter: Buffer): number {
  const at = bytes.lastIndexOf(0x0d);
  if (at < 0 || bytes.length - at >= delimiter.length) return bytes.length;
  return bytes.subarray(at).equals(delimiter.subarray(0, bytes.length - at)) ? at : bytes.length;
}

function headOf(text: string): PartHead {
  let disposition: Map<string, string> | undefined;
  let contentType: string | undefined;
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === "content-disposition") disposition = parametersOf(value);
    if (name === "content-type") contentType = value;
  }
  const name = disposition?.get("name");
  if (disposition?.get("") !== "form-data" || name === undefined) {
    throw new FormError('Each part of the form needs Content-Disposition: form-data; name="…".');
  }
  return { name, filename: disposition.get("filename"), contentType };
}

/** The value under an empty name, and its parameters; of one that is repeated the first. */
export function parametersOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = text.indexOf(";");
  found.set("", (at < 0 ? text : text.slice(0, at)).trim().toLowerCase());
  while (at >= 0 && at < text.length) {
    const equals = text.indexOf("=", at);
    if (equals < 0) break;
    const name = text
      .slice(at + 1, equals)
      .trim()
      .toLowerCase();
    const { value, end } = valueAt(text, equals + 1);
    if (!found.has(name)) found.set(name, value);
    at = text.indexOf(";", end);
  }
  return found;
}

/** A token, or a quoted string: browsers write a quote in it as %22, others with a backslash before it. */
function valueAt(text: string, from: number): { value: string; end: number } {
  let at = from;
  while (text[at] === " ") at++;
  if (text[at] !== '"') {
    const end = text.indexOf(";", at);
    const last = end < 0 ? text.length : end;
    return { value: text.slice(at, last).trim(), end: last };
  }
  let value = "";
  for (at++; at < text.length && text[at] !== '"'; at++) {
    const isEscape = text[at] === "\\" && (text[at + 1] === '"' || text[at + 1] === "\\");
    if (isEscape) at++;
    value += text[at];
  }
  return { value: value.replaceAll("%22", '"').replaceAll("%0D%0A", " "), end: at + 1 };
}
