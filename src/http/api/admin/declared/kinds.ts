// The kinds of declared objects: how each is read, compared, created, changed and deleted.
import { forbidden, type GatewayError } from "../../../../base/errors.ts";
import type { Account, AccountStore } from "../../../../domain/account.ts";
import type { DeclaredKind } from "../../../../domain/declared.ts";
import type { Principal } from "../../../../domain/principal.ts";
import type { ManagedModels } from "../../../../inference/models/manage-models.ts";
import type { Upstreams } from "../../../../inference/models/manage-upstreams.ts";
import { modelSettingsToWire } from "../../../../inference/models/model-values.ts";
import { newSettings, settingsToWire } from "../../../../inference/models/upstream-values.ts";
import { attributesToWire, declaredAccount, type TierNames } from "../../../../policy/manage/manage-accounts.ts";
import { figuresToWire, putTier, tierOf } from "../../../../policy/manage/manage-tiers.ts";
import type { Origin } from "../../../../policy/records/audit.ts";
import { defaultTierName, type UpdateAccountRequest } from "../../../../wire/accounts.ts";
import type { SpecOf } from "../../../../wire/declared.ts";
import { policiesShape } from "../../../../wire/policies/model-policies.ts";
import { type AdminAccountDeps, changeAccount } from "../account-routes.ts";
import type { AdminModelDeps } from "../model-routes.ts";
import { type AdminTierDeps, removeTier, storeTier } from "../tier-routes.ts";

export type Settings = Readonly<Record<string, unknown>>;

/** An object as it is now. */
export interface Current {
  id: string;
  /** All settings, in the form of the API. */
  settings: Settings;
  /** Values of secret settings by their member. */
  secrets?: Settings;
  /** Unix seconds; missing for objects without that record. */
  createdAt?: number;
}

/** The request that asks for a change, and the other objects that will exist with it. */
export interface Applying {
  principal: Principal;
  origin: Origin;
  /** Returns the external names of the documents of a kind. */
  planned(kind: DeclaredKind): readonly string[];
}

export interface Kind<Spec> {
  /** Starts the ids of objects. Undefined if the external name is the object's own name. */
  idPrefix?: string;
  /** Members without which the other members have no default values. */
  required: readonly (keyof Spec & string)[];
  /** Members that stay as they are if the document of a managed object leaves them out. */
  kept?: readonly (keyof Spec & string)[];
  /** Members whose values are never shown. */
  secrets?: readonly (keyof Spec & string)[];
  /** True if objects are suspended and not deleted, and keep their external names. */
  isSuspended?: true;
  read(): Promise<readonly Current[]>;
  /** Returns all settings that the document stands for, in the form of `Current`. Throws if the document is wrong. */
  complete(name: string, spec: Spec, how: Applying): Settings;
  create(id: string, spec: Spec, how: Applying): Promise<void>;
  /** `settings` is the result of `complete`. */
  change(id: string, settings: Settings, spec: Spec, how: Applying): Promise<void>;
  remove(id: string, how: Applying): Promise<void>;
}

export type Kinds = { readonly [Name in DeclaredKind]: Kind<SpecOf<Name>> };

export interface KindDeps
  extends Pick<AdminAccountDeps, "keptAnswers" | "changed">,
    Pick<AdminTierDeps, "tiersChanged"> {
  accounts: AdminAccountDeps["accounts"] & AdminTierDeps["accounts"] & Pick<AccountStore, "listAccounts">;
  tiers: AdminAccountDeps["tiers"] & AdminTierDeps["tiers"];
  upstreams: Pick<Upstreams, "list" | "stored" | "add" | "change" | "remove">;
  managedModels: AdminModelDeps["managedModels"] & Pick<ManagedModels, "stored" | "declared">;
}

export function kindsOf(deps: KindDeps): Kinds {
  return { tier: tier(deps), account: account(deps), upstream: upstream(deps), model: model(deps) };
}

function tier(deps: KindDeps): Kind<SpecOf<"tier">> {
  return {
    required: ["requests_per_minute", "tokens_per_minute"],
    read: async () => (await deps.accounts.listTiers()).map((one) => ({ id: one.name, settings: figuresToWire(one) })),
    complete(name, spec, { principal, origin }) {
      putTier(principal, name, spec, deps.tiers, origin);
      return figuresToWire(tierOf(name, spec));
    },
    create: (name, spec, { principal, origin }) => storeTier(deps, principal, name, spec, origin),
    change: (name, _, spec, { principal, origin }) => storeTier(deps, principal, name, spec, origin),
    remove: (name, { principal, origin }) => removeTier(deps, principal, name, origin),
  };
}

