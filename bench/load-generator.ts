// The load generator, a process of its own: takes jobs as JSON lines on standard input, keeps so many connections busy
// for so long, and answers each job with one line. It ends when its standard input does.
import { createInterface } from "node:readline";
import type { Socket } from "bun";
import { RequestTemplate } from "./load-request.ts";
import { ResponseReader } from "./response-reader.ts";
import { percentile } from "./statistics.ts";

export interface LoadJob {
  port: number;
  /** 127.0.0.1 unless said otherwise. */
  hostname?: string;
  /** `/v1/chat/completions` unless said otherwise. */
  path?: string;
  /** Sent as the bearer token. */
  key: string;
  /** Keys as long as `key`, one a line, `key` the first: requests use them at random. */
  keysFile?: string;
  /** Ids as long as the one in `body`, that one the first: requests ask for them at random. */
  models?: readonly string[];
  /** Whether keys and models are used in turn instead. */
  inOrder?: boolean;
  headers?: Readonly<Record<string, string>>;
  body: string;
  connections: number;
  /** No new request begins after this. */
  windowMs: number;
  /** No new request begins after this many. */
  maxRequests: number;
  /** Events that each answer must have; undefined: any number. 0 for an answer that is not streamed. */
  events: number | undefined;
}

/** A line on standard input. */
export type LoadCommand = { kind: "run" | "hold"; job: LoadJob } | { kind: "release" };

export interface LoadResult {
  requests: number;
  events: number;
  /** Reads that brought an event or several: where it is fewer than events, somebody put chunks together. */
  reads: number;
  /** Completion tokens, as the usage at the end of each answer has them. */
  tokens: number;
  /** Seconds from the first request to the last answer. */
  seconds: number;
  /** Durations of whole answers, in milliseconds. */
  p50Ms: number;
  p99Ms: number;
  /** Time to the first event of a stream, in milliseconds; NaN becomes null in JSON where nothing was streamed. */
  firstEventP50Ms: number | null;
  /** Number of errors by what went wrong. */
  errors: Record<string, number>;
}

interface Connection {
  reader: ResponseReader;
  request: Buffer;
  unsent: Buffer | undefined;
  startedMs: number;
  firstEventMs: number | undefined;
  busy: boolean;
  ended(): void;
}

/** How streams end: chat completions, Messages, and Responses, whose last event has the usage of the whole at its end. */
const endOfStream = /(?:data: \[DONE\]|\{"type":"message_stop"\}|"total_tokens":\d+\}\}\})\n\n$/;
/** Longest wait for answers after the window. */
const graceMs = 15_000;

class LoadRun {
  readonly #job: LoadJob;
  readonly #template: RequestTemplate;
  readonly #latencies: number[] = [];
  readonly #firstEvents: number[] = [];
  readonly #errors: Record<string, number> = {};
  #begun = 0;
  #events = 0;
  #reads = 0;
  #tokens = 0;
  #stopAtMs = 0;
  #lastAnswerMs = 0;

  constructor(job: LoadJob) {
    this.#job = job;
    this.#template = new RequestTemplate(job);
  }

