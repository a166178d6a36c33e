// A client of the built-in engine, a process of its own: takes jobs as JSON lines on standard input, holds so many
// streamed chats at once, each one after the other, and answers each job with one line.
import { createInterface } from "node:readline";
import type { Socket } from "bun";
import { type EngineJob, type EngineTarget, type EngineWindow, lengthOf } from "./built-in-engine-job.ts";
import { ResponseReader } from "./response-reader.ts";
import { percentile } from "./statistics.ts";

/** The opening event has only the role; the first text follows. */
const eventsBeforeText = 1;
const answerLimitMs = 30_000;

interface Answer {
  tokens: number;
  promptTokens: number;
  firstTokenMs: number;
}

class Connection {
  readonly #reader = new ResponseReader();
  readonly #socket: Socket;
  #unsent: Buffer | undefined;
  #sentMs = 0;
  #firstTokenMs: number | undefined;
  #settle: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async open(address: EngineTarget["address"]): Promise<Connection> {
    let connection: Connection | undefined;
    const closed = () => connection?.fail("connection closed before the answer was complete");
    const handlers: Bun.SocketHandler<undefined> = {
      data: (_, bytes) => connection?.received(bytes),
      drain: () => connection?.flush(),
      close: closed,
      error: closed,
    };
    const socket = await ("unix" in address
      ? Bun.connect({ ...address, socket: handlers })
      : Bun.connect({ ...address, socket: handlers }));
    connection = new Connection(socket);
    return connection;
  }

  chat(request: Buffer): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#settle = { resolve, reject };
    this.#firstTokenMs = undefined;
    // Those of the answer before, until the head of this one has come.
    this.#reader.events = 0;
    this.#sentMs = performance.now();
    this.#unsent = request;
    this.flush();
    return promise;
  }

  close(): void {
    this.#settle = undefined;
    this.#socket.end();
  }

  flush(): void {
    if (this.#unsent === undefined) return;
    const sent = Math.max(0, this.#socket.write(this.#unsent));
    this.#unsent = sent < this.#unsent.length ? this.#unsent.subarray(sent) : undefined;
  }

  received(bytes: Buffer): void {
    const reader = this.#reader;
    let complete = false;
    try {
      complete = reader.push(bytes);
    } catch (error) {
      this.fail(String(error));
      return;
    }
    if (this.#firstTokenMs === undefined && reader.events > eventsBeforeText)
      this.#firstTokenMs = performance.now() - this.#sentMs;
    if (!complete) return;
    const usage = /"usage":\{"prompt_tokens": *(\d+), *"completion_tokens": *(\d+)/.exec(reader.tail);
    if (reader.status !== 200) this.fail(`status ${reader.status}`);
    else if (usage === null || !reader.tail.endsWith("data: [DONE]\n\n")) this.fail("a stream without its end");
    else {
      this.#settle?.resolve({
        promptTokens: Number(usage[1]),
        tokens: Number(usage[2]),
        firstTokenMs: this.#firstTokenMs ?? Number.NaN,
      });
    }
  }

  fail(reason: string): void {
    this.#settle?.reject(new Error(reason));
  }
}

function requestOf(job: EngineJob, { path, key }: EngineTarget, seed: number): Buffer {
  const body = JSON.stringify({
    model: job.model,
    messages: [{ role: "user", content: job.prompt }],
    max_tokens: lengthOf(job, seed),
    logit_bias: { [job.onlyToken]: 100 },
    seed,
    stream: true,
    stream_options: { include_usage: true },
  });
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

async function run(job: EngineJob): Promise<EngineWindow> {
  const { target } = job;
  if (target === undefined) throw new Error("A job for a client must name its target.");
  const answers: Answer[] = [];
  const errors: Record<string, number> = {};
  const connections = await Promise.all(Array.from({ length: job.chats }, () => Connection.open(target.address)));
  const startedMs = performance.now();
  await Promise.all(
    connections.map(async (connection, chat) => {
      const limit = setTimeout(() => connection.fail("no answer in time"), answerLimitMs);
      try {
        for (let turn = 0; turn < job.turns; turn++) {
          answers.push(await connection.chat(requestOf(job, target, chat * job.turns + turn)));
        }
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        errors[reason] = (errors[reason] ?? 0) + 1;
      }
      clearTimeout(limit);
    }),
  );
  const seconds = (performance.now() - startedMs) / 1000;
  for (const connection of connections) connection.close();
  return {
    tokens: answers.reduce((sum, { tokens }) => sum + tokens, 0),
    promptTokens: answers[0]?.promptTokens ?? 0,
    seconds,
    firstTokenMs: percentile(Float64Array.from(answers, ({ firstTokenMs }) => firstTokenMs).sort(), 0.5),
    errors,
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line) as EngineJob))}\n`);
}
process.exit(0);
