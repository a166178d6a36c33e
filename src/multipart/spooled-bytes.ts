// The bytes of one form: in memory while they are few, else in a file.
import type { FileHandle } from "node:fs/promises";
import type { BodySource } from "../base/bytes/body-source.ts";
import { freeBytes } from "../base/bytes/free-bytes.ts";
import { GatewayError } from "../base/errors.ts";
import { type Segment, SpoolSource } from "./spool-source.ts";
import type { SpoolSpace } from "./spool-space.ts";

export interface SpoolOptions {
  space: SpoolSpace;
  accountId: string;
  /** Up to so many bytes stay in memory. */
  memoryBytes: number;
  /** Counts bytes in memory, or gives the refusal; fewer than none are given back. */
  hold(bytes: number): GatewayError | undefined;
}

/** Bytes that wait to be written: with more than that the sender is to pause. */
const behindBytes = 1024 * 1024;
/** Small pieces are gathered in blocks: the least and the most of one. */
const [minBlockBytes, mostBlockBytes] = [4 * 1024, 64 * 1024];
/** By so many bytes a form of no declared length takes room on the disk. */
const roomBytes = 16 * 1024 * 1024;

export class SpooledBytes {
  /** Called where there is room again after `isBehind`, and where writing failed. */
  onRoom: (() => void) | undefined;
  length = 0;
  /** Why it could not be kept. */
  fault: GatewayError | undefined;
  readonly #options: SpoolOptions;
  /** In memory for good, or on their way to the file. */
  #pieces: Buffer[] = [];
  /** The last of them, which has room for more, and how much of it is filled. */
  #block: Buffer | undefined;
  #blockBytes = 0;
  #heldBytes = 0;
  #room = 0;
  #isSpooled = false;
  #file: FileHandle | undefined;
  #writtenBytes = 0;
  #writing: Promise<void> | undefined;
  #isReleased = false;
  /** Those who read the file now: it is closed behind the last of them. */
  #readers = 0;

  /** `declaredBytes`: of all of it, where that is known. Throws the refusal where there is no room for so many. */
  constructor(options: SpoolOptions, declaredBytes: number | undefined) {
    this.#options = options;
    if (declaredBytes !== undefined && declaredBytes > options.memoryBytes) {
      this.#isSpooled = true;
      this.#takeRoom(declaredBytes);
    }
    if (this.fault) throw this.fault;
  }

  get isBehind(): boolean {
    return this.#isSpooled && this.#heldBytes > behindBytes;
  }