  async run(): Promise<LoadResult> {
    const startedMs = performance.now();
    this.#stopAtMs = startedMs + this.#job.windowMs;
    this.#lastAnswerMs = startedMs;
    await Promise.all(Array.from({ length: this.#job.connections }, () => this.#connection()));
    const latencies = Float64Array.from(this.#latencies).sort();
    return {
      requests: latencies.length,
      events: this.#events,
      reads: this.#reads,
      tokens: this.#tokens,
      seconds: (this.#lastAnswerMs - startedMs) / 1000,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      firstEventP50Ms: percentile(Float64Array.from(this.#firstEvents).sort(), 0.5),
      errors: this.#errors,
    };
  }

  /** Resolves when this connection has done its part, whatever became of it. */
  async #connection(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let socket: Socket<Connection>;
    try {
      socket = await this.#connect(resolve);
    } catch {
      this.#count("cannot connect");
      return;
    }
    const limit = setTimeout(() => {
      this.#count("no answer in time");
      resolve();
      socket.terminate();
    }, this.#job.windowMs + graceMs);
    this.#begin(socket);
    await promise;
    clearTimeout(limit);
    socket.end();
  }

  #connect(ended: () => void): Promise<Socket<Connection>> {
    return Bun.connect<Connection>({
      hostname: this.#job.hostname ?? "127.0.0.1",
      port: this.#job.port,
      data: {
        reader: new ResponseReader(),
        request: this.#template.copy(),
        unsent: undefined,
        startedMs: 0,
        firstEventMs: undefined,
        busy: false,
        ended,
      },
      socket: {
        data: (socket, bytes) => this.#received(socket, bytes),
        drain: (socket) => {
          const { unsent } = socket.data;
          socket.data.unsent = undefined;
          if (unsent) this.#write(socket, unsent);
        },
        close: ({ data }) => this.#closed(data, "connection closed before the answer was complete"),
        error: ({ data }) => this.#closed(data, "connection broken"),
      },
    });
  }

  #begin(socket: Socket<Connection>): void {
    const { data } = socket;
    data.startedMs = performance.now();
    if (this.#begun >= this.#job.maxRequests || data.startedMs >= this.#stopAtMs) {
      data.ended();
      return;
    }
    this.#begun++;
    data.busy = true;
    data.firstEventMs = undefined;
    this.#template.fill(data.request, this.#job.inOrder === true);
    this.#write(socket, data.request);
  }

  #write(socket: Socket<Connection>, bytes: Buffer): void {
    const sent = socket.write(bytes);
    if (sent < bytes.length) socket.data.unsent = bytes.subarray(Math.max(sent, 0));
  }

  #received(socket: Socket<Connection>, bytes: Buffer): void {
    const { data } = socket;
    const { reader } = data;
    try {
      const eventsBefore = reader.eventsInAll;
      const complete = reader.push(bytes);
      if (reader.eventsInAll > eventsBefore) this.#reads++;
      if (data.firstEventMs === undefined && reader.events > 0) data.firstEventMs = performance.now();
      if (!complete) return;
    } catch (error) {
      this.#closed(data, error instanceof Error ? error.message : String(error));
      return;
    }
    data.busy = false;
    this.#lastAnswerMs = performance.now();
    const fault = this.#faultOf(reader);
    if (fault === undefined) {
      this.#latencies.push(this.#lastAnswerMs - data.startedMs);
      if (data.firstEventMs !== undefined) this.#firstEvents.push(data.firstEventMs - data.startedMs);
      this.#events += reader.events;
      this.#tokens += Number(/"completion_tokens": *(\d+)/.exec(reader.tail)?.[1] ?? 0);
    } else {
      this.#count(fault);
    }
    this.#begin(socket);
  }

  #faultOf(reader: ResponseReader): string | undefined {
    const { events } = this.#job;
    if (reader.status !== 200) return `status ${reader.status}`;
    if (events === 0) return reader.tail.endsWith("}") ? undefined : "an answer that ends in the middle";
    if (!endOfStream.test(reader.tail)) return "a stream without its end";
    return events === undefined || reader.events === events ? undefined : `${reader.events} events for ${events}`;
  }

  #closed(data: Connection, reason: string): void {
    if (data.busy) this.#count(reason);
    data.busy = false;
    data.ended();
  }

  #count(error: string): void {
    this.#errors[error] = (this.#errors[error] ?? 0) + 1;
  }
}

/** Streams that stay open and silent, until they are released. */
class HeldStreams {
  readonly #sockets: Socket<undefined>[] = [];

  /** Number of requests that got a first byte of an event. */
  async open(job: LoadJob): Promise<number> {
    const request = new RequestTemplate(job).copy();
    let next = 0;
    let begun = 0;
    const one = async () => {
      while (next++ < job.connections) if (await this.#one(job, request)) begun++;
    };
    // All at once would overflow the listener's queue.
    await Promise.all(Array.from({ length: 32 }, one));
    return begun;
  }

  release(): void {
    for (const socket of this.#sockets.splice(0)) socket.terminate();
  }

  async #one(job: LoadJob, request: Buffer): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const limit = setTimeout(() => resolve(false), graceMs);
    try {
      const socket = await Bun.connect<undefined>({
        hostname: job.hostname ?? "127.0.0.1",
        port: job.port,
        data: undefined,
        socket: {
          data: (_, bytes) => {
            if (bytes.includes("data: {")) resolve(true);
          },
          close: () => resolve(false),
          error: () => resolve(false),
        },
      });
      this.#sockets.push(socket);
      socket.write(request);
      return await promise;
    } catch {
      return false;
    } finally {
      clearTimeout(limit);
    }
  }
}

const held = new HeldStreams();

async function obey(command: LoadCommand): Promise<LoadResult | number | null> {
  if (command.kind === "run") return new LoadRun(command.job).run();
  if (command.kind === "hold") return held.open(command.job);
  held.release();
  return null;
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await obey(JSON.parse(line) as LoadCommand))}\n`);
}
process.exit(0);
