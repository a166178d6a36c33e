// Forms with files in them, and the lines of batches, as both come in pieces from a socket and from a store.
import { GatewayError } from "../../src/base/errors.ts";
import { linesOf, readFrame, requestOf } from "../../src/http/api/batches/input-lines.ts";
import { FormError, MultipartParser, type PartHead } from "../../src/http/forms/multipart-parser.ts";
import type { Target } from "./targets.ts";

interface Part extends PartHead {
  text: string;
  isWhole: boolean;
}

function readForm(pieces: readonly Buffer[]): unknown {
  const parts: Part[] = [];
  const parser = new MultipartParser("b", {
    partBegan: (head) => parts.push({ ...head, text: "", isWhole: false }),
    partData(bytes) {
      const part = parts.at(-1);
      if (part) part.text += bytes.toString("latin1");
    },
    partEnded() {
      const part = parts.at(-1);
      if (part) part.isWhole = true;
    },
  });
  try {
    for (const piece of pieces) parser.push(piece);
    parser.end();
  } catch (error) {
    if (!(error instanceof FormError)) throw error;
    // Where it is cut says how much of the part that is wrong was told.
    return { parts: parts.filter(({ isWhole }) => isWhole), refused: true };
  }
  return { parts, refused: false };
}

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

const file = 'Content-Disposition: form-data; name="file"; filename="a\\"b.jsonl"\r\nContent-Type: text/plain\r\n\r\n';
const field = "Content-Disposition: form-data; name=purpose\r\n\r\n";
const line = (more = "") =>
  `{"custom_id":"a","method":"POST","url":"${endpoint}","body":{"model":"m","messages":[{"role":"user","content":"Hi"}]${more}}}`;

export const formTargets: readonly Target[] = [
  {
    name: "forms",
    files: ["src/http/forms/multipart-parser.ts"],
    seeds: [
      `--b\r\n${file}{}\r\n--\r\n-\r\n--b \r\n${field}batch\r\n--b--\r\n`,
      `preamble\r\n--b\r\n${field}\r\n--b--`,
      `--b\r\n\r\n\r\n--b--`,
      `--b--`,
    ],
    read: readForm,
  },
  {
    name: "batch-lines",
    files: ["src/http/api/batches/input-lines.ts"],
    seeds: [`${line()}\n\n ${line(',"stream":true')}\r\n{`, `${line(',"temperature":"x"')}\n[]\n"x"`],
    read: readLines,
  },
];
