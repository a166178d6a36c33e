// Makes of each chunk that an engine streams what the client was promised, and counts what passes.
import type { Engine } from "../domain/engine.ts";
import { GatewayError } from "../domain/errors.ts";
import { editObject, scanObject } from "../domain/json-text.ts";
import type { TokenUsage } from "../domain/usage.ts";
import type { CompletionNames } from "./answer.ts";
import { type DecodedRequest, publicMessage } from "./dispatch.ts";
import {
  deliveredBytes,
  estimateDelivered,
  estimatePromptTokens,
  hasTotal,
  reportedUsage,
  usageObject,
  withTotal,
} from "./usage.ts";

/** What was seen of a stream so far; what settlement counts. */
export interface StreamObservation {
  /** As reported by the engine. */
  reported: TokenUsage | undefined;
  /** UTF-8 bytes of text delivered, and in how many pieces they came. */
  deliveredBytes: number;
  deliveredPieces: number;
}

interface Chunk {
  [member: string]: unknown;
  choices?: unknown;
}

interface StreamedChoice {
  index?: unknown;
  delta?: Record<string, unknown>;
  finish_reason?: unknown;
}

const usageNull = ',"usage":null}';

/**
 * Keeps the engine's bytes, except: the public model id, members that every client expects, the role of each choice's
 * first delta, and usage, which only a client that asked for it sees, in one last chunk.
 */
export class ChunkTranslator {
  readonly observed: StreamObservation = { reported: undefined, deliveredBytes: 0, deliveredPieces: 0 };
  /** Whether a choice told why it ended. */
  finishSeen = false;
  readonly #request: DecodedRequest;
  readonly #names: CompletionNames;
  readonly #wantsUsage: boolean;
  readonly #roleSent = new Set<unknown>();
  #usageText: string | undefined;
  #lastChunk: { id: unknown; created: unknown } | undefined;

  constructor(request: DecodedRequest, names: CompletionNames) {
    this.#request = request;
    this.#names = names;
    const options = request.body["stream_options"] as { include_usage?: unknown } | null | undefined;
    this.#wantsUsage = options?.include_usage === true;
  }

  /**
   * The event for the client, or nothing. Throws `upstream_error` for what is no chunk, and for the engine's own error
   * event; `engine` hides its credentials in it.
   */
  translate(received: string, engine: Engine | undefined): string {
    const chunk = parseChunk(received);
    // JSON over several data lines: one line has to do for clients that read line by line.
    const data = received.includes("\n") ? JSON.stringify(chunk) : this.#withoutUsageNull(received, chunk);
    // The second form is vLLM's.
    if ((chunk["error"] !== undefined && chunk["error"] !== null) || chunk["object"] === "error") {
      const said = engine && publicMessage(data, engine);
      throw new GatewayError("upstream_error", said ?? "The model server failed in the middle of the answer.");
    }
    const usage = reportedUsage(chunk["usage"]);
    if (usage) {
      this.observed.reported = usage;
      this.#usageText = JSON.stringify(hasTotal(chunk["usage"]) ? chunk["usage"] : withTotal(chunk["usage"], usage));
    }
    const { choices } = chunk;
    // Chunks without a choice break clients that did not ask for usage; the one with usage is made at the end.
    if (!Array.isArray(choices) || choices.length === 0) return "";
    const roleAdded = this.#observe(choices);
    this.#lastChunk = { id: chunk["id"], created: chunk["created"] };
    const edits = this.#edits(chunk);
    if (roleAdded) edits["choices"] = JSON.stringify(choices);
    const text = Object.keys(edits).length === 0 ? data : editObject(data, scanObject(data), edits);
    return `data: ${text}\n\n`;
  }

  /** The usage that we asked for makes most servers end every chunk with this: the common case needs no scan. */
  #withoutUsageNull(text: string, chunk: Chunk): string {
    if (this.#wantsUsage || chunk["usage"] !== null || !text.endsWith(usageNull)) return text;
    chunk["usage"] = undefined;
    return `${text.slice(0, -usageNull.length)}}`;
  }

