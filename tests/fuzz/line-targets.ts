// The lines of batches, as they come in pieces from a store.
import { GatewayError } from "../../src/base/errors.ts";
import { linesOf, readFrame, requestOf } from "../../src/batches/input-lines.ts";
import type { Target } from "./targets.ts";

const limits = { bodyBytes: 4_096, depth: 16, messages: 16 };
const endpoint = "/v1/chat/completions";

async function readLines(pieces: readonly Buffer[]): Promise<unknown> {
  async function* given() {
    yield* pieces;
  }
  const lines: unknown[] = [];
  for await (const { line, start, end, bytes } of linesOf(given(), limits)) {
    try {
      const frame = readFrame(bytes, endpoint, limits);
      lines.push([line, start, end, frame.customId, requestOf(frame, endpoint, limits).model]);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      lines.push([line, start, end, error.code, error.param]);
    }
  }
  return lines;
}

const line = (more = "") =>
  `{"custom_id":"a","method":"POST","url":"${endpoint}","body":{"model":"m","messages":[{"role":"user","content":"Hi"}]${more}}}`;

export const lineTargets: readonly Target[] = [
  {
    name: "batch-lines",
    files: ["src/batches/input-lines.ts"],
    seeds: [`${line()}\n\n ${line(',"stream":true')}\r\n{`, `${line(',"temperature":"x"')}\n[]\n"x"`],
    read: readLines,
  },
];