  /** Copies them. Where that cannot be, `fault` says why. */
  append(bytes: Uint8Array): void {
    if (this.fault || this.#isReleased) return;
    const refusal = this.#options.hold(bytes.byteLength);
    if (refusal) {
      this.#failed(refusal);
      return;
    }
    this.#heldBytes += bytes.byteLength;
    this.length += bytes.byteLength;
    this.#keep(bytes);
    if (!this.#isSpooled && this.length <= this.#options.memoryBytes) return;
    this.#isSpooled = true;
    if (this.length > this.#room) this.#takeRoom(Math.max(roomBytes, this.length - this.#room));
    if (!this.fault) this.#writing ??= this.#write();
  }

  /** Resolves when all of it is kept. Rejects with `fault`. */
  async whole(): Promise<void> {
    await this.#writing;
    if (this.fault) throw this.fault;
    // What a form takes less than it was given room for.
    if (this.#isSpooled) this.#giveRoom(this.#room - this.length);
  }

  /** The bytes of these segments, one behind the other. */
  source(segments: readonly Segment[]): BodySource {
    this.#closeBlock();
    const pieces = this.#isSpooled ? undefined : Buffer.concat(this.#pieces);
    return new SpoolSource(segments, {
      hold: this.#options.hold,
      read: async (buffer, at) => {
        if (pieces) return pieces.copy(buffer, 0, at);
        return await this.#read(buffer, at);
      },
    });
  }

  /** Nobody needs it any more. May be called again. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (!this.#writing) this.#drop();
    this.#close();
  }

  /** A sender may cut what it sends into single bytes: an object for each would be much more than what is counted. */
  #keep(bytes: Uint8Array): void {
    if (!this.#block || this.#blockBytes + bytes.byteLength > this.#block.length) {
      this.#closeBlock();
      const wanted = Math.min(Math.max(minBlockBytes, this.length), mostBlockBytes);
      this.#block = Buffer.allocUnsafeSlow(Math.max(wanted, bytes.byteLength));
    }
    this.#block.set(bytes, this.#blockBytes);
    this.#blockBytes += bytes.byteLength;
  }

  #closeBlock(): void {
    if (this.#block) this.#pieces.push(this.#block.subarray(0, this.#blockBytes));
    this.#block = undefined;
    this.#blockBytes = 0;
  }

  #nextPiece(): Buffer | undefined {
    if (this.#pieces.length === 0) this.#closeBlock();
    return this.#pieces.shift();
  }

  async #read(buffer: Buffer, at: number): Promise<number> {
    const file = this.#file;
    if (!file || this.#isReleased) throw new Error("the form was released");
    this.#readers++;
    try {
      return (await file.read(buffer, 0, buffer.length, at)).bytesRead;
    } finally {
      this.#readers--;
      this.#close();
    }
  }

  async #write(): Promise<void> {
    try {
      this.#file ??= await this.#options.space.file();
      for (let piece = this.#nextPiece(); piece && !this.#isReleased; piece = this.#nextPiece()) {
        await this.#writePiece(this.#file, piece);
        const { length } = piece;
        // All of its block, of which it may be a part.
        freeBytes(Buffer.from(piece.buffer));
        this.#giveBack(length);
        if (!this.isBehind) this.onRoom?.();
      }
    } catch (error) {
      this.#failed(notWritten(error));
    } finally {
      this.#writing = undefined;
      if (this.#isReleased || this.fault) this.#drop();
      this.#close();
    }
  }

  async #writePiece(file: FileHandle, piece: Buffer): Promise<void> {
    for (let from = 0; from < piece.length; ) {
      const { bytesWritten } = await file.write(piece, from, piece.length - from, this.#writtenBytes);
      from += bytesWritten;
      this.#writtenBytes += bytesWritten;
    }
  }

  #failed(fault: GatewayError): void {
    this.fault ??= fault;
    this.onRoom?.();
  }

  #takeRoom(bytes: number): void {
    const { space, accountId } = this.#options;
    const refusal = space.take(accountId, bytes);
    if (refusal) this.#failed(refusal);
    else this.#room += bytes;
  }

  #giveRoom(bytes: number): void {
    if (bytes <= 0) return;
    this.#options.space.release(this.#options.accountId, bytes);
    this.#room -= bytes;
  }

  #giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#options.hold(-bytes);
  }

  /** What is in memory. */
  #drop(): void {
    this.#pieces = [];
    this.#block = undefined;
    if (this.#heldBytes > 0) this.#giveBack(this.#heldBytes);
  }

  #close(): void {
    if (!this.#isReleased || this.#writing || this.#readers > 0) return;
    this.#giveRoom(this.#room);
    const file = this.#file;
    this.#file = undefined;
    // It has no name: whatever comes of this, nothing is left.
    file?.close().catch(() => {});
  }
}

function notWritten(error: unknown): GatewayError {
  const code = (error as { code?: unknown } | null)?.code;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const message = isFull ? "The server's disk is full." : "The server cannot write what it was sent to its disk.";
  return new GatewayError("service_unavailable", `${message} Retry later, or tell its operator.`, {
    detail: `spool of forms: ${error instanceof Error ? error.message : String(error)}`,
    retryAfterSeconds: 30,
    cause: error,
  });
}
