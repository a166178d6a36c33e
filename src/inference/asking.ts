// Prepares a client's request for an engine: unchanged if the engine supports the client's format, otherwise
// translated.
import type { Bytes } from "../base/bytes/byte-span.ts";
import { fieldError, GatewayError } from "../base/errors.ts";
import type { Engine, EngineFormats } from "../domain/models/engine.ts";
import type { Model } from "../domain/models/model.ts";
import { type ConversationOperation, conversationOperations, type Operation } from "../domain/models/operation.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import type { SentForm } from "../domain/models/sent-form.ts";
import { isOpenaiHost } from "../domain/models/upstream-speech.ts";
import type { AccountSeal } from "../domain/seal.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import { usageAdaptation } from "../requests/dialects/chat/adaptations.ts";
import { type Adaptation, adapted, isAmong } from "../requests/dialects/conversation/adaptations.ts";
import type { Dialect } from "../requests/dialects/dialect.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import { standardMaxTokens } from "../requests/dialects/message/write-request.ts";
import { isOpenaiThinker } from "../requests/dialects/openai/thinking-models.ts";
import type { Translation } from "../requests/dialects/translation/translation.ts";
import { fittingLimit, otherMembersOf } from "../requests/facts.ts";
import { type IsolatedEdits, isolated, isolatedHints } from "./isolation.ts";
import { addsUsage, rewriteRequest } from "./request-body.ts";

export interface Asking {
  /** The operation to request from the engine. */
  readonly operation: Operation;
  readonly body: string | Bytes;
  /** The multipart form to send instead of `body`, if the client sent a form. */
  readonly form?: SentForm | undefined;
  /** The translation of the answer. Undefined if the engine gets the client's format. */
  readonly translation: Translation | undefined;
  /** Members of the request that the engine's format does not have. */
  readonly leftOut: readonly string[];
  /** The token limit that a quota imposes, if the client allowed more. Otherwise undefined. */
  readonly capped: number | undefined;
  /** The name of the member that limits tokens, such as `max_tokens`. Undefined without a limit. */
  readonly limitName: string | undefined;
  /** Changes to members that the gateway itself added and that a server may refuse. Missing if there are none. */
  readonly adaptations?: readonly Adaptation[] | undefined;
}

const nothing: readonly string[] = [];
const usageAlone = [usageAdaptation];

export interface AskingOptions {
  engine: Pick<Engine, "formats" | "isolation" | "server">;
  /** The id of the model at the engine. */
  model: string;
  /** Maximum tokens of prompt and answer together. Undefined if unknown. */
  context?: number | undefined;
  /** Maximum tokens of each generation that quotas allow. Undefined without a limit. */
  mostTokens?: number | undefined;
  /** True if the gateway stores the answer. */
  recording: boolean;
  seal: AccountSeal;
  /** Priority to send to the engine. Undefined to send none. */
  priority?: Priority | undefined;
  /** Names of token limits that the engine is known to ignore for this model. Default: none. */
  ignoredLimits?: ReadonlySet<string> | undefined;
  /** Keys of the adaptations that the engine is known to need for this model. Default: none. */
  adapted?: ReadonlySet<string> | undefined;
}

/**
 * Prepares a request for an engine. Throws `invalid_request` if the engine's format cannot express the request, or if a
 * quota's limit is below the server's minimum.
 */
