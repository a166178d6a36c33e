// The form that declares or changes a model, and its API request.
import { abilities } from "../../api/models.ts";
import type { ManagedModel } from "../../api/types.ts";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";

import { type PoliciesForm, policiesFormOf, policiesToWire } from "./policies/policy-form.ts";

export type Said = "" | "yes" | "no";

export interface FormDeployment {
  /** The React key of the deployment. */
  key: number;
  upstream: string;
  /** The model's name at the upstream; empty means the model's own id. */
  model: string;
  weight: TypedNumber;
}

/** The values of the form's fields. An empty field means the upstream's value. */
export interface ModelForm {
  /** `own` if the rates are typed in the form, `list` if they come from the price list. */
  priced: "own" | "list";
  /** An entry of the price list, `vendor/model`; empty while none is chosen. */
  priceOf: string;
  input: TypedNumber;
  /** The rate of cached input tokens; empty means the input rate. */
  cachedInput: TypedNumber;
  output: TypedNumber;
  /** Rates that only the API can set; the form keeps them. */
  otherRates: Omit<NonNullable<ManagedModel["price"]>, "input" | "cached_input" | "output">;
  deployments: FormDeployment[];
  fallbacks: string[];
  aliases: string[];
  capabilities: Record<(typeof abilities)[number], Said>;
  context: TypedNumber;
  environments: string[];
  ownedBy: string;
  policies: PoliciesForm;
}

export const fieldNames = [
  ...[
    "price",
    "price_of",
    "deployments",
    "fallbacks",
    "aliases",
    "capabilities",
    "context_length",
    "environments",
    "owned_by",
  ],
];

export function formOf(model: ManagedModel | undefined): ModelForm {
  const settings = model?.settings;
  const said = (use: (typeof abilities)[number]): Said => {
    const value = settings?.capabilities?.[use];
    return value === undefined ? "" : value ? "yes" : "no";
  };
  const priceOf = settings?.price_of ?? "";
  const { input = "", cached_input: cachedInput = "", output = "", ...otherRates } = settings?.price ?? {};
  return {
    ...{ priced: settings?.price || priceOf === "" ? "own" : "list", priceOf },
    ...{ input, cachedInput, output, otherRates },
    deployments: (settings?.deployments ?? []).map(({ upstream, model: id, weight }, key) => ({
      ...{ key, upstream, model: id && id !== model?.id ? id : "", weight: weight ?? 1 },
    })),
    fallbacks: [...(settings?.fallbacks ?? [])],
    aliases: [...(settings?.aliases ?? [])],
    capabilities: Object.fromEntries(abilities.map((use) => [use, said(use)])) as ModelForm["capabilities"],
    context: settings?.context_length ?? "",
    environments: [...(settings?.environments ?? [])],
    ownedBy: settings?.owned_by ?? "",
    policies: policiesFormOf(settings?.policies),
  };
}

export function toWire(form: ModelForm) {
  const said = abilities.filter((use) => form.capabilities[use] !== "");
  const isListed = form.priced === "list";
  const [input, cached, output] = [numberOf(form.input), numberOf(form.cachedInput), numberOf(form.output)];
  const ofCached = cached === null ? {} : { cached_input: cached };
  return {
    price: isListed || input === null || output === null ? null : { ...form.otherRates, ...ofCached, input, output },
    price_of: isListed && form.priceOf !== "" ? form.priceOf : null,
    deployments: form.deployments.map(({ upstream, model, weight }) => ({
      upstream,
      ...(model.trim() === "" ? {} : { model: model.trim() }),
      weight: numberOf(weight) ?? 1,
    })),
    fallbacks: form.fallbacks,
    aliases: form.aliases,
    capabilities:
      said.length === 0 ? null : Object.fromEntries(said.map((use) => [use, form.capabilities[use] === "yes"])),
    context_length: numberOf(form.context),
    environments: form.environments.length === 0 ? null : (form.environments as ManagedModel["environments"]),
    owned_by: form.ownedBy.trim() === "" ? null : form.ownedBy.trim(),
    policies: policiesToWire(form.policies),
  };
}
