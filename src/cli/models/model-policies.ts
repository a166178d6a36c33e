// The policies of a model on the command line: the options that set them, and their display.
import { readFile } from "node:fs/promises";
import { InvalidArgumentError } from "commander";
import { cachedRequests } from "../../domain/models/policies/cache.ts";
import { overflowSpans } from "../../domain/models/policies/overflow.ts";
import { guardrailsLine, guardrailsOption } from "../../features/guardrails/command.ts";
import type { PoliciesRequest } from "../../wire/policies/model-policies.ts";
import type { OptionValues } from "../command.ts";
import { parseNames } from "../keys/key-settings.ts";
import type { connectionOptions } from "../login/client.ts";
import type { ServerCall } from "../login/server-command.ts";
import { formatRate } from "../terminal/figures.ts";
import { CliError, exitCodes } from "../terminal/terminal.ts";
import { orNone } from "./model-settings.ts";

interface Share {
  model: string;
  percent: number;
}

type Overflow = NonNullable<PoliciesRequest["overflow"]>;
type Cache = NonNullable<PoliciesRequest["cache"]>;

export const policySettings = {
  policies: ["--policies <file>", "its policies as JSON, from a file or - for standard input; none removes them"],
  continuation: ["--continuation <on|off>", "continue a stream on another server if its server fails", ["on", "off"]],
  overflow: [
    "--overflow <places>",
    "upstreams to use last, with conditions: cloud,after=5,tokens=30000,hours=18:00-08:00,request=0.5,spend=50/day",
    orNone(parseOverflow),
  ],
  cache: [
    "--cache <requests>",
    "cache responses: deterministic, asked or all, then ttl=3600 (seconds) and price=0.5 (share of the price)",
    orNone(parseCache),
  ],
  guardrails: [...guardrailsOption, orNone(parseNames)],
  shadow: ["--shadow <share>", "send a copy of requests to another model: next=5 for 5 %", orNone(parseShare)],
  split: [
    "--split <shares>",
    "send a share of requests to other models: next=10,other=5 for 10 and 5 %",
    orNone((text) => parseNames(text).map(parseShare)),
  ],
} as const;

type PolicyCall = Pick<
  ServerCall<OptionValues<typeof policySettings> & OptionValues<typeof connectionOptions>>,
  "context" | "options"
>;

/**
 * Returns the policies given by the options; a single option overrides the same policy in the file. Empty if none was
 * given.
 */
export async function policyFields(call: PolicyCall): Promise<{ policies?: PoliciesRequest | null }> {
  const { policies: path, continuation, overflow, cache, guardrails, shadow, split } = call.options;
  const said = { continuation: continuation && continuation === "on", overflow, cache, guardrails, shadow, split };
  const given = Object.entries(said).filter(([, value]) => value !== undefined);
  const single = Object.fromEntries(given.map(([name, value]) => [name, value === "none" ? null : value]));
  if (path === undefined) return Object.keys(single).length > 0 ? { policies: single } : {};
  if (path !== "none") return { policies: { ...(await readPolicies(call, path)), ...single } };
  if (Object.keys(single).length === 0) return { policies: null };
  throw new CliError("--policies none takes all of them away; leave the other options out.", exitCodes.usage);
}