export function askingOf(request: DecodedRequest, options: AskingOptions): Asking {
  const { engine, model, context, recording, seal, mostTokens, priority } = options;
  const { dialect } = request;
  const from = formatFor(request, engine, model);
  const fits = limitFor(request, from, context);
  const wanted = fits ?? request.tokenLimit;
  const least = wanted === undefined || wanted >= highestLeastLimit ? 0 : leastLimitOf(from, request);
  const raised = wanted !== undefined && wanted < least ? least : undefined;
  const capped = capOf(mostTokens, from, raised ?? wanted, request, context);
  const limit = capped ?? raised ?? fits;
  if (from === dialect) {
    // A server that supports the format completely checks the client's limit itself, so only a quota changes the limit.
    const isWhole = engine.formats?.[dialect.operation as ConversationOperation] === "whole";
    const isOurs = limit !== undefined && (capped !== undefined || !isWhole);
    const isCapped = capped !== undefined && !isWhole;
    const limitName =
      isOurs || request.tokenLimit !== undefined
        ? limitNameOf(dialect, options, isCapped ? undefined : request.tokenLimit, request.tokenLimitName)
        : undefined;
    const sentLimit = isOurs ? limit : limitName === request.tokenLimitName ? undefined : request.tokenLimit;
    const fitted = sentLimit === undefined ? undefined : limitEdits(dialect, limitName, sentLimit);
    const said = dialect.task ? dialect.task.added(request.body) : undefined;
    // Unknown members are removed, because one of them might be a longer limit under another name.
    const others =
      mostTokens !== undefined && dialect.generates && request.hasOthers && !request.stream
        ? otherMembersOf(dialect, request.body)
        : nothing;
    const isOpenai = isOpenaiThinker(model) || isOpenaiHost(engine.server?.address ?? "");
    // Only these requests can contain reasoning that the gateway encrypted. In other requests it is plain text.
    const unsealed = request.maySeal || request.goesOn ? dialect.opened?.(request.body, seal, isOpenai) : said;
    const opened = edits(unsealed, edits(fitted, without(others)));
    const kept = isolated(request, engine.isolation, seal, priority);
    const form = request.form?.sentFor(model, kept);
    const { operation } = dialect;
    const leftOut = others;
    if (form) return { operation, translation: undefined, leftOut, capped, body: "", form, limitName: undefined };
    const isOurUsage = addsUsage(request) && request.streamOptions === "none";
    const asksForUsage = !isOurUsage || !options.adapted || !isAmong(options.adapted, usageAdaptation.path);
    const body = rewriteRequest(request, model, recording, opened, kept, asksForUsage);
    const adaptations = isOurUsage && asksForUsage ? usageAlone : undefined;
    return { operation, translation: undefined, leftOut, capped, body, limitName, adaptations };
  }
  const { format: to, errorEvent } = dialect;
  if (!to || !from.format) throw unspoken(dialect);
  const read = to.readRequest(request.body, seal);
  const hints = isolatedHints(read.hints, engine.isolation, seal);
  const conversation = limit === undefined ? { ...read, hints } : { ...read, hints, maxTokens: limit };
  const { body: written, leftOut, names } = from.format.writeRequest(conversation, model, engine.server?.address);
  const usual = defaultLimitName(from, model);
  const limitName = conversation.maxTokens === undefined ? undefined : knownLimitName(from, options, usual);
  const limited = limitName === undefined || limitName === usual ? written : withLimit(written, from, limitName);
  const whole = withEdits(limited, isolated(request, engine.isolation, seal, priority));
  const translation: Translation = { from: from.format, to, names, seal, errorEvent };
  const { adaptations } = from.format;
  const asking = { operation: from.operation, body: whole, translation, leftOut, capped, limitName, adaptations };
  if (!options.adapted) return asking;
  const { body, leftOut: refused } = adapted(whole, adaptations, options.adapted);
  return { ...asking, body, leftOut: [...new Set([...leftOut, ...refused])] };
}

/** The highest minimum that any format has for a token limit. */
const highestLeastLimit = Math.max(...conversationOperations.map((operation) => dialects[operation].minLimit({})));

/**
 * Stores in the request the highest minimum that the model's servers have for a token limit, because quotas must allow
 * that many tokens.
 */
export function noteLeastLimit(request: DecodedRequest, { deployments }: Pick<Model, "deployments">): void {
  if (request.tokenLimit === undefined || request.tokenLimit >= highestLeastLimit) return;
  for (const { engine, model } of deployments) {
    request.leastLimit = Math.max(request.leastLimit, leastLimitOf(formatFor(request, engine, model), request));
  }
}

/**
 * Returns the server's minimum for a token limit. Returns 0 if the server gets the client's format, because it then
 * reports its own error.
 */
function leastLimitOf(from: Dialect, { dialect }: DecodedRequest): number {
  return from === dialect ? 0 : from.minLimit({});
}

/**
 * Returns the limit that quotas impose, or undefined if the request's own limit is lower. A stream gets at least the
 * server's minimum, because the gateway can end the stream early. A stream without a limit of its own gets no limit if
 * the context is unknown, because the server might refuse the limit.
 */
function capOf(
  most: number | undefined,
  from: Dialect,
  limit: number | undefined,
  request: DecodedRequest,
  context: number | undefined,
): number | undefined {
  if (most === undefined) return undefined;
  const { promptTokens, stream, dialect } = request;
  // The minimum is computed only if a quota has a limit, because this may parse the body.
  const least = from.minLimit(from === dialect ? request.body : {});
  const withoutLimit = context === undefined ? (stream ? 0 : Number.POSITIVE_INFINITY) : context - promptTokens;
  const sentLimit = stream ? Math.max(most, least) : most;
  if (sentLimit >= (limit ?? withoutLimit)) return undefined;
  if (sentLimit < least) throw tooFewTokens(sentLimit, least, dialect);
  return sentLimit;
}

/**
 * Returns the error if a quota's limit is below the server's minimum. The server's own error would not help the client,
 * which did not set this limit.
 */
function tooFewTokens(available: number, least: number, { limitMembers }: Dialect): GatewayError {
  return fieldError(
    limitMembers[0],
    `cannot be kept: a quota with a hard stop has ${available} tokens left for this answer, and its model server takes no limit below ${least} beside the rest of this request, such as a budget for thinking. Ask for less of that, with \`stream: true\`, which is ended where the quota is spent, or once the quota opens (GET /v1/limits).`,
  );
}

