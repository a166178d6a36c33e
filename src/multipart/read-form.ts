// Reads the form of a request: its text fields, and the metadata of its files. The bytes of the form are stored until
// the request ends.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import { GatheredBytes } from "../base/bytes/gathered-bytes.ts";
import { invalidRequest } from "../base/errors.ts";
import type { KeptForm, SentForm } from "../domain/models/sent-form.ts";
import { audioSeconds, audioStartBytes } from "./audio-length.ts";
import { MultipartReader, type PartTaker } from "./multipart.ts";
import type { PartHead } from "./part-head.ts";
import { SpooledBytes, type SpoolOptions } from "./spooled-bytes.ts";
import { type WrittenPart, writtenForm } from "./written-form.ts";

/**
 * Maximum bytes of all text fields together, and maximum parts of a form. Text fields contain prompts, options, and the
 * voices of known speakers as data URIs.
 */
const [maxTextBytes, maxParts] = [4 * 1024 * 1024, 512];
const [modelField, charsetField] = ["model", "_charset_"];

export interface FormText {
  readonly name: string;
  readonly value: string;
}

export interface FormFile {
  readonly name: string;
  readonly filename: string;
  readonly contentType: string | undefined;
  readonly bytes: number;
  /** Duration in seconds if the file is audio. */
  readonly seconds: number;
}

export interface FormOptions extends SpoolOptions {
  boundary: string;
  /** `Content-Length` of the form. Undefined if the client sent no such header. */
  declaredBytes: number | undefined;
}

/**
 * Reads a form. If it throws or rejects, which is always with a GatewayError, nothing stays stored. `faultOf` converts
 * errors of `source`.
 */
export function readForm(
  source: BodySource,
  options: FormOptions,
  faultOf: (error: unknown) => unknown,
): Promise<ReadForm> {
  const bytes = new SpooledBytes(options, options.declaredBytes);
  return new Promise((resolve, reject) => {
    const reading = new Reading(source, bytes, options);
    reading.onEnd = (error) => {
      if (error === undefined) {
        resolve(new ReadForm(bytes, reading));
        return;
      }
      bytes.release();
      reject(faultOf(error));
    };
    bytes.onRoom = () => reading.goOn();
    source.flow(reading);
  });
}

export class ReadForm implements KeptForm {
  readonly texts: readonly FormText[];
  readonly files: readonly FormFile[];
  readonly #bytes: SpooledBytes;
  /** Text fields and files of the form, in the client's order. */
  readonly #parts: readonly WrittenPart[];

  constructor(bytes: SpooledBytes, { texts, files, parts }: Reading) {
    this.#bytes = bytes;
    this.#parts = parts;
    this.texts = texts;
    this.files = files;
  }

  /** Size of the form in bytes. */
  get length(): number {
    return this.#bytes.length;
  }

  sentFor(model: string, edits?: Readonly<Record<string, string | null>>): SentForm {
    const parts = this.#parts.map((part) => {
      if (!("text" in part)) return part;
      const { name } = part;
      return { name, text: name === modelField ? model : ((edits && editOf(name, edits)) ?? part.text) };
    });
    const { segments, ...written } = writtenForm(parts);
    return { ...written, open: () => this.#bytes.source(segments) };
  }

  /** Deletes the stored bytes. Must be called when the request no longer needs the form. */
  release(): void {
    this.#bytes.release();
  }
}

function requireUtf8(charset: string): void {
  if (/^utf-?8$/i.test(charset)) return;
  throw invalidRequest("_charset_: must be utf-8: the texts of a form are read as that.", { param: charsetField });
}

/**
 * Returns the new value of a field, or undefined if the value stays. A removed `priority` becomes 0, because servers
 * refuse an empty number.
 */
function editOf(name: string, edits: Readonly<Record<string, string | null>>): string | undefined {
  const [base = name] = name.split("[", 1);
  const json = edits[base];
  if (json === null) return base === "priority" ? "0" : "";
  return json === undefined ? undefined : String(JSON.parse(json));
}

/** The part that is being read. */
interface Part {
  readonly head: PartHead;
  readonly at: number;
  /** The whole content of a text field, or the beginning of a file's content. */
  readonly text: GatheredBytes;
  bytes: number;
}

