// Stores the bytes of one form. A small form is kept in memory, a larger one in a file.
import type { FileHandle } from "node:fs/promises";
import type { BodySource } from "../base/bytes/body-source.ts";
import { freeBytes } from "../base/bytes/free-bytes.ts";
import { isDiskFull } from "../base/disk-full.ts";
import { GatewayError } from "../base/errors.ts";
import { type Segment, SpoolSource } from "./spool-source.ts";
import type { SpoolSpace } from "./spool-space.ts";

export interface SpoolOptions {
  space: SpoolSpace;
  accountId: string;
  /** Maximum bytes of a form that is kept in memory. */
  memoryBytes: number;
  /** Counts bytes of memory. A negative number subtracts them. Returns an error if a limit is exceeded. */
  hold(bytes: number): GatewayError | undefined;
}

/** If more than this many bytes wait to be written to the file, the sender must pause. */
const behindBytes = 1024 * 1024;
/** Minimum and maximum bytes of the blocks in which small pieces are collected. */
const [minBlockBytes, mostBlockBytes] = [4 * 1024, 64 * 1024];
/** Bytes of disk space that are reserved at a time, if the size of the form is unknown. */
const roomBytes = 16 * 1024 * 1024;

export class SpooledBytes {
  /** Called when `isBehind` has become false, and when storing the form has failed. */
  onRoom: (() => void) | undefined;
  length = 0;
  /** The reason why the form could not be stored. Undefined if storing has not failed. */
  fault: GatewayError | undefined;
  readonly #options: SpoolOptions;
  /** Pieces in memory. They are the whole form if it is small, or otherwise the pieces that are not in the file yet. */
  #pieces: Buffer[] = [];
  /** The block to which bytes are being added. `#blockBytes` is the number of its bytes in use. */
  #block: Buffer | undefined;
  #blockBytes = 0;
  #reservedBytes = 0;
  #room = 0;
  #isSpooled = false;
  #file: FileHandle | undefined;
  #writtenBytes = 0;
  #writing: Promise<void> | undefined;
  #isReleased = false;
  /** Number of reads that are running. The file is only closed when there are none. */
  #readers = 0;

  /** Throws if `declaredBytes` exceed the disk space that is left. */
  constructor(options: SpoolOptions, declaredBytes: number | undefined) {
    this.#options = options;
    if (declaredBytes !== undefined && declaredBytes > options.memoryBytes) {
      this.#isSpooled = true;
      this.#takeRoom(declaredBytes);
    }
    if (this.fault) throw this.fault;
  }

  get isBehind(): boolean {
    return this.#isSpooled && this.#reservedBytes > behindBytes;
  }

  /** Adds a copy of the bytes. If storing it fails, sets `fault`. */
  append(bytes: Uint8Array): void {
    if (this.fault || this.#isReleased) return;
    const refusal = this.#options.hold(bytes.byteLength);
    if (refusal) {
      this.#failed(refusal);
      return;
    }
    this.#reservedBytes += bytes.byteLength;
    this.length += bytes.byteLength;
    this.#keep(bytes);
    if (!this.#isSpooled && this.length <= this.#options.memoryBytes) return;
    this.#isSpooled = true;
    if (this.length > this.#room) this.#takeRoom(Math.max(roomBytes, this.length - this.#room));
    if (!this.fault) this.#writing ??= this.#write();
  }

  /** Resolves when the whole form is stored. Rejects with `fault` if storing has failed. */
  async whole(): Promise<void> {
    await this.#writing;
    if (this.fault) throw this.fault;
    // Disk space that was reserved but is not needed is returned.
    if (this.#isSpooled) this.#giveRoom(this.#room - this.length);
  }

  /** Returns a source for the bytes of the segments, in order. */
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

  /** Frees the memory and deletes the file. May be called several times. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (!this.#writing) this.#drop();
    this.#close();
  }

  /**
   * Copies bytes into blocks. If a client sends single bytes, an object for each would use far more memory than is
   * counted.
   */
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
        // The whole block is freed, because the piece may be only a part of it.
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
    this.#reservedBytes -= bytes;
    this.#options.hold(-bytes);
  }

  /** Frees the pieces in memory. */
  #drop(): void {
    this.#pieces = [];
    this.#block = undefined;
    if (this.#reservedBytes > 0) this.#giveBack(this.#reservedBytes);
  }

  #close(): void {
    if (!this.#isReleased || this.#writing || this.#readers > 0) return;
    this.#giveRoom(this.#room);
    const file = this.#file;
    this.#file = undefined;
    // An error is ignored: the file has no name, so no file remains.
    file?.close().catch(() => {});
  }
}

function notWritten(error: unknown): GatewayError {
  const detail = `spool of forms: ${error instanceof Error ? error.message : String(error)}`;
  if (isDiskFull(error)) {
    const message = "The server's disk is full, so it cannot take this form. Its operator must make room first.";
    // The client is told not to retry, because its SDK would send the whole form again.
    return new GatewayError("service_unavailable", message, { detail, shouldRetry: false, cause: error });
  }
  const message = "The server cannot write what it was sent to its disk. Retry later, or tell its operator.";
  return new GatewayError("service_unavailable", message, { detail, retryAfterSeconds: 30, cause: error });
}
