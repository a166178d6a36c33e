// Records a model request that was answered with an error before it was entered in the ledger.
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import type { ErrorCode, GatewayError } from "../../../base/errors.ts";
import type { BookedOperation } from "../../../domain/models/operation.ts";
import { keyOf, type Principal } from "../../../domain/principal.ts";
import { redactCredentials } from "../../../domain/redaction.ts";
import type { RefusedRequests } from "../../../policy/records/refused-requests.ts";
import type { Node } from "../../../requests/decode/json-schema.ts";
import { dialects } from "../../../requests/dialects/dialects.ts";
import type { Exchange } from "../../exchange/route.ts";

export interface RefusedInferenceDeps {
  refusedRequests: Pick<RefusedRequests, "admits" | "note">;
  clock: Pick<Clock, "nowSeconds">;
}

const maxMessageLength = 500;
const maxModelLength = 256;

/** Records a refused request. `durationMs` is the time from its headers to the answer. */
export function noteRefused(
  operation: BookedOperation,
  { requestId, line }: Pick<Exchange, "requestId" | "line">,
  principal: Principal,
  error: GatewayError,
  durationMs: number,
  { refusedRequests, clock }: RefusedInferenceDeps,
): void {
  const { id: keyId } = keyOf(principal);
  if (!refusedRequests.admits(keyId, principal.account.id)) return;
  const { model, stream } = line;
  const asked = typeof model === "string" ? storable(redactCredentials(model), maxModelLength) : null;
  refusedRequests.note({
    requestId,
    at: clock.nowSeconds(),
    accountId: principal.account.id,
    keyId,
    appId: principal.appId,
    environment: principal.environment,
    operation,
    model: asked,
    stream: typeof stream === "boolean" ? stream : null,
    errorCode: error.code,
    message: storable(redactCredentials(keptMessage(error, asked)), maxMessageLength),
    durationMs: Math.round(durationMs),
  });
}

/** Codes of errors whose messages may quote text from the client. */
const quotingCodes: ReadonlySet<ErrorCode> = new Set(["invalid_request", "not_found", "previous_response_not_found"]);

/**
 * Returns the error message with unknown names replaced by `…`, because a client may have sent a prompt in place
 * of a name.
 */
function keptMessage({ code, message }: GatewayError, model: string | null): string {
  if (!quotingCodes.has(code)) return message;
  const isKept = (name: string) => name === model || isOurs(name);
  return (
    message
      .replace(/^.*(?=: (?:must|is|its|some model servers) )/s, (path) =>
        path.replace(/[^.[\]]+/g, (name) => (isOurs(name) ? name : "…")),
      )
      // Matches from the first to the last backtick, because a name may contain backticks.
      .replace(/`.*`/s, (quoted) =>
        quoted.split("`").every((part, i) => i % 2 === 0 || isKept(part)) ? quoted : "`…`",
      )
  );
}

let names: ReadonlySet<string> | undefined;

/** Reports whether the text is the name of a known request member, in any case, or an array index. */
function isOurs(name: string): boolean {
  names ??= new Set([
    "body",
    ...Object.values(dialects).flatMap(({ schema }) => namesIn(z.toJSONSchema(schema, { io: "input" }) as Node)),
  ]);
  return /^\d{1,9}$/.test(name) || names.has(name.toLowerCase());
}

function namesIn({ $defs = {}, properties = {}, items, anyOf = [], oneOf = [], additionalProperties }: Node): string[] {
  const others = typeof additionalProperties === "object" ? [additionalProperties] : [];
  const inner = [...Object.values($defs), ...Object.values(properties), ...(items ? [items] : []), ...anyOf, ...oneOf];
  return [...Object.keys(properties), ...[...inner, ...others].flatMap(namesIn)];
}

/** Truncates the text, and replaces characters that PostgreSQL cannot store: U+0000 and lone surrogates. */
function storable(text: string, longest: number): string {
  const whole = text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
  return whole.toWellFormed().replaceAll("\0", "\ufffd");
}
