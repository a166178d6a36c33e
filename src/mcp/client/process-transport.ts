// Transport to a local MCP server process, through its standard input and output. A guard process runs it.
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type JSONRPCMessage, serializeMessage, type Transport } from "@modelcontextprotocol/client";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { GatewayError } from "../../base/errors.ts";
import { howItEnded } from "../../processes/guard.ts";
import { GuardedProcess } from "../../processes/guarded-process.ts";
import { markOf } from "../../processes/orphans.ts";
import type { Output } from "../../processes/output.ts";
import { MessageLines } from "./message-lines.ts";
import { maxLines, slicesOf } from "./paced-stream.ts";
import type { Line } from "./transport.ts";

export interface ProcessTransportOptions {
  readonly server: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string | null;
  /** Environment variables of the gateway. Only `PATH` and `LANG` are passed on. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly dataDir: string;
  /** Directory in which the process gets its own subdirectory. */
  readonly room: string;
  readonly maxLineBytes: number;
  /** Receives the standard error of the process. */
  readonly output: Output;
  /** Called when the process has ended and its directory is deleted. */
  readonly onGone: () => void;
  readonly stopMs?: number | undefined;
}

const defaultStopMs = 5_000;
/** Maximum bytes of input that the process has not read. */
const maxUnread = 8 * 1024 * 1024;

export class ProcessTransport implements Line, Transport {
  onclose: Transport["onclose"];
  onerror: Transport["onerror"];
  onmessage: Transport["onmessage"];
  /**
   * The SDK's client treats a transport with a member `stderr` as a local process: if a process ignores the probe, the
   * client uses an earlier protocol revision.
   */
  readonly stderr = null;
  readonly #options: ProcessTransportOptions;
  readonly #lines: MessageLines;
  #home = "";
  #process: GuardedProcess | undefined;
  #fault: GatewayError | undefined;
  #isClosed = false;
  #isGone = false;
  #endedItself = false;
  #unread = 0;
  /** Set while reading is paused; settles when it resumes. */
  #paused: PromiseWithResolvers<void> | undefined;

  constructor(options: ProcessTransportOptions) {
    this.#options = options;
    this.#lines = new MessageLines(options.maxLineBytes, {
      take: (message) => {
        if (!this.#isClosed) this.onmessage?.(message);
      },
      refuse: (what, detail) => this.#failed(what, detail),
    });
  }

  get transport(): Transport {
    return this;
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** True if the process ended on its own. */
  get endedItself(): boolean {
    return this.#endedItself;
  }

  fault(): GatewayError | undefined {
    return this.#fault;
  }

  async start(): Promise<void> {
    const { server, room, command, env, directory, environment, dataDir, stopMs = defaultStopMs } = this.#options;
    const common = Object.entries({ PATH: environment["PATH"], LANG: environment["LANG"] });
    const kept = Object.fromEntries(common.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
    const mark = markOf(dataDir, crypto.randomUUID());
    try {
      mkdirSync(room, { recursive: true });
      chmodSync(room, 0o700);
      this.#home = mkdtempSync(join(room, `${server}-`));
      const all = { ...kept, HOME: this.#home, ...env };
      const workingDirectory = directory ?? this.#home;
      this.#process = new GuardedProcess({ command, directory: workingDirectory, env: all, mark, stopMs, talks: true });
    } catch (error) {
      this.#processGone();
      throw this.#failed("could not be started", error instanceof Error ? error.message : String(error));
    }
    void this.#options.output.read(this.#process.stderr);
    void this.#read(this.#process.stdout).catch((error) => this.#failed("could not be read", String(error)));
    void this.#process.gone.then((code) => {
      this.#endedItself = !this.#isClosed;
      this.#failed("has ended", howItEnded(code));
      this.#processGone();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const text = serializeMessage(message);
    if (!this.#process || this.#isClosed) throw this.#fault ?? this.#failed("is not there", "closed");
    const length = Buffer.byteLength(text);
    if (this.#unread + length > maxUnread) {
      throw this.#failed("does not read what it is sent", `${this.#unread} bytes were not read`);
    }
    this.#unread += length;
    this.#lines.sent(message);
    bufferedBytes.bounded.take("unsent", length);
    try {
      await this.#process.write(text);
    } catch (error) {
      throw this.#failed("has ended", error instanceof Error ? error.message : String(error));
    } finally {
      this.#unread -= length;
      bufferedBytes.bounded.release("unsent", length);
    }
  }

  async close(): Promise<void> {
    this.#shut();
    if (this.#process) await this.#process.stop();
    else this.#processGone();
  }

  /** Pauses reading while the receiver cannot keep up. */
  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
  }

  async #read(stdout: ReadableStream<Uint8Array>): Promise<void> {
    const lines = this.#lines;
    let read = 0;
    try {
      for await (const bytes of stdout) {
        for (const slice of slicesOf(bytes)) {
          if (!lines.push(slice.bytes) || this.#isClosed) return;
          await this.#paused?.promise;
          read += slice.lines;
          if (read < maxLines) continue;
          // Let other work run, because a process may write faster than its messages are handled.
          await new Promise(setImmediate);
          read = 0;
        }
      }
    } finally {
      lines.end();
    }
  }

  /** Stores the first error and stops the process. */
  #failed(what: string, detail: string): GatewayError {
    const { server, output } = this.#options;
    const message = `The process of the MCP server "${server}" ${what}.`;
    const said = output.last;
    const full = said === undefined ? detail : `${detail}; it wrote: ${said}`;
    this.#fault ??= new GatewayError("upstream_error", message, { detail: full });
    this.#shut();
    void this.#process?.stop();
    return this.#fault;
  }

  #shut(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.resume();
    this.onclose?.();
  }

  #processGone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    if (this.#home !== "") rmSync(this.#home, { recursive: true, force: true });
    this.#options.onGone();
  }
}
