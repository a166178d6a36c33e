// Reads a form with a file in it from a request as it comes: the fields are held, the file goes where it is kept, at the pace of that.
import { GatewayError, invalidRequest } from "../../base/errors.ts";
import { type IncomingRequest, RequestBodyError } from "../../http1/message.ts";
import { FormError, MultipartParser, type PartHead, parametersOf } from "./multipart-parser.ts";

/** Takes the bytes of a file in their order: one call at a time. */
export interface FileTaker {
  write(bytes: Uint8Array): Promise<void>;
}

export interface ReadForm {
  /** By their names; the last of those that come several times. */
  fields: ReadonlyMap<string, string>;
  /** The file's own head; undefined where there was none. */
  file: PartHead | undefined;
}

export interface FormReading {
  /** The field that has the file. */
  fileField: string;
  /** Called when the file begins; fields may come before it and behind it. */
  open(head: PartHead): Promise<FileTaker>;
}

const longestField = 64 * 1024;
const mostFieldBytes = 256 * 1024;
/** What is written at once: of what comes in small pieces, the fewer calls. */
const blockBytes = 256 * 1024;
/** With more that is not written yet, the client waits; it goes on below the other. */
const [mostWaiting, fewWaiting] = [4 * blockBytes, 2 * blockBytes];

/** Rejects with a GatewayError; whoever opened a file has to give it up then. */
export async function readForm(request: IncomingRequest, reading: FormReading): Promise<ReadForm> {
  const boundary = boundaryOf(request);
  // What waits is this long at most, and what was on its way.
  const refusal = request.hold(2 * mostWaiting);
  if (refusal) throw refusal;
  try {
    return await new FormReader(request, reading, boundary).read();
  } catch (error) {
    throw faultOf(error);
  }
}

class FormReader {
  readonly #parser: MultipartParser;
  readonly #reading: FormReading;
  readonly #source: ReturnType<IncomingRequest["streamBody"]>;
  readonly #fields = new Map<string, string>();
  readonly #result = Promise.withResolvers<ReadForm>();
  /** The part that comes. */
  #head: PartHead | undefined;
  #file: PartHead | undefined;
  #taker: FileTaker | undefined;
  #field: Buffer[] = [];
  #fieldBytes = 0;
  #allFieldBytes = 0;
  /** What has to be done with the file, in its order. */
  #work: Promise<void> = Promise.resolve();
  /** What is filled now, how far, and those that were written and may be filled again. */
  #block: Buffer | undefined;
  #filled = 0;
  readonly #blocks: Buffer[] = [];
  #waiting = 0;
  #isPaused = false;
  #isOver = false;

  constructor(request: IncomingRequest, reading: FormReading, boundary: string) {
    this.#reading = reading;
    this.#source = request.streamBody();
    this.#parser = new MultipartParser(boundary, {
      partBegan: (head) => this.#began(head),
      partData: (bytes) => this.#data(bytes),
      partEnded: () => this.#ended(),
    });
  }

  read(): Promise<ReadForm> {
    this.#source.flow({
      data: (bytes) => this.#try(() => this.#parser.push(bytes.view)),
      end: () =>
        this.#try(() => {
          this.#parser.end();
          this.#do(async () => this.#result.resolve({ fields: this.#fields, file: this.#file }));
        }),
      fail: (error) => this.#fail(error),
    });
    return this.#result.promise;
  }

  #began(head: PartHead): void {
    this.#head = head;
    this.#field = [];
    this.#fieldBytes = 0;
    if (head.name !== this.#reading.fileField) return;
    if (this.#file) throw new FormError(`The field \`${head.name}\` comes twice; send one file.`);
    this.#file = head;
    this.#do(async () => {
      this.#taker = await this.#reading.open(head);
    });
  }

  #data(bytes: Buffer): void {
    if (this.#head !== this.#file || !this.#file) {
      this.#fieldBytes += bytes.length;
      this.#allFieldBytes += bytes.length;
      if (this.#fieldBytes > longestField || this.#allFieldBytes > mostFieldBytes) {
        throw new FormError(`The field \`${this.#head?.name}\` of the form is longer than ${longestField} bytes.`);
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
    if (this.#isPaused || this.#waiting < mostWaiting) return;
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

  #ended(): void {
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

  /** What is being written is waited for: whoever gives the file up must not be written to any more. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source.cancel();
    void this.#work.then(() => this.#result.reject(error));
  }
}

function boundaryOf({ headers }: IncomingRequest): string {
  const parameters = parametersOf(headers.get("content-type") ?? "");
  const boundary = parameters.get("boundary");
  if (parameters.get("") !== "multipart/form-data" || boundary === undefined) {
    throw new GatewayError(
      "unsupported_media_type",
      "Send the body as a form, with the header Content-Type: multipart/form-data; boundary=…",
    );
  }
  const coding = headers.get("content-encoding");
  if (coding !== null && coding !== "identity") {
    throw new GatewayError("unsupported_media_type", "Send the form as it is, without the header Content-Encoding.");
  }
  return boundary;
}

function faultOf(error: unknown): unknown {
  if (error instanceof FormError) return invalidRequest(error.message);
  if (!(error instanceof RequestBodyError)) return error;
  return error.fault === "malformed"
    ? invalidRequest(`The body's framing is wrong: ${error.message}`, { detail: "body_malformed", cause: error })
    : invalidRequest("The body ended early.", { detail: "body_incomplete", cause: error });
}