/** Reads policies from a file or standard input. The server checks their content and reports errors. */
async function readPolicies({ context, options }: PolicyCall, path: string): Promise<PoliciesRequest> {
  if (path === "-" && options.apiKeyStdin) {
    throw new CliError(
      "Standard input cannot give both the policies and the key (--api-key-stdin). Name a file, or set HEADRACE_API_KEY.",
      exitCodes.usage,
    );
  }
  const name = path === "-" ? "Standard input" : path;
  const text = path === "-" ? await context.input.readAll() : await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) throw new CliError(`${name} cannot be read. Give a file with JSON, or - for standard input.`);
  const said = parsed(text);
  if (typeof said === "object" && said !== null && !Array.isArray(said)) return said;
  throw new CliError(`${name} is no JSON object. Write one such as {"continuation": true}.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parseShare(text: string): Share {
  const [, model, percent] = /^(.+)=(\d{1,3}(?:\.\d{1,6})?)$/.exec(text) ?? [];
  if (model !== undefined) return { model, percent: Number(percent) };
  throw new InvalidArgumentError("Give a model and its percent, such as next=10, or none.");
}

/** Splits an option's text into plain words and `name=value` parts. The server validates them. */
function partsOf(text: string): { alone: string[]; named: [name: string, value: string][] } {
  const parts = parseNames(text);
  const named = parts.flatMap((part): [string, string][] => {
    const at = part.indexOf("=");
    return at < 0 ? [] : [[part.slice(0, at), part.slice(at + 1)]];
  });
  return { alone: parts.filter((part) => !part.includes("=")), named };
}

function parseOverflow(text: string): Overflow {
  const { alone, named } = partsOf(text);
  const overflow: Overflow = { to: alone.map((upstream) => ({ upstream })) };
  for (const [name, value] of named) {
    const [, usd, per] = /^([\d.]+)\/(\w+)$/.exec(value) ?? [];
    if (name === "after") overflow.after_seconds = numberIn(value);
    else if (name === "tokens") overflow.prompt_tokens_above = numberIn(value);
    else if (name === "hours") overflow.hours = [...(overflow.hours ?? []), value];
    else if (name === "request") overflow.most_usd_per_request = numberIn(value);
    else if (name === "spend" && isSpan(per)) overflow.spend = { usd: numberIn(usd), per };
    else
      throw new InvalidArgumentError(
        `Give after, tokens, hours, request or spend=50/day, ${spans} (got ${name}=${value}).`,
      );
  }
  return overflow;
}

function parseCache(text: string): Cache {
  const { alone, named } = partsOf(text);
  const [given] = alone;
  const requests = cachedRequests.find((one) => one === given);
  if (requests === undefined || alone.length > 1)
    throw new InvalidArgumentError(`Give one of ${cachedRequests.join(", ")}, or none.`);
  const cache: Cache = { requests };
  for (const [name, value] of named) {
    if (name === "ttl") cache.ttl_seconds = numberIn(value);
    else if (name === "price") cache.price_factor = numberIn(value);
    else throw new InvalidArgumentError(`Give ttl or price behind it (got ${name}=${value}).`);
  }
  return cache;
}

const spans = `of ${overflowSpans.join(", ")}`;

function isSpan(text: string | undefined): text is (typeof overflowSpans)[number] {
  return overflowSpans.some((span) => span === text);
}

function numberIn(text = ""): number {
  const number = Number(text);
  if (text !== "" && Number.isFinite(number)) return number;
  throw new InvalidArgumentError(`Give a number (got ${text}).`);
}

/** Returns one line for each policy. */
export function policyLines(policies: PoliciesRequest | null | undefined): string[] {
  const { continuation, overflow, cache, guardrails, shadow, split } = policies ?? {};
  return [
    ...(continuation ? ["goes on elsewhere with streams that are cut"] : []),
    ...(overflow ? [overflowLine(overflow)] : []),
    ...(cache ? [cacheLine(cache)] : []),
    ...(guardrails?.length ? [guardrailsLine(guardrails)] : []),
    ...(shadow ? [`${shadow.percent} % go to ${shadow.model} as well, unseen`] : []),
    ...(split ?? []).map(({ model, percent }) => `${percent} % are answered by ${model}`),
  ];
}

function overflowLine(overflow: NonNullable<PoliciesRequest["overflow"]>): string {
  const { to, after_seconds: after, prompt_tokens_above: tokens, hours, most_usd_per_request: most, spend } = overflow;
  const said = [
    ...(after == null ? [] : [`after ${after} s`]),
    ...(tokens == null ? [] : [`above ${tokens} tokens`]),
    ...(hours == null ? [] : [`${hours.join(" and ")} UTC`]),
    ...(most == null ? [] : [`${formatRate(most)} a request at most`]),
    ...(spend == null ? [] : [`${formatRate(spend.usd)} a ${spend.per} at most`]),
  ];
  return [`overflows to ${to.map(({ upstream }) => upstream).join(", ")}`, ...said].join(", ");
}

function cacheLine({
  requests,
  ttl_seconds: seconds,
  price_factor: factor,
  semantic,
}: NonNullable<PoliciesRequest["cache"]>) {
  return [
    `gives answers again for ${seconds} s (${requests})`,
    ...(factor ? [`at ${factor} of the price`] : ["for nothing"]),
    ...(semantic ? [`also alike ones, by ${semantic.model} from ${semantic.threshold} on`] : []),
  ].join(", ");
}
