// How an engine is asked: in the client's format where it speaks that itself, else in another, translated.
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
import type { Dialect } from "../requests/dialects/dialect.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import { standardMaxTokens } from "../requests/dialects/message/write-request.ts";
import { isOpenaiThinker } from "../requests/dialects/openai/thinking-models.ts";
import type { Translation } from "../requests/dialects/translation/translation.ts";
import { fittingLimit, otherMembersOf } from "../requests/facts.ts";
import { type IsolatedEdits, isolated, isolatedHints } from "./isolation.ts";
import { rewriteRequest } from "./request-body.ts";

export interface Asking {
  /** By which its path is known. */
  readonly operation: Operation;
  readonly body: string | Bytes;
  /** Sent in place of the body, where the request came as one. */
  readonly form?: SentForm | undefined;
  /** Undefined where the engine is asked in the client's format. */
  readonly translation: Translation | undefined;
  /** Members of the client's request that the engine does not get, as its format has nothing for them. */
  readonly leftOut: readonly string[];
  /** The tokens of each generation that a quota allows, where the client allowed more: the engine is told these. */
  readonly capped: number | undefined;
  /** The member that tells the engine how long the answer may be; undefined where nothing does. */
  readonly limitName: string | undefined;
}

const nothing: readonly string[] = [];

export interface AskingOptions {
  engine: Pick<Engine, "formats" | "isolation" | "server">;
  /** The engine's own id of the model. */
  model: string;
  /** Tokens of prompt and answer together, where that is known. */
  context?: number | undefined;
  /** The most tokens of each generation that quotas which end an answer allow; undefined: as many as there may be. */
  mostTokens?: number | undefined;
  /** Whether the gateway keeps the answer itself. */
  recording: boolean;
  seal: AccountSeal;
  /** How urgent it is; left out: it is not told to any server. */
  priority?: Priority | undefined;
  /** Names of limits that the engine is known to ignore for this model; left out: none. */
  ignoredLimits?: ReadonlySet<string> | undefined;
}

/** Throws `invalid_request` where the engine's format cannot say what is asked, or quotas leave it less than its server takes. */
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
    // A server of the maker's own knows best what fits.
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
    // A limit of another name may be longer, and hold in its place.
    const others =
      mostTokens !== undefined && dialect.generates && request.hasOthers && !request.stream
        ? otherMembersOf(dialect, request.body)
        : nothing;
    const isOpenai = isOpenaiThinker(model) || isOpenaiHost(engine.server?.address ?? "");
    // Stored reasoning of a client that wanted no seals is text alone.
    const unsealed = request.maySeal || request.goesOn ? dialect.opened?.(request.body, seal, isOpenai) : said;
    const opened = edits(unsealed, edits(fitted, without(others)));
    const kept = isolated(request, engine.isolation, seal, priority);
    const form = request.form?.sentFor(model, kept);
    const common = { operation: dialect.operation, translation: undefined, leftOut: others, capped };
    if (form) return { ...common, body: "", form, limitName: undefined };
    const body = rewriteRequest(request, model, recording, opened, kept);
    return { ...common, body, limitName };
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
  const body = withEdits(limited, isolated(request, engine.isolation, seal, priority));
  const translation: Translation = { from: from.format, to, names, seal, errorEvent };
  return { operation: from.operation, body, translation, leftOut, capped, limitName };
}

/** The highest minimum of all formats: no server needs a higher limit to be raised. */
const highestLeastLimit = Math.max(...conversationOperations.map((operation) => dialects[operation].minLimit({})));

/** Stores in the request the lowest limit that servers of the model take, so that limits and usage allow as many tokens. */
export function noteLeastLimit(request: DecodedRequest, { deployments }: Pick<Model, "deployments">): void {
  if (request.tokenLimit === undefined || request.tokenLimit >= highestLeastLimit) return;
  for (const { engine, model } of deployments) {
    request.leastLimit = Math.max(request.leastLimit, leastLimitOf(formatFor(request, engine, model), request));
  }
}

/** A server that is asked in the client's own format says itself what it thinks of the limit: 0. */
function leastLimitOf(from: Dialect, { dialect }: DecodedRequest): number {
  return from === dialect ? 0 : from.minLimit({});
}

