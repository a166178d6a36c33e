// Parses a multipart form while it arrives. Fields are buffered in memory. The file is written to its store, and
// reading pauses if the store falls behind.
import type { BodySource } from "../../../base/bytes/body-source.ts";
import { GatewayError, invalidRequest } from "../../../base/errors.ts";
import type { IncomingRequest } from "../../../http1/message.ts";
import { boundaryOf } from "../../../multipart/boundary.ts";
import { MultipartReader, type PartTaker } from "../../../multipart/multipart.ts";
import type { PartHead } from "../../../multipart/part-head.ts";
import { bodyFault } from "../../content/body.ts";
import { codingOf } from "../../content/content-encoding.ts";

/** Receives the bytes of an uploaded file in order, with one call at a time. */
export interface FileTaker {
  write(bytes: Uint8Array): Promise<void>;
}

export interface ReceivedForm {
  /** Fields by name. If a name is repeated, the last field counts. */
  fields: ReadonlyMap<string, string>;
  /** Headers of the part with the file. Undefined if the form had no file. */
  file: PartHead | undefined;
}

export interface FormReceipt {
  /** Name of the form field that holds the file. */
  fileField: string;
  /** Maximum bytes of the file. */
  maxBytes: number;
  /** Called when the file begins. Other fields may come before and after the file. */
  open(head: PartHead): Promise<FileTaker>;
}

const maxFieldLength = 64 * 1024;
const [maxFieldBytes, maxParts] = [256 * 1024, 256];
/** Bytes of one write. Small pieces are collected into blocks of this size, because fewer writes are faster. */
const blockBytes = 256 * 1024;
/**
 * If more bytes than the first number wait to be written, reading from the client pauses. It resumes below the second
 * number.
 */
const [maxWaiting, fewWaiting] = [4 * blockBytes, 2 * blockBytes];

/**
 * Parses the form of a request. Rejects with a GatewayError. If `open` was called before, the caller must then abandon
 * the file.
 */
export async function receiveForm(request: IncomingRequest, receipt: FormReceipt): Promise<ReceivedForm> {
  const boundary = boundaryOf(request.headers.get("content-type"));
  if (codingOf(request.headers.get("content-encoding"))) {
    throw new GatewayError("unsupported_media_type", "Send the form as it is, without the header Content-Encoding.");
  }
  // Reserves memory for the bytes that wait to be written, and as much again for bytes that still arrive after a pause.
  const refusal = request.hold(2 * maxWaiting);
  if (refusal) throw refusal;
  // The fields and boundaries of the form come on top of the file.
  const formBytes = receipt.maxBytes + 2 * maxFieldBytes;
  try {
    return await new FormReceiver(request.flowBody(formBytes), receipt, boundary).read();
  } catch (error) {
    throw bodyFault(error, formBytes);
  }
}

class FormReceiver implements PartTaker {
  readonly #reader: MultipartReader;
  readonly #receipt: FormReceipt;
  readonly #source: BodySource;
  readonly #fields = new Map<string, string>();
  readonly #result = Promise.withResolvers<ReceivedForm>();
  /** Headers of the current part. */
  #head: PartHead | undefined;
  #file: PartHead | undefined;
  #taker: FileTaker | undefined;
  #field: Buffer[] = [];
  #fieldBytes = 0;
  #allFieldBytes = 0;
  #parts = 0;
  /** Resolves once all operations on the file so far are done. */
  #work: Promise<void> = Promise.resolve();
  /** `#block` is being filled up to `#filled`. `#blocks` holds written blocks for reuse. */
  #block: Buffer | undefined;
  #filled = 0;
  readonly #blocks: Buffer[] = [];
  #waiting = 0;
  #isPaused = false;
  #isOver = false;

  constructor(source: BodySource, receipt: FormReceipt, boundary: string) {
    this.#receipt = receipt;
    this.#source = source;
    this.#reader = new MultipartReader(boundary, this);
  }

  read(): Promise<ReceivedForm> {
    this.#source.flow({
      data: (bytes) => this.#try(() => this.#reader.push(bytes.view)),
      end: () =>
        this.#try(() => {
          this.#reader.end();
          this.#do(async () => this.#result.resolve({ fields: this.#fields, file: this.#file }));
        }),
      fail: (error) => this.#fail(error),
    });
    return this.#result.promise;
  }

  part(head: PartHead): void {
    if (++this.#parts > maxParts) throw invalidRequest(`The form has more than ${maxParts} parts.`);
    this.#head = head;
    this.#field = [];
    this.#fieldBytes = 0;
    if (head.name !== this.#receipt.fileField) return;
    if (this.#file) throw invalidRequest(`The field \`${head.name}\` comes twice; send one file.`);
    this.#file = head;
    this.#do(async () => {
      this.#taker = await this.#receipt.open(head);
    });
  }

  content(all: Buffer, start: number, end: number): void {
    const bytes = all.subarray(start, end);
    if (this.#head !== this.#file || !this.#file) {
      this.#fieldBytes += bytes.length;
      this.#allFieldBytes += bytes.length;
      if (this.#fieldBytes > maxFieldLength || this.#allFieldBytes > maxFieldBytes) {
        throw invalidRequest(`The field \`${this.#head?.name}\` of the form is longer than ${maxFieldLength} bytes.`);
      }
      this.#field.push(Buffer.from(bytes));
      return;
    }
    for (let at = 0; at < bytes.length; ) {
      this.#block ??= this.#blocks.pop() ?? Buffer.allocUnsafeSlow(blockBytes);
      const copied = bytes.copy(this.#block, this.#filled, at);
      at += copied;
      this.#filled += copied;
      if (this.#filled === blockBytes) this.#writeBlock();
    }
    if (this.#isPaused || this.#waiting < maxWaiting) return;
    this.#isPaused = true;
    this.#source.pause();
  }

  #writeBlock(): void {
    const block = this.#block;
    const length = this.#filled;
    this.#block = undefined;
    this.#filled = 0;
    if (!block || length === 0) return;
    this.#waiting += length;
    this.#do(async () => {
      await this.#taker?.write(block.subarray(0, length));
      this.#blocks.push(block);
      this.#waiting -= length;
      if (!this.#isPaused || this.#waiting >= fewWaiting) return;
      this.#isPaused = false;
      this.#source.resume();
    });
  }

  partEnd(): void {
    if (this.#head === this.#file) this.#writeBlock();
    else if (this.#head) {
      this.#fields.set(this.#head.name, Buffer.concat(this.#field).toString("utf8"));
    }
    this.#head = undefined;
  }

  #do(work: () => Promise<void>): void {
    this.#work = this.#work.then(() => (this.#isOver ? undefined : work())).catch((error) => this.#fail(error));
  }

  #try(work: () => void): void {
    if (this.#isOver) return;
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Rejects after the current write, because the caller then abandons the file. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source.cancel();
    void this.#work.then(() => this.#result.reject(error));
  }
}