  /**
   * Counts what the choices deliver. Gives each choice its index and its finish_reason (null until the last), and the
   * first delta of each its role, where the engine left them out; says whether it did.
   */
  #observe(choices: unknown[]): boolean {
    let changed = false;
    for (const [position, choice] of (choices as StreamedChoice[]).entries()) {
      if (typeof choice !== "object" || choice === null) throw malformed("a choice that is no object");
      const bytes = deliveredBytes(choice);
      this.observed.deliveredBytes += bytes;
      if (bytes > 0) this.observed.deliveredPieces++;
      if (choice.finish_reason) this.finishSeen = true;
      if (choice.finish_reason === undefined || choice.index === undefined) {
        choice.finish_reason ??= null;
        choice.index ??= position;
        changed = true;
      }
      const { delta, index } = choice;
      if (typeof delta !== "object" || delta === null || this.#roleSent.has(index)) continue;
      this.#roleSent.add(index);
      if (delta["role"] === undefined) {
        choice.delta = { role: "assistant", ...delta };
        changed = true;
      }
    }
    return changed;
  }

  #edits(chunk: Chunk): Record<string, string | null> {
    const edits: Record<string, string | null> = {};
    if (chunk["model"] !== this.#request.model) edits["model"] = JSON.stringify(this.#request.model);
    if (this.#names.ownId || chunk["id"] === undefined) edits["id"] = JSON.stringify(this.#names.id);
    if (chunk["created"] === undefined) edits["created"] = String(this.#names.created);
    if (chunk["object"] === undefined) edits["object"] = JSON.stringify(this.#objectName());
    if (this.#wantsUsage) {
      if (chunk["usage"] !== null) edits["usage"] = "null";
    } else if (chunk["usage"] !== undefined) {
      edits["usage"] = null;
    }
    return edits;
  }

  /** What the client gets at the end of a whole stream. */
  ending(): string {
    return `${this.#wantsUsage ? this.#usageChunk() : ""}data: [DONE]\n\n`;
  }

  #usageChunk(): string {
    const usage =
      this.#usageText ??
      JSON.stringify(
        usageObject(
          streamUsage(() => estimatePromptTokens(this.#request.body), this.observed, true),
          this.#request.operation,
        ),
      );
    const head = {
      id: this.#names.ownId ? this.#names.id : (this.#lastChunk?.id ?? this.#names.id),
      object: this.#objectName(),
      created: this.#lastChunk?.created ?? this.#names.created,
      model: this.#request.model,
      choices: [],
    };
    return `data: ${JSON.stringify(head).slice(0, -1)},"usage":${usage}}\n\n`;
  }

  #objectName(): string {
    return this.#request.operation === "chat" ? "chat.completion.chunk" : "text_completion";
  }
}

/**
 * Usage of a stream as far as it went: reported, else estimated from what was delivered. Of one that did not come to its
 * end, a report may be of an earlier moment: then what was delivered since counts.
 */
export function streamUsage(estimatedPrompt: () => number, observed: StreamObservation, ended: boolean): TokenUsage {
  const { reported, deliveredBytes, deliveredPieces } = observed;
  if (reported && ended) return reported;
  const delivered = estimateDelivered(deliveredBytes, deliveredPieces);
  if (reported && reported.completionTokens >= delivered) return reported;
  const promptTokens = reported?.promptTokens ?? estimatedPrompt();
  return { promptTokens, completionTokens: delivered, estimated: true };
}

/** A whole answer as the only chunk of a stream. */
export function wholeAsChunk(text: string): string {
  const { choices, object, ...rest } = JSON.parse(text) as { choices: Record<string, unknown>[]; object: string };
  const asDelta = ({ message, ...choice }: Record<string, unknown>) =>
    message ? { ...choice, delta: message } : choice;
  const name = object === "chat.completion" ? "chat.completion.chunk" : object;
  return JSON.stringify({ ...rest, object: name, choices: choices.map(asDelta) });
}

function parseChunk(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Chunk;
  } catch {
    // Falls through: the same refusal for what is no JSON and what is no object.
  }
  throw malformed(`${data.length} characters`);
}

function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent a malformed event.", { detail });
}