function account(deps: KindDeps): Kind<SpecOf<"account">> {
  const { accounts, tiers } = deps;
  return {
    idPrefix: "acct_",
    required: ["name"],
    // A scheduled run must not resume an account that an operator suspended at night.
    kept: ["status"],
    isSuspended: true,
    read: async () => (await allAccounts(accounts)).map((one) => ({ id: one.id, settings: attributesToWire(one) })),
    complete(_, spec, { principal, origin, planned }) {
      const names = planned("tier");
      const known: TierNames = {
        list: () => tiers.list(),
        get: (name) => tiers.get(name) ?? (names.includes(name) ? tiers.find(name) : undefined),
      };
      return attributesToWire(declaredAccount(principal, "", spec, known, origin).account);
    },
    async create(id, spec, { principal, origin }) {
      const { account: made, event } = declaredAccount(principal, id, spec, tiers, origin);
      await accounts.insertAccount(made, event);
      deps.changed([id]);
    },
    change: (id, settings, _, how) => changed(id, settings, how),
    remove: (id, how) => changed(id, { status: "suspended", tier: defaultTierName }, how),
  };

  async function changed(id: string, request: UpdateAccountRequest, { principal, origin }: Applying): Promise<void> {
    const current = await accounts.findAccount(id);
    if (current) await changeAccount(deps, principal, current, request, origin);
  }
}

function upstream({ upstreams }: KindDeps): Kind<SpecOf<"upstream">> {
  return {
    required: ["url"],
    secrets: ["api_key"],
    read: async () =>
      (await upstreams.stored()).map(({ apiKey, createdAt, ...one }) => ({
        id: one.name,
        settings: settingsToWire(one),
        createdAt,
        ...(apiKey === undefined ? {} : { secrets: { api_key: apiKey } }),
      })),
    complete(name, spec) {
      const known = upstreams.list().find((one) => one.name === name);
      if (known?.source === "file" || known?.source === "node") throw elsewhere("upstream", name, known.source);
      return settingsToWire(newSettings({ name, ...spec }));
    },
    create: async (name, spec, { principal, origin }) =>
      void (await upstreams.add(principal, { name, ...spec }, origin)),
    async change(name, settings, { api_key = null }, { principal, origin }) {
      await upstreams.change(principal, name, { ...settings, api_key }, origin);
    },
    remove: (name, { principal, origin }) => upstreams.remove(principal, name, origin),
  };
}

const noPolicies = Object.fromEntries(Object.keys(policiesShape.shape).map((name) => [name, null]));

function model({ managedModels }: KindDeps): Kind<SpecOf<"model">> {
  return {
    required: [],
    read: async () =>
      (await managedModels.stored()).map((one) => ({
        ...{ id: one.id, createdAt: one.createdAt },
        settings: modelSettingsToWire(one),
      })),
    complete: (id, spec, { planned }) => managedModels.declared(id, spec, planned("upstream")),
    create: async (id, spec, { principal, origin }) =>
      void (await managedModels.add(principal, { id, ...spec }, origin)),
    async change(id, settings, { policies }, { principal, origin }) {
      await managedModels.change(principal, id, { ...settings, policies: { ...noPolicies, ...policies } }, origin);
    },
    remove: (id, { principal, origin }) => managedModels.remove(principal, id, origin),
  };
}

/** Returns the error for an object that is defined outside of the database. */
function elsewhere(kind: string, name: string, source: "file" | "node"): GatewayError {
  return forbidden(
    source === "node"
      ? `name: ${name} is a node; choose another name.`
      : `The ${kind} ${name} is defined in headrace.yaml and read-only here: leave out its document, or take it out of that file.`,
  );
}

async function allAccounts(accounts: Pick<AccountStore, "listAccounts">): Promise<Account[]> {
  const all: Account[] = [];
  for (;;) {
    const page = await accounts.listAccounts({ after: all.at(-1)?.id, limit: 500 });
    all.push(...page);
    if (page.length < 500) return all;
  }
}
