// Reads a whole (not streamed) answer of an engine and makes it what the client was promised.
import { decodeEmbedding, encodeEmbedding } from "../domain/embedding.ts";
import { GatewayError } from "../domain/errors.ts";
import { editObject, scanObject } from "../domain/json-text.ts";
import type { TokenUsage } from "../domain/usage.ts";
import { countTexts, type TextOrTokens } from "../domain/wire.ts";
import { type DecodedRequest, type Dispatched, publicMessage } from "./dispatch.ts";
import {
  deliveredBytes,
  estimatePromptTokens,
  estimateTokens,
  hasTotal,
  reportedUsage,
  usageObject,
  withTotal,
} from "./usage.ts";

export interface Answer {
  text: string;
  usage: TokenUsage;
}

/** What of an answer may be ours: the engine's own stands unless it gave none, or the id has to be unique here. */
export interface CompletionNames {
  id: string;
  /** Unix seconds. */
  created: number;
  /** Whether `id` replaces the engine's. */
  ownId: boolean;
}

/** A batch of 2,048 long embeddings in JSON comes to about 80 MB. */
const maxAnswerBytes = 128 * 1024 * 1024;

/**
 * The engine's bytes, unless something must change: the model's public id, usage that was not reported, members that
 * every client expects, the encoding of embeddings. Throws `upstream_error` on anything that is not a usable answer.
 */
export async function readAnswer(
  request: DecodedRequest,
  { response, deployment, firstByte }: Dispatched,
  names: CompletionNames,
): Promise<Answer> {
  const text = await readText(response.body, deployment.engine.idleTimeoutMs, firstByte);
  const body = parseObject(text);
  if (body["error"] !== undefined && body["error"] !== null) {
    throw new GatewayError("upstream_error", publicMessage(text, deployment.engine) ?? "The model server failed.", {
      detail: "error in a 200 answer",
    });
  }
  const list = body[request.operation === "embedding" ? "data" : "choices"];
  if (!Array.isArray(list)) throw malformed("neither choices nor data");
  if (list.length === 0) throw malformed("no choice and no embedding");

  const edits: Record<string, string | null> = {};
  if (body["model"] !== request.model) edits["model"] = JSON.stringify(request.model);
  const reported = reportedUsage(body["usage"]);
  const usage = reported ?? estimatedUsage(request, list);
  if (!reported) edits["usage"] = JSON.stringify(usageObject(usage, request.operation));
  else if (!hasTotal(body["usage"])) edits["usage"] = JSON.stringify(withTotal(body["usage"], usage));
  if (request.operation === "embedding") {
    if (body["object"] !== "list") edits["object"] = '"list"';
    if (
      encodeAsAsked(
        list,
        request.body["encoding_format"] === "base64",
        countTexts(request.body["input"] as TextOrTokens),
      )
    )
      edits["data"] = JSON.stringify(list);
  } else {
    if (names.ownId || typeof body["id"] !== "string") edits["id"] = JSON.stringify(names.id);
    if (typeof body["created"] !== "number") edits["created"] = String(names.created);
    const object = request.operation === "chat" ? "chat.completion" : "text_completion";
    if (body["object"] !== object) edits["object"] = JSON.stringify(object);
  }
  return { text: Object.keys(edits).length === 0 ? text : edited(text, edits), usage };
}

/**
 * Both encodings work whatever the engine returned. Changes the items in place; says whether it did. An embedding that
 * is missing or no list of numbers would reach the client as a wrong vector, so it is refused.
 */
function encodeAsAsked(items: unknown[], base64: boolean, wanted: number): boolean {
  if (items.length !== wanted) throw malformed(`${items.length} embeddings for ${wanted} inputs`);
  let changed = false;
  for (const item of items as { embedding?: unknown }[]) {
    const embedding = item?.embedding;
    if (Array.isArray(embedding)) {
      if (!embedding.every(isFloat32)) throw malformed("an embedding with something that is no number");
      if (!base64) continue;
      item.embedding = encodeEmbedding(embedding as number[]);
    } else if (typeof embedding === "string") {
      if (base64) continue;
      const values = decodeEmbedding(embedding);
      if (!values) throw malformed("an embedding that is not base64 of float32");
      item.embedding = values;
    } else {
      throw malformed("an item without an embedding");
    }
    changed = true;
  }
  return changed;
}

function isFloat32(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}

function estimatedUsage(request: DecodedRequest, choices: readonly unknown[]): TokenUsage {
  const delivered = choices.reduce<number>((sum, choice) => sum + deliveredBytes(choice), 0);
  return {
    promptTokens: estimatePromptTokens(request.body),
    completionTokens: estimateTokens(delivered),
    estimated: true,
  };
}

function edited(text: string, edits: Readonly<Record<string, string | null>>): string {
  try {
    return editObject(text, scanObject(text), edits);
  } catch {
    // Its reason may quote the answer.
    throw malformed("JSON that cannot be edited: a field appears twice, or there is too much of it");
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Falls through: the same refusal for what is no JSON and what is no object.
  }
  throw malformed(`${text.length} characters that are no JSON object`);
}

async function readText(
  body: ReadableStream<Uint8Array> | null,
  idleTimeoutMs: number,
  onBytes: () => void,
): Promise<string> {
  if (!body) throw malformed("no body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let idle = false;
  const timer = setTimeout(() => {
    idle = true;
    void reader.cancel().catch(() => {});
  }, idleTimeoutMs);
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (idle)
        throw new GatewayError("upstream_timeout", "The model server stopped sending in the middle of the answer.");
      if (done) return text + decoder.decode();
      onBytes();
      timer.refresh();
      text += decoder.decode(value, { stream: true });
      if (text.length > maxAnswerBytes) {
        void reader.cancel().catch(() => {});
        throw malformed(`more than ${maxAnswerBytes} characters`);
      }
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError("upstream_error", "The model server broke off in the middle of the answer.", {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}

function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent an answer that cannot be read.", { detail });
}