/**
 * The limit in place of a longer one, or of none. A stream is told no fewer than its server takes: it is ended as it goes. A
 * stream without one, of a model whose context nobody knows, is not told any: a server that cannot give as many would refuse
 * it, and it is ended as it goes.
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
  // Only now: the body of most requests is parsed by nobody.
  const least = from.minLimit(from === dialect ? request.body : {});
  const withoutLimit = context === undefined ? (stream ? 0 : Number.POSITIVE_INFINITY) : context - promptTokens;
  const sentLimit = stream ? Math.max(most, least) : most;
  if (sentLimit >= (limit ?? withoutLimit)) return undefined;
  if (sentLimit < least) throw tooFewTokens(sentLimit, least, dialect);
  return sentLimit;
}

/** Its server would refuse so low a limit, in words that nobody could make out: the client did not ask for it. */
function tooFewTokens(available: number, least: number, { limitMembers }: Dialect): GatewayError {
  return fieldError(
    limitMembers[0],
    `cannot be kept: a quota with a hard stop has ${available} tokens left for this answer, and its model server takes no limit below ${least} beside the rest of this request, such as a budget for thinking. Ask for less of that, with \`stream: true\`, which is ended where the quota is spent, or once the quota opens (GET /v1/limits).`,
  );
}

/** The member by which the engine is told the limit. `said`: by the client, under the name `saidName`. */
function limitNameOf(dialect: Dialect, options: AskingOptions, said: number | undefined, saidName: string): string {
  const { knowsNewerLimit } = dialect;
  const name = said === undefined || !knowsNewerLimit ? defaultLimitName(dialect, options.model) : saidName;
  return knownLimitName(dialect, options, name);
}

/** The older name of a limit, which all servers know but OpenAI's for the models that think. */
function defaultLimitName({ limitMembers: [newer, older = newer], knowsNewerLimit }: Dialect, model: string): string {
  return knowsNewerLimit && isOpenaiThinker(model) ? newer : older;
}

/** The name itself, or the other one where the engine is known to ignore it. */
function knownLimitName(dialect: Dialect, { model, ignoredLimits }: AskingOptions, name: string): string {
  if (!ignoredLimits?.has(name) || !dialect.knowsNewerLimit) return name;
  const other = dialect.limitMembers.find((one) => one !== undefined && one !== name) ?? name;
  return ignoredLimits.has(other) || (name === defaultLimitName(dialect, model) && isOpenaiThinker(model))
    ? name
    : other;
}

/** A server that reads another name of the limit first must not find one. */
function limitEdits({ limitMembers }: Dialect, name: string | undefined, limit: number): Edits {
  const edits: Record<string, string | null> = {};
  for (const one of limitMembers) if (one !== undefined) edits[one] = one === name ? String(limit) : null;
  return edits;
}

/** A body that we have written, with its limit under another name. */
function withLimit(body: string, dialect: Dialect, name: string): string {
  const members: Record<string, unknown> = JSON.parse(body);
  const [limit] = dialect.limitMembers.flatMap((one) => (one === undefined ? [] : (members[one] ?? [])));
  for (const one of dialect.limitMembers) if (one !== undefined) delete members[one];
  return JSON.stringify({ ...members, [name]: limit });
}

function without(names: readonly string[]): Edits {
  return names.length === 0 ? undefined : Object.fromEntries(names.map((name) => [name, null]));
}

/** Where the client had to name a limit, or the engine's format has to have one and the client named none. */
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
 * The client's own format is best; chat completions are what most servers know best of the others. OpenAI refuses tools
 * there beside an effort for its newer models, and keeps no reasoning between calls.
 */
export function formatFor(
  request: DecodedRequest,
  { formats, isolation }: AskingOptions["engine"],
  model: string,
): Dialect {
  const { dialect } = request;
  if (!dialect.format) return dialect;
  // There vLLM takes no salt, and would have one cache for all.
  if (isolation?.cacheSalt && dialect.namesUserInMetadata) return dialects.chat;
  const spoken: EngineFormats = formats ?? chatAlone;
  const own = spoken[dialect.operation as ConversationOperation];
  if (own === "whole" || (own === "functions" && dialect.isPlain(request.body))) return dialect;
  if (spoken.response === "whole" && spoken.message === undefined && isOpenaiThinker(model)) return dialects.response;
  const other = conversationOperations.find((operation) => operation !== dialect.operation && spoken[operation]);
  // What it knows in part may still do: it says itself what it does not understand.
  return other ? dialects[other] : own ? dialect : dialects.chat;
}

/** Members of a translated body that the client said nothing of; its own are not in it. */
function withEdits(body: string, edits: IsolatedEdits | undefined): string {
  let added = "";
  for (const name of ["cache_salt", "priority"]) {
    const json = edits?.[name];
    if (json !== undefined && json !== null) added += `"${name}":${json},`;
  }
  return added === "" ? body : `{${added}${body.slice(body.indexOf("{") + 1)}`;
}

/** What an engine speaks that says nothing. */
export const chatAlone = { chat: "whole" } as const;

function unspoken({ endpoint }: Dialect): GatewayError {
  return new GatewayError("upstream_error", `The model server does not speak ${endpoint}.`);
}
