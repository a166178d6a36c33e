// Starts a real worker process for tests, on a socket in a temporary directory.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { selfCommand } from "../../../src/installation/paths.ts";
import { withMetadata } from "./gguf-variant.ts";

export const demoModel = fileURLToPath(new URL("../../../models/tiny-demo/tiny-demo.gguf", import.meta.url));

export interface Completion {
  id: string;
  object: string;
  choices: {
    index: number;
    text?: string;
    message: { content: string | null; reasoning_content?: string; tool_calls?: ToolCall[] };
    finish_reason: string;
  }[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

export interface ToolCall {
  index?: number;
  id: string;
  type: string;
  function: { name: string; arguments: string };
}

export interface Chunk {
  id: string;
  object: string;
  choices: {
    index: number;
    text?: string;
    delta: { role?: string; content?: string; reasoning_content?: string; tool_calls?: ToolCall[] };
    finish_reason: string | null;
  }[];
  usage?: Completion["usage"] | null;
  error?: { message: string; type: string; code: string };
}

export interface Health {
  sequences: { total: number; busy: number; free: number; waiting: number };
  generated_tokens: number;
}

/** A directory that is removed by `dispose`, for sockets and model variants. */
export function temporaryDirectory(): { path: string; dispose: () => void } {
  const path = mkdtempSync(join(tmpdir(), "llama-worker-"));
  // A worker takes the directory of its socket with it when that is empty.
  writeFileSync(join(path, "keep"), "");
  return { path, dispose: () => rmSync(path, { recursive: true, force: true }) };
}

/** The demo model with other metadata, e.g. another chat template. */
export async function writeVariant(directory: string, name: string, values: Record<string, string>): Promise<string> {
  const path = join(directory, name);
  writeFileSync(path, withMetadata(await Bun.file(demoModel).bytes(), values));
  return path;
}

/** The first line on standard output, as an object; empty when the process ends without one. */
export async function firstLine(output: ReadableStream<Uint8Array>): Promise<Record<string, unknown>> {
  const reader = output.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    text += done ? "" : decoder.decode(value, { stream: true });
    if (done || text.includes("\n")) break;
  }
  reader.releaseLock();
  return JSON.parse(text.split("\n")[0] || "{}");
}

export function spawnWorker(settings: Record<string, unknown>) {
  return Bun.spawn([...selfCommand("run-model"), JSON.stringify(settings)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
}

export class WorkerProcess {
  readonly ready: Record<string, unknown>;
  readonly #socket: string;
  readonly #child: ReturnType<typeof spawnWorker>;

  private constructor(child: ReturnType<typeof spawnWorker>, socket: string, ready: Record<string, unknown>) {
    this.#child = child;
    this.#socket = socket;
    this.ready = ready;
  }

  /** Rejects with what the worker said when it does not become ready. */
  static async start(directory: string, settings: Record<string, unknown> = {}): Promise<WorkerProcess> {
    const socket = join(directory, `${crypto.randomUUID()}.sock`);
    const child = spawnWorker({ socket, modelPath: demoModel, modelId: "tiny", ...settings });
    const ready = await firstLine(child.stdout);
    if (ready["ready"] !== true) throw new Error(`the worker did not start: ${JSON.stringify(ready)}`);
    return new WorkerProcess(child, socket, ready);
  }

  async stop(): Promise<number> {
    this.#child.stdin.end();
    return await this.#child.exited;
  }

  post(path: string, body: unknown, init: { signal?: AbortSignal } = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return fetch(`http://worker${path}`, { method: "POST", body: text, unix: this.#socket, ...init });
  }

  async get<Body>(path: string): Promise<Body> {
    const response = await fetch(`http://worker${path}`, { unix: this.#socket });
    return (await response.json()) as Body;
  }

  /** Rejects when the status is not 200. */
  async complete(path: string, body: Record<string, unknown>): Promise<Completion> {
    const response = await this.post(path, body);
    const answer = await response.json();
    if (response.status !== 200) throw new Error(JSON.stringify(answer));
    return answer as Completion;
  }

  /** At temperature 0 unless the options say otherwise. */
  chat(question: string, options: Record<string, unknown> = {}): Promise<Completion> {
    return this.complete("/chat/completions", {
      messages: [{ role: "user", content: question }],
      temperature: 0,
      ...options,
    });
  }

  /** The message of the error that a request is refused with; rejects when it is not a 400 in the right shape. */
  async refusal(path: string, body: unknown): Promise<string> {
    const response = await this.post(path, body);
    const answer = (await response.json()) as { error?: Record<string, unknown> };
    const { message, type, param, code, ...rest } = answer.error ?? {};
    const isCode = code === "invalid_request" || code === "context_length_exceeded";
    const isShaped = type === "invalid_request_error" && isCode && (param === undefined || typeof param === "string");
    if (response.status !== 400 || typeof message !== "string" || !isShaped || Object.keys(rest).length > 0) {
      throw new Error(`not a 400 of the right shape: ${response.status} ${JSON.stringify(answer)}`);
    }
    return message;
  }

  chatRefusal(options: Record<string, unknown>): Promise<string> {
    return this.refusal("/chat/completions", { messages: [{ role: "user", content: "Hi" }], ...options });
  }
}

/** The events of a stream, up to its end; `done`: whether it ended with [DONE]. */
export async function readEvents(response: Response): Promise<{ chunks: Chunk[]; done: boolean }> {
  const lines = (await response.text()).split("\n\n").filter((line) => line !== "");
  const data = lines.map((line) => line.slice("data: ".length));
  const done = data.at(-1) === "[DONE]";
  return { chunks: (done ? data.slice(0, -1) : data).map((line) => JSON.parse(line) as Chunk), done };
}

/** Waits for a condition, not for luck: rejects after the deadline. */
export async function until(condition: () => Promise<boolean>, deadlineMs = 5000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error("the condition did not come true in time");
    await Bun.sleep(5);
  }
}
