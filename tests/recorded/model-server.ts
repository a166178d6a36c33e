// The model server of the recording: each format at its path, and an answer that depends on the request alone.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { json, type ScriptedUpstream, startUpstream, type UpstreamRequest } from "../support/scripted-upstream.ts";
import { type StreamFormat, strictStreams } from "../support/strict-streams.ts";
import { taskAnswers } from "../support/task-answers.ts";
import { faults } from "./faults.ts";
import { replyOf } from "./replies.ts";
import { chat, completion, type Json, message, response, type Written } from "./written-replies.ts";

const formats: Readonly<Record<string, [Written, StreamFormat]>> = {
  "/chat/completions": [chat, "chat"],
  "/completions": [completion, "completion"],
  "/responses": [response, "response"],
  "/messages": [message, "message"],
};

/** Prefix of models that answer with a stream that a real server sent; the name of a file in tests/fixtures/sse follows. */
const recordedPrefix = "sse-";
const strictName = "strict";

/** The only model whose tokens the server counts. */
const countedName = "counted";

/** Reports whether the gateway asks for this count by itself, for the first event of a stream of Messages. */
export function isCountAside({ path, body }: Pick<UpstreamRequest, "path" | "body">): boolean {
  return /\/(?:input_tokens|count_tokens|tokenize)$/.test(path) && body["model"] !== countedName;
}

/** Answers of endpoints whose answer is no conversation. */
function plainAnswer(path: string, asked: Json): Json {
  if (path.endsWith("/embeddings")) {
    const { input, encoding_format } = asked;
    const count = Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
    const numbers = [0.5, -1.25, 1e-7];
    const embedding =
      encoding_format === "base64" ? Buffer.from(new Float32Array(numbers).buffer).toString("base64") : numbers;
    const data = Array.from({ length: count }, (_, index) => ({ object: "embedding", index, embedding }));
    const usage = { prompt_tokens: 4 * count, total_tokens: 4 * count };
    return { object: "list", data, model: "model-of-the-server", usage };
  }
  if (path.endsWith("/input_tokens")) return { object: "response.input_tokens", input_tokens: 31 };
  if (path.endsWith("/count_tokens")) return { input_tokens: 31 };
  return taskAnswers[path]?.(asked) ?? { error: { message: `nothing at ${path}` } };
}

/** Starts the server, which says that it speaks Responses and Messages as well when the gateway looks for formats. */
export async function startModelServer(): Promise<ScriptedUpstream> {
  const server = await startUpstream(({ path, body }, res) => {
    // The count races with the stream. The server gives none, so that the first event always has the estimate.
    if (isCountAside({ path, body })) return json(res, 400, { error: { message: "no count" } });
    const model = String(body["model"]);
    const [pathname = ""] = path.split("?");
    const format = formats[pathname.replace(/^\/v1/, "")];
    const fault = faults[model];
    if (!format) return fault ? fault(res, "", "{}") : json(res, 200, plainAnswer(pathname, body));
    const [written, name] = format;
    const strict = model === strictName ? strictStreams[name] : undefined;
    const whole = JSON.stringify(strict?.whole ?? written.whole(replyOf(model), body));
    const events = () => strict?.events.map(({ text }) => text).join("") ?? written.stream(replyOf(model), body);
    if (fault) return fault(res, events(), whole);
    if (body["stream"] !== true) {
      res.writeHead(200, { "content-type": "application/json" });
      res.end(whole);
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(model.startsWith(recordedPrefix) ? recordedStream(model.slice(recordedPrefix.length)) : events());
  });
  server.speaks("/v1/responses", "/v1/messages");
  return server;
}

function recordedStream(name: string): Uint8Array {
  return readFileSync(join(import.meta.dir, "..", "fixtures", "sse", `${name}.sse`));
}
