// The models of a server as operators see them: reads and prints one model.
import { type ManagedModelWire, managedModelShape } from "../../wire/models.ts";
import { understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { formatCount, formatRate, formatTime } from "../terminal/figures.ts";
import { wrapped } from "../terminal/fitted-text.ts";
import { formatFacts, printable, type Terminal } from "../terminal/terminal.ts";
import { policyLines } from "./model-policies.ts";

export const modelArgument = ["<model>", "id of the model, as headrace models lists it"] as const;
export const operatorNeeds = "Needs an operator's key, from headrace operator-key.";

export function modelPath(id: string): string {
  return `/admin/models/${encodeURIComponent(id)}`;
}

export function understoodModel(answer: unknown, connection: Connection): ManagedModelWire {
  return understood(managedModelShape, answer, connection, "model");
}

export const sourceNames: Record<ManagedModelWire["source"], string> = {
  file: "headrace.yaml",
  database: "declared",
  upstream: "listed",
};

export function priceText(price: ManagedModelWire["price"]): string {
  return price ? `${usualText(price)}${price.variants?.length ? ", other rates at times" : ""}` : "none";
}

function usualText({ input, cached_input: cached, output }: NonNullable<ManagedModelWire["price"]>): string {
  return `${formatRate(input)} in${cached === undefined ? "" : ` (${formatRate(cached)} cached)`}, ${formatRate(output)} out`;
}

/**
 * Returns the remaining prices, by their names in headrace.yaml: all except the prices for input, cached input and
 * output. The price variants follow.
 */
function otherRates(price: ManagedModelWire["price"]): string[] {
  const { input: _input, output: _output, cached_input: _cached, variants = [], ...rates } = price ?? {};
  return [rates, ...variants].flatMap((one, i) => {
    const said = Object.entries(one).map(
      ([name, value]) => `${name}: ${Array.isArray(value) ? value.join(" ") : value}`,
    );
    return said.length === 0 ? [] : [`${i === 0 ? "" : "at times "}${said.join(", ")}`];
  });
}

export function printModel(terminal: Terminal, model: ManagedModelWire): void {
  const { capabilities, context_length: context, price, deployments, fallbacks, aliases } = model;
  const abilities = Object.entries(capabilities ?? {}).map(([name, able]) => (able ? name : `no ${name}`));
  const rows = deployments.map(({ upstream, model: id, weight, state, process, listed, attempts }) => {
    const more = [
      ...(process === null ? [] : [process]),
      ...(id === model.id ? [] : [`as ${id}`]),
      ...(deployments.length > 1 ? [`weight ${weight}`] : []),
      ...(listed === false ? ["not in its list"] : []),
      ...(attempts?.failing ? [attempts.summary] : []),
    ];
    return `${upstream}: ${state.replaceAll("_", " ")}${more.length > 0 ? ` (${more.join(", ")})` : ""}`;
  });
  const [first = "nowhere", ...others] = rows;
  const [policy = "none", ...policies] = policyLines(model.settings?.policies);
  const facts: [string, string][] = [
    ["Status", model.status],
    ["Price", price ? `${usualText(price)} per million tokens` : "none: what it uses is not counted as spend"],
    ...otherRates(price).map((rate): [string, string] => ["", rate]),
    ["Can do", abilities.join(", ") || "unknown"],
    ["Context", context === null ? "unknown" : `${formatCount(context)} tokens`],
    ...(model.shutdown_date == null ? [] : [["Shuts down", model.shutdown_date] as [string, string]]),
    ["Environments", model.environments.join(", ") || "none"],
    ["Runs at", first],
    ...others.map((row): [string, string] => ["", row]),
    ["Stand in", fallbacks.join(", ") || "none"],
    ["Aliases", aliases.join(", ") || "none"],
    ["Policies", policy],
    ...policies.map((line): [string, string] => ["", line]),
    ...spendFacts(model),
    ["Owner", model.owned_by ?? "-"],
    ["Comes from", sourceText(model)],
  ];
  const { bold, columns } = terminal.out;
  for (const line of wrapped(printable(model.id), columns ?? Number.POSITIVE_INFINITY)) terminal.print(bold(line));
  terminal.print(formatFacts(facts, terminal.out));
}

function spendFacts({ overflow_spend: spend }: ManagedModelWire): [string, string][] {
  if (!spend) return [];
  const { spent, limit, per, ends_at: end } = spend;
  return [
    ["Overflow cost", `${formatRate(spent)} of ${formatRate(limit)} in this ${per}, which ends ${formatTime(end)}`],
  ];
}

function sourceText({ source, overrides_database: hidesOne, created_at: at }: ManagedModelWire): string {
  if (source === "database") return `declared at the server, ${formatTime(at)}`;
  if (source === "upstream") return "its upstream; nothing was declared of it";
  const hidden = hidesOne ? "; one declared at the server does not count beside it" : "";
  return `headrace.yaml, where alone it can be changed${hidden}`;
}
