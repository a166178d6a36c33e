// Checks the policies of a model against its deployments, other models and the guardrails.
import { nearest } from "../../../base/text/nearest.ts";
import type { Capabilities } from "../capabilities.ts";
import { type EntryFault, lackedCapability } from "../model-entry.ts";
import type { ModelPolicies } from "./model-policies.ts";

/** The model that has the policies. If it has no deployments, it runs on every upstream that lists it. */
export interface PolicyOwner {
  readonly id: string;
  readonly capabilities?: Capabilities | null | undefined;
  readonly deployments: readonly { readonly upstream: string }[];
}

export interface PolicySurroundings {
  /** Names of all upstreams that the policies may name. Undefined if upstreams may still be added. */
  readonly upstreams?: readonly string[];
  readonly guardrails: readonly string[];
  capabilitiesOf(id: string): Capabilities | undefined;
  /** Returns what is wrong with a name of the price list; undefined if it is correct. */
  priceFault(name: string): Pick<EntryFault, "message" | "fix"> | undefined;
}

type Around = Readonly<PolicySurroundings>;

export function policyFaults(owner: PolicyOwner, policies: ModelPolicies, around: Around): EntryFault[] {
  const { overflow, cache, guardrails = [], shadow, split = [] } = policies;
  return [
    ...(overflow ? overflowFaults(owner, overflow.to, around) : []),
    ...(cache?.semantic ? embeddingFaults(cache.semantic.embeddingModel, around) : []),
    ...guardrailFaults(guardrails, around.guardrails),
    ...(shadow ? modelFaults(owner, shadow.model, ["shadow", "model"], around) : []),
    ...split.flatMap(({ model }, index) => modelFaults(owner, model, ["split", index, "model"], around)),
    ...splitFaults(split),
  ].map(({ path, ...fault }) => ({ path: ["policies", ...path], ...fault }));
}

function overflowFaults(
  { id, deployments }: PolicyOwner,
  to: NonNullable<ModelPolicies["overflow"]>["to"],
  { priceFault, upstreams }: Around,
): EntryFault[] {
  const names = to.map(({ upstream }) => upstream);
  const targets = [...new Set(deployments.map(({ upstream }) => upstream))];
  return to.flatMap(({ upstream, costOf }, index): EntryFault[] => {
    const path = ["overflow", "to", index];
    const priced = costOf === null ? undefined : priceFault(costOf);
    const faults: EntryFault[] = priced ? [{ path: [...path, "cost_of"], ...priced }] : [];
    if (names.indexOf(upstream) !== index) {
      faults.push({ path: [...path, "upstream"], message: "is named twice", fix: "Name each upstream once." });
    } else if (targets.length > 0 && !targets.includes(upstream)) {
      const message = `has no deployment of ${id}`;
      const fix = `Name one of ${targets.join(", ")}, or add a deployment there.`;
      faults.push({ path: [...path, "upstream"], message, fix });
    } else if (upstreams && !upstreams.includes(upstream)) {
      const fix = "Name one that there is, or add the upstream.";
      faults.push({ path: [...path, "upstream"], message: "names an upstream that there is not", fix });
    }
    return faults;
  });
}

function embeddingFaults(model: string, { capabilitiesOf }: Around): EntryFault[] {
  if (capabilitiesOf(model)?.embeddings !== false) return [];
  const path = ["cache", "semantic", "model"];
  return [{ path, message: "makes no embeddings: its embeddings is false", fix: "Name an embedding model." }];
}

function guardrailFaults(names: readonly string[], known: readonly string[]): EntryFault[] {
  return names.flatMap((name, index): EntryFault[] => {
    const fault = (message: string, fix: string) => [{ path: ["guardrails", index], message, fix }];
    if (names.indexOf(name) !== index) return fault("is named twice", "Name each guardrail once.");
    if (known.includes(name)) return [];
    const meant = nearest(name, known);
    const guess = meant === undefined ? "" : `Did you mean ${meant}? `;
    return fault("names no guardrail of headrace.yaml", `${guess}Add an entry of that name under guardrails there.`);
  });
}

function modelFaults(
  { id, capabilities }: PolicyOwner,
  model: string,
  path: EntryFault["path"],
  { capabilitiesOf }: Around,
): EntryFault[] {
  if (model === id) return [{ path, message: "is the model itself", fix: "Name another model." }];
  const lacks = lackedCapability(capabilities, capabilitiesOf(model));
  if (lacks === undefined) return [];
  return [{ path, message: `cannot do what ${id} does: its ${lacks} is false`, fix: "Name a model that can." }];
}

function splitFaults(parts: NonNullable<ModelPolicies["split"]>): EntryFault[] {
  const models = parts.map(({ model }) => model);
  const twice = models.flatMap((model, index): EntryFault[] => {
    if (models.indexOf(model) === index) return [];
    return [{ path: ["split", index, "model"], message: "is named twice", fix: "Give it the share of both." }];
  });
  const percent = parts.reduce((sum, part) => sum + part.percent, 0);
  // Allows for rounding: in binary, 33.3 and 66.7 add up to slightly more than 100.
  if (percent <= 100 + 1e-6) return twice;
  const message = `has shares of ${Number(percent.toFixed(3))} % together, and 100 % are all requests`;
  return [...twice, { path: ["split"], message, fix: "Make the shares smaller." }];
}
