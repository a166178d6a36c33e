// The request that a load job sends again and again, with the parts that change from one to the next.
import { readFileSync } from "node:fs";
import type { LoadJob } from "./load-generator.ts";

/** A place in the request, and the values of equal length that take turns there. */
interface Slot {
  at: number;
  values: readonly Buffer[];
}

export class RequestTemplate {
  readonly #text: Buffer;
  readonly #slots: readonly Slot[];
  #turn = 0;

  constructor(job: LoadJob) {
    const { hostname = "127.0.0.1", port, path = "/v1/chat/completions" } = job;
    const extra = Object.entries(job.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#text = Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${job.key}\r\n` +
        `content-type: application/json\r\naccept: */*\r\nuser-agent: headrace-bench\r\n${extra.join("")}` +
        `content-length: ${Buffer.byteLength(job.body)}\r\n\r\n${job.body}`,
    );
    const lists = [job.keysFile === undefined ? [] : readFileSync(job.keysFile, "utf8").split("\n"), job.models ?? []];
    this.#slots = lists.filter((values) => values.length > 0).map((values) => this.#slot(values));
  }

  /** The bytes of one connection's requests, which are its own. */
  copy(): Buffer {
    return this.#slots.length === 0 ? this.#text : Buffer.from(this.#text);
  }

  /** Gives the next request of a connection its values: at random, or, where `inOrder`, each once in turn. */
  fill(request: Buffer, inOrder: boolean): void {
    const turn = this.#turn++;
    for (const { at, values } of this.#slots) {
      const index = inOrder ? turn % values.length : Math.floor(Math.random() * values.length);
      values[index]?.copy(request, at);
    }
  }

  /** The place in the request that has one of the values already: the others take its place. */
  #slot(values: readonly string[]): Slot {
    const first = values[0] ?? "";
    if (values.some((value) => value.length !== first.length)) throw new Error("The values are of different lengths.");
    const at = this.#text.indexOf(first);
    if (at < 0) throw new Error("The request has none of the values.");
    return { at, values: values.map((value) => Buffer.from(value)) };
  }
}
