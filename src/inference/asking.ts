// How an engine is asked: in the client's format where it speaks that itself, else in another, translated.
import type { Bytes } from "../base/bytes/byte-span.ts";
import { GatewayError } from "../base/errors.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { dialects } from "../dialects/dialects.ts";
import type { Translation } from "../dialects/translation/translation.ts";
import type { Engine, EngineFormats } from "../domain/models/engine.ts";
import { type ConversationOperation, conversationOperations, type Operation } from "../domain/models/operation.ts";
import type { Seal } from "../domain/seal.ts";
import type { DecodedRequest } from "./decoded-request.ts";
import { rewriteRequest } from "./request-body.ts";

export interface Asking {
  /** By which its path is known. */
  readonly operation: Operation;
  readonly body: string | Bytes;
  /** Undefined where the engine is asked in the client's format. */
  readonly translation: Translation | undefined;
  /** Members of the client's request that the engine does not get, as its format has nothing for them. */
  readonly leftOut: readonly string[];
}

const nothing: readonly string[] = [];

export interface AskingOptions {
  engine: Pick<Engine, "formats">;
  /** The engine's own id of the model. */
  model: string;
  /** Whether the gateway keeps the answer itself. */
  recording: boolean;
  seal: Seal;
}

/** Throws `invalid_request` where the engine's format cannot say what is asked. */
export function askingOf(request: DecodedRequest, { engine, model, recording, seal }: AskingOptions): Asking {
  const { dialect } = request;
  const from = formatFor(request, engine);
  if (from === dialect) {
    const opened = dialect.opened?.(request.body, seal);
    const body = rewriteRequest(request, model, recording, opened);
    return { operation: dialect.operation, body, translation: undefined, leftOut: nothing };
  }
  const { format: to, errorEvent } = dialect;
  if (!to || !from.format) throw unspoken(dialect);
  const conversation = to.readRequest(request.body, seal);
  const { body, leftOut, names } = from.format.writeRequest(conversation, model);
  const translation: Translation = { from: from.format, to, names, seal, errorEvent };
  return { operation: from.operation, body, translation, leftOut };
}

/** The client's own format is best; chat completions are what most servers know best of the others. */
function formatFor(request: DecodedRequest, { formats }: Pick<Engine, "formats">): Dialect {
  const { dialect } = request;
  if (!dialect.format) return dialect;
  const spoken: EngineFormats = formats ?? chatAlone;
  const own = spoken[dialect.operation as ConversationOperation];
  if (own === "whole" || (own === "functions" && dialect.isPlain(request.body))) return dialect;
  const other = conversationOperations.find((operation) => operation !== dialect.operation && spoken[operation]);
  // What it knows in part may still do: it says itself what it does not understand.
  return other ? dialects[other] : own ? dialect : dialects.chat;
}

const chatAlone = { chat: "whole" } as const;

function unspoken({ endpoint }: Dialect): GatewayError {
  return new GatewayError("upstream_error", `The model server does not speak ${endpoint}.`);
}
