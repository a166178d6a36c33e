// The options for a model's settings, and the request fields that they become.
import { InvalidArgumentError } from "commander";
import { type Environment, environments } from "../../domain/api-key.ts";
import { capabilityNames } from "../../domain/models/capabilities.ts";
import type { OptionValues } from "../command.ts";
import { parseNames } from "../keys/key-settings.ts";

/** The text "none" clears a setting, because Commander turns null into an empty text. */
export type OrNone<Value> = Value | "none";

interface Deployment {
  upstream: string;
  model?: string;
  weight?: number;
}

export const settingsHelp = `\
A place is <upstream>, <upstream>=<its id of the model>, or with a share of the
requests <upstream>*<weight>=<id>. Every option also takes none: then it is as
the upstream says, and for the price, that nothing is charged.`;

export const modelSettings = {
  price: [
    "--price <figures>",
    "USD per million tokens, such as input=0.15,cached_input=0.02,output=0.60",
    orNone(parsePrice),
  ],
  priceOf: ["--price-of <name>", "a model of the price list, such as openai/gpt-5: headrace prices", orNone(String)],
  deployment: [
    "--deployment <place>",
    "where it runs; repeatable; replaces the current list",
    (text: string, before: OrNone<Deployment[]> | undefined): OrNone<Deployment[]> =>
      text === "none" ? text : [...(Array.isArray(before) ? before : []), parseDeployment(text)],
  ],
  fallbacks: [
    "--fallbacks <ids>",
    "models to try when this one fails, best first, separated by commas",
    orNone(parseNames),
  ],
  aliases: ["--aliases <names>", "other names for it, separated by commas; a name may end in *", orNone(parseNames)],
  capabilities: [
    "--capabilities <names>",
    `what it can do, of ${capabilityNames.join(", ")}; no-… for what it cannot`,
    orNone(parseCapabilities),
  ],
  context: ["--context <tokens>", "tokens of prompt and answer together", orNone(parseTokens)],
  environments: [
    "--environments <names>",
    `environments that may use it: ${environments.join(", ")}`,
    orNone(parseEnvironments),
  ],
  owner: ["--owner <label>", "owner label in the list of models"],
} as const;

export function modelFields(options: OptionValues<typeof modelSettings>): Record<string, unknown> {
  const fields = {
    price: options.price,
    price_of: options.priceOf,
    deployments: options.deployment,
    fallbacks: options.fallbacks,
    aliases: options.aliases,
    capabilities: options.capabilities,
    context_length: options.context,
    environments: options.environments,
    owned_by: options.owner,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, value === "none" ? null : value]));
}

export function orNone<Value>(parse: (text: string) => Value): (text: string) => OrNone<Value> {
  return (text) => (text === "none" ? text : parse(text));
}

function parsePrice(text: string): Record<string, number> {
  const figures = parseNames(text).map((figure): [string, number] => {
    const [, name = "", amount = ""] = /^([a-z_0-9]+)=([0-9.]+)$/.exec(figure) ?? [];
    const usd = Number(amount);
    if (name !== "" && amount !== "" && Number.isFinite(usd)) return [name, usd];
    throw new InvalidArgumentError("Give figures such as input=0.15,output=0.60, or none.");
  });
  return Object.fromEntries(figures);
}

function parseDeployment(text: string): Deployment {
  const [, upstream, weight, model] = /^([^=*]+)(?:\*(\d+))?(?:=(.+))?$/.exec(text) ?? [];
  if (upstream === undefined) {
    throw new InvalidArgumentError("Give a place such as vllm, vllm=llama-3.1-8b or vllm*2=llama-3.1-8b.");
  }
  return { upstream, ...(model ? { model } : {}), ...(weight ? { weight: Number(weight) } : {}) };
}

function parseCapabilities(text: string): Record<string, boolean> {
  const said = parseNames(text).map((word): [string, boolean] => {
    const name = word.replace(/^no-/, "");
    if (capabilityNames.some((known) => known === name)) return [name, word === name];
    throw new InvalidArgumentError(`It must be of ${capabilityNames.join(", ")}, or no- before one, or none.`);
  });
  return Object.fromEntries(said);
}

function parseTokens(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("Give a whole number of tokens such as 8192, or none.");
}

export function parseEnvironments(text: string): Environment[] {
  const names = parseNames(text);
  const known = environments.filter((environment) => names.includes(environment));
  if (known.length === new Set(names).size) return known;
  throw new InvalidArgumentError(`It must be of ${environments.join(", ")}, separated by commas.`);
}