/**
 * Returns the name under which the engine gets the token limit. `said` is the client's limit, and `saidName` is the
 * name that the client used.
 */
function limitNameOf(dialect: Dialect, options: AskingOptions, said: number | undefined, saidName: string): string {
  const { knowsNewerLimit } = dialect;
  const name = said === undefined || !knowsNewerLimit ? defaultLimitName(dialect, options.model) : saidName;
  return knownLimitName(dialect, options, name);
}

/**
 * Returns the older name of the token limit, which all servers know. For OpenAI's reasoning models, returns the newer
 * name.
 */
function defaultLimitName({ limitMembers: [newer, older = newer], knowsNewerLimit }: Dialect, model: string): string {
  return knowsNewerLimit && isOpenaiThinker(model) ? newer : older;
}

/** Returns `name`. If the engine ignores the token limit under this name, returns the other name of the limit. */
function knownLimitName(dialect: Dialect, { model, ignoredLimits }: AskingOptions, name: string): string {
  if (!ignoredLimits?.has(name) || !dialect.knowsNewerLimit) return name;
  const other = dialect.limitMembers.find((one) => one !== undefined && one !== name) ?? name;
  return ignoredLimits.has(other) || (name === defaultLimitName(dialect, model) && isOpenaiThinker(model))
    ? name
    : other;
}

/**
 * Returns edits that set the token limit under one name and remove it under all others, which a server might prefer.
 */
function limitEdits({ limitMembers }: Dialect, name: string | undefined, limit: number): Edits {
  const edits: Record<string, string | null> = {};
  for (const one of limitMembers) if (one !== undefined) edits[one] = one === name ? String(limit) : null;
  return edits;
}

/** Returns the body with its limit under another name. */
function withLimit(body: string, dialect: Dialect, name: string): string {
  const members: Record<string, unknown> = JSON.parse(body);
  const [limit] = dialect.limitMembers.flatMap((one) => (one === undefined ? [] : (members[one] ?? [])));
  for (const one of dialect.limitMembers) if (one !== undefined) delete members[one];
  return JSON.stringify({ ...members, [name]: limit });
}

function without(names: readonly string[]): Edits {
  return names.length === 0 ? undefined : Object.fromEntries(names.map((name) => [name, null]));
}

/**
 * Returns the token limit, reduced to the context: the client's limit if its format requires one, or a default limit if
 * only the engine's format requires one and the client set none. Otherwise returns undefined.
 */
function limitFor(request: DecodedRequest, from: Dialect, context: number | undefined): number | undefined {
  const { dialect, tokenLimit } = request;
  if (dialect.isLimitRequired) return tokenLimit === undefined ? undefined : fittingLimit(tokenLimit, request, context);
  if (from.isLimitRequired && tokenLimit === undefined) return fittingLimit(standardMaxTokens, request, context);
  return undefined;
}

type Edits = Readonly<Record<string, string | null>> | undefined;

function edits(some: Edits, others: Edits): Edits {
  return some && others ? { ...some, ...others } : (some ?? others);
}

/**
 * Returns the format in which to ask the engine. It is the client's format if possible, otherwise usually chat
 * completions. OpenAI's newer models get the Responses format: their chat completions refuse tools with a reasoning
 * effort, and lose the reasoning between calls.
 */
export function formatFor(
  request: DecodedRequest,
  { formats, isolation }: AskingOptions["engine"],
  model: string,
): Dialect {
  const { dialect } = request;
  if (!dialect.format) return dialect;
  // vLLM's Messages API accepts no cache salt, so all accounts would share one prompt cache.
  if (isolation?.cacheSalt && dialect.namesUserInMetadata) return dialects.chat;
  const spoken: EngineFormats = formats ?? chatAlone;
  const own = spoken[dialect.operation as ConversationOperation];
  if (own === "whole" || (own === "functions" && dialect.isPlain(request.body))) return dialect;
  if (spoken.response === "whole" && spoken.message === undefined && isOpenaiThinker(model)) return dialects.response;
  const other = conversationOperations.find((operation) => operation !== dialect.operation && spoken[operation]);
  // Partial support of the client's format may suffice, because the server reports what it does not understand.
  return other ? dialects[other] : own ? dialect : dialects.chat;
}

/** Adds `cache_salt` and `priority` to a translated body, which has neither. */
function withEdits(body: string, edits: IsolatedEdits | undefined): string {
  let added = "";
  for (const name of ["cache_salt", "priority"]) {
    const json = edits?.[name];
    if (json !== undefined && json !== null) added += `"${name}":${json},`;
  }
  return added === "" ? body : `{${added}${body.slice(body.indexOf("{") + 1)}`;
}

/** The formats of an engine that declares none: only chat completions. */
export const chatAlone = { chat: "whole" } as const;

function unspoken({ endpoint }: Dialect): GatewayError {
  return new GatewayError("upstream_error", `The model server does not speak ${endpoint}.`);
}