class Reading implements BodySink, PartTaker {
  readonly texts: FormText[] = [];
  readonly files: FormFile[] = [];
  readonly parts: WrittenPart[] = [];
  onEnd: ((error?: unknown) => void) | undefined;
  readonly #source: BodySource;
  readonly #bytes: SpooledBytes;
  readonly #hold: FormOptions["hold"];
  readonly #reader: MultipartReader;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #part: Part | undefined;
  #textBytes = 0;
  #parts = 0;
  #isPaused = false;

  constructor(source: BodySource, bytes: SpooledBytes, { boundary, hold }: FormOptions) {
    this.#source = source;
    this.#hold = hold;
    this.#bytes = bytes;
    this.#reader = new MultipartReader(boundary, this);
  }

  data(bytes: ByteSpan): void {
    if (!this.onEnd) return;
    const { view } = bytes;
    try {
      this.#reader.push(view);
    } catch (error) {
      this.#stop(error);
      return;
    }
    this.#bytes.append(view);
    if (this.#bytes.fault) this.#stop(this.#bytes.fault);
    else if (this.#bytes.isBehind && !this.#isPaused) {
      this.#isPaused = true;
      this.#source.pause();
    }
  }

  /** Continues reading when there is space again. If storing the form has failed, stops instead. */
  goOn(): void {
    if (!this.onEnd) return;
    if (this.#bytes.fault) this.#stop(this.#bytes.fault);
    else if (this.#isPaused) {
      this.#isPaused = false;
      this.#source.resume();
    }
  }

  end(): void {
    if (!this.onEnd) return;
    try {
      this.#reader.end();
    } catch (error) {
      this.#ended(error);
      return;
    }
    this.#bytes.whole().then(
      () => this.#ended(undefined),
      (error) => this.#ended(error),
    );
  }

  fail(error: unknown): void {
    this.#ended(error);
  }

  part(head: PartHead, at: number): void {
    if (++this.#parts > maxParts) throw invalidRequest(`The form has more than ${maxParts} parts.`);
    if (head.name === modelField && head.filename !== undefined) {
      throw invalidRequest("model: must be a text, and no file: send it without a filename.", { param: modelField });
    }
    this.#part = { head, at, text: new GatheredBytes(), bytes: 0 };
  }

  content(bytes: Buffer, start: number, end: number): void {
    const part = this.#part as Part;
    const { filename } = part.head;
    const kept = filename === undefined ? end - start : Math.min(end - start, audioStartBytes - part.bytes);
    if (kept > 0) part.text.add(bytes.subarray(start, start + kept));
    part.bytes += end - start;
    if (filename !== undefined) return;
    // Bytes of text fields count until the request ends, because the request's JSON consists of them.
    const refusal = this.#hold(end - start);
    if (refusal) throw refusal;
    this.#textBytes += end - start;
    if (this.#textBytes > maxTextBytes) {
      throw invalidRequest(
        `${part.head.name}: the texts of a form must be at most ${maxTextBytes} bytes together. Send what is a file with a filename.`,
        { param: part.head.name },
      );
    }
  }

  partEnd(at: number): void {
    const { head, text, bytes, at: from } = this.#part as Part;
    this.#part = undefined;
    const { name, filename, contentType, isLatin1 } = head;
    const all = text.bytes;
    if (filename !== undefined) {
      this.files.push({ name, filename, contentType, bytes, seconds: audioSeconds(all, bytes) });
      this.parts.push({ name, filename, contentType, content: { from, to: at } });
      return;
    }
    if (name === modelField && this.texts.some((one) => one.name === modelField)) {
      throw invalidRequest("model: appears twice in the form; send it once.", { param: modelField });
    }
    const value = isLatin1 ? all.toString("latin1") : this.#textOf(name, all);
    // Some parsers use this field as the charset of all texts (WHATWG HTML, 4.10.22), so its value must be UTF-8.
    if (name === charsetField) requireUtf8(value);
    else {
      this.texts.push({ name, value });
      this.parts.push({ name, text: value });
    }
  }

  #textOf(name: string, bytes: Buffer): string {
    try {
      return this.#decoder.decode(bytes);
    } catch {
      throw invalidRequest(`${name}: must be UTF-8.`, { param: name });
    }
  }

  /** Stops reading the body, and makes reading the form fail with this error. */
  #stop(error: unknown): void {
    this.#source.cancel();
    this.#ended(error);
  }

  #ended(error: unknown): void {
    const { onEnd } = this;
    this.onEnd = undefined;
    onEnd?.(error);
  }
}
