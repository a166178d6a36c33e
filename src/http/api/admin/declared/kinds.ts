// The kinds of declared objects: how each is read, compared, created, changed and deleted.
import { fieldError, forbidden, GatewayError } from "../../../../base/errors.ts";
import { shown } from "../../../../base/text/shown.ts";
import type { Account, AccountStore } from "../../../../domain/account.ts";
import type { DeclaredKind } from "../../../../domain/declared.ts";
import type { SecuredWebhook, WebhookOwner } from "../../../../domain/notifications/webhook.ts";
import { type ApiKeyRecord, type KeyStore, keyStatus, type Principal } from "../../../../domain/principal.ts";
import type { McpServer } from "../../../../domain/tools/mcp-server.ts";
import type { ManagedModels } from "../../../../inference/models/manage-models.ts";
import type { Upstreams } from "../../../../inference/models/manage-upstreams.ts";
import { modelSettingsToWire } from "../../../../inference/models/model-values.ts";
import { newSettings, settingsToWire } from "../../../../inference/models/upstream-values.ts";
import type { ManagedServers } from "../../../../mcp/registry/managed-servers.ts";
import { settingsToWire as mcpServerToWire } from "../../../../mcp/registry/server-view.ts";
import {
  hasSecretUrl,
  operatorsOwner,
  type Webhooks,
  settingsToWire as webhookToSettings,
} from "../../../../notifications/manage-webhooks.ts";
import { attributesToWire, declaredAccount, type TierNames } from "../../../../policy/manage/manage-accounts.ts";
import {
  createKeyAsOperator,
  attributesToWire as keyToSettings,
  replaceKeyAsOperator,
  revokeKeyAsOperator,
} from "../../../../policy/manage/manage-keys.ts";
import { figuresToWire, putTier, tierOf } from "../../../../policy/manage/manage-tiers.ts";
import { requireOtherKey } from "../../../../policy/manage/operator.ts";
import type { Origin } from "../../../../policy/records/audit.ts";
import { defaultTierName, type UpdateAccountRequest } from "../../../../wire/accounts.ts";
import type { SpecOf } from "../../../../wire/operations/declared.ts";
import { policiesShape } from "../../../../wire/policies/model-policies.ts";
import { type AdminAccountDeps, changeAccount } from "../account-routes.ts";
import { type AdminKeyDeps, changeKey } from "../key-routes.ts";
import type { AdminModelDeps } from "../model-routes.ts";
import { type AdminTierDeps, removeTier, storeTier } from "../tier-routes.ts";

export type Settings = Readonly<Record<string, unknown>>;

/** An existing object. */
export interface Current {
  id: string;
  /** The complete settings, in the form of the API. */
  settings: Settings;
  /** Values of secret settings by their path, such as `headers.authorization`. */
  secrets?: Settings;
  /** Unix seconds. Missing if the creation time of such objects is not stored. */
  createdAt?: number;
  /** True for a key that cannot be used any more. Applying its document creates another key. */
  isEnded?: boolean;
  /** True if the object's own secret has been used. Such an object is in use, so it is not replaced. */
  isUsed?: boolean;
}

/** The context of a change: the caller, the documents that are applied together, and the accounts. */
export interface Applying {
  principal: Principal;
  origin: Origin;
  /** Returns the external names of the documents of a kind. */
  planned(kind: DeclaredKind): readonly string[];
  /** Ids of accounts by their external names, including accounts that will exist. */
  accounts: ReadonlyMap<string, string>;
}

export interface Reading {
  markedIds: readonly string[];
  /** Returns the external name of an account. */
  accountName(id: string): string;
  nowSeconds: number;
}

export interface Kind<Spec> {
  /** Prefix of the ids of new objects. Undefined if the external name is the id. */
  idPrefix?: string;
  /** Members that must be given before the defaults of the other members can be determined. */
  required: readonly (keyof Spec & string)[];
  /** Members that keep their value if a managed object's document leaves them out. */
  kept?: readonly (keyof Spec & string)[];
  /** Returns the settings that are never shown, by their paths. */
  secrets?(spec: Spec): Settings;
  /** True if the object has a secret of its own, which is only shown when the object is created. */
  hasSecret?: true;
  /**
   * Settings for objects of this kind, which are suspended instead of deleted. A suspended object keeps its external
   * name.
   */
  suspension?: Settings;
  /** Returns the objects of this kind. For keys, returns only those with the given ids. */
  read(how: Reading): Promise<readonly Current[]>;
  /**
   * Returns all settings of the document with defaults, in the form of `Current`. Throws if the document is invalid.
   */
  complete(name: string, spec: Spec, how: Applying): Settings | Promise<Settings>;
  /** Creates the object. Resolves with its secret, if it has one. */
  create(id: string, spec: Spec, how: Applying): Promise<string | undefined>;
  /** Changes the object. `settings` is the result of `complete`. */
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
  mcpServers: Pick<ManagedServers, "stored" | "declared" | "add" | "change" | "remove">;
  webhooks: Pick<
    Webhooks,
    "list" | "find" | "settings" | "routingKey" | "create" | "update" | "rotateSecret" | "delete"
  >;
  keys: AdminKeyDeps["keys"] & Pick<KeyStore, "findKeys">;
  pepper: AdminKeyDeps["pepper"];
}

export function kindsOf(deps: KindDeps): Kinds {
  return {
    ...{ tier: tier(deps), account: account(deps), upstream: upstream(deps), model: model(deps) },
    ...{ mcp_server: mcpServer(deps), webhook: webhook(deps), key: key(deps) },
  };
}

function tier(deps: KindDeps): Kind<SpecOf<"tier">> {
  return {
    required: ["requests_per_minute", "tokens_per_minute"],
    read: async () => (await deps.accounts.listTiers()).map((one) => ({ id: one.name, settings: figuresToWire(one) })),
    complete(name, spec, { principal, origin }) {
      putTier(principal, name, spec, deps.tiers, origin);
      return figuresToWire(tierOf(name, spec));
    },
    create: (name, spec, { principal, origin }) => nothing(storeTier(deps, principal, name, spec, origin)),
    change: (name, _, spec, { principal, origin }) => storeTier(deps, principal, name, spec, origin),
    remove: (name, { principal, origin }) => removeTier(deps, principal, name, origin),
  };
}

/** The default tier replaces the suspended account's own tier, so that the own tier can be pruned too. */
const suspension = { status: "suspended", tier: defaultTierName } as const;

function account(deps: KindDeps): Kind<SpecOf<"account">> {
  const { accounts, tiers } = deps;
  return {
    idPrefix: "acct_",
    required: ["name"],
    // A scheduled run must not resume an account that an operator has suspended in the meantime.
    kept: ["status"],
    suspension,
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
      return undefined;
    },
    change: (id, settings, _, how) => changed(id, settings, how),
    remove: (id, how) => changed(id, suspension, how),
  };

  async function changed(id: string, request: UpdateAccountRequest, { principal, origin }: Applying): Promise<void> {
    const current = await accounts.findAccount(id);
    if (current) await changeAccount(deps, principal, current, request, origin);
  }
}

function upstream({ upstreams }: KindDeps): Kind<SpecOf<"upstream">> {
  return {
    required: ["url"],
    secrets: ({ api_key }) => ({ api_key }),
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
    create: (name, spec, { principal, origin }) => nothing(upstreams.add(principal, { name, ...spec }, origin)),
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
    create: (id, spec, { principal, origin }) => nothing(managedModels.add(principal, { id, ...spec }, origin)),
    async change(id, settings, { policies }, { principal, origin }) {
      await managedModels.change(principal, id, { ...settings, policies: { ...noPolicies, ...policies } }, origin);
    },
    remove: (id, { principal, origin }) => managedModels.remove(principal, id, origin),
  };
}

function mcpServer({ mcpServers }: KindDeps): Kind<SpecOf<"mcp_server">> {
  return {
    required: ["url", "node"],
    secrets: ({ headers, oauth }) => ({
      ...Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [`headers.${name}`, value])),
      "oauth.client_secret": oauth?.client_secret,
    }),
    read: async ({ accountName }) =>
      (await mcpServers.stored()).map(({ server, createdAt }) => ({
        ...{ id: server.name, createdAt },
        settings: serverSettings(server, server.accounts?.map(accountName) ?? null),
        secrets: serverSecrets(server),
      })),
    async complete(name, spec, how) {
      return serverSettings(await mcpServers.declared({ name, ...withIds(spec, how) }), spec.accounts ?? null);
    },
    create: (name, spec, how) => nothing(mcpServers.add(how.principal, { name, ...withIds(spec, how) }, how.origin)),
    async change(name, { url: _, node: __, ...settings }, spec, how) {
      const { url, node, headers = null, accounts } = withIds(spec, how);
      const oauth = spec.oauth ? { ...noClient, ...spec.oauth } : null;
      const request = { ...settings, url, node, headers, oauth, accounts: accounts ?? null };
      await mcpServers.change(how.principal, name, request, how.origin);
    },
    remove: (name, { principal, origin }) => mcpServers.remove(principal, name, origin),
  };
}

const noClient = { issuer: null, client_id: null, client_secret: null, scopes: null };

function serverSettings(server: McpServer, accounts: readonly string[] | null): Settings {
  const { place, credentials: _, header_names: __, oauth, url, node, ...settings } = mcpServerToWire(server);
  const { has_client_secret: ___, ...client } = oauth ?? {};
  return { ...(url === null ? { node } : { url }), ...settings, accounts, oauth: oauth && client };
}

function serverSecrets({ credentials }: McpServer): Settings {
  if (credentials.kind === "person") return { "oauth.client_secret": credentials.clientSecret };
  if (credentials.kind === "none") return {};
  return Object.fromEntries(Object.entries(credentials.headers).map(([name, value]) => [`headers.${name}`, value]));
}

function withIds(spec: SpecOf<"mcp_server">, { accounts }: Applying): SpecOf<"mcp_server"> {
  if (!spec.accounts) return spec;
  return { ...spec, accounts: spec.accounts.map((name, index) => accountId(name, accounts, `accounts[${index}]`)) };
}

function accountId(name: string, accounts: Applying["accounts"], member: string): string {
  const id = accounts.get(name);
  if (id !== undefined) return id;
  throw fieldError(member, `there is no account ${shown(name)}, neither here nor among the documents.`);
}

function webhook({ webhooks }: KindDeps): Kind<SpecOf<"webhook">> {
  return {
    idPrefix: "whk_",
    required: ["url", "account", "environment"],
    // Stored URLs are normalised, so a URL in a document is normalised before the comparison.
    secrets: ({ format, url, routing_key }) => ({
      routing_key,
      ...(hasSecretUrl(format) ? { url: URL.parse(url)?.href ?? url } : {}),
    }),
    hasSecret: true,
    async read({ markedIds, accountName }) {
      const ofOperators = await webhooks.list(operatorsOwner);
      const known = new Set(ofOperators.map(({ id }) => id));
      const ofAccounts: SecuredWebhook[] = [];
      for (const id of markedIds.filter((one) => !known.has(one))) {
        const found = await webhooks.find(id);
        if (found) ofAccounts.push(found);
      }
      return [...ofOperators, ...ofAccounts].map((one) => ({
        ...{ id: one.id, createdAt: one.createdAt },
        settings: { ...ownerToSettings(one, accountName), ...shownSettings(one) },
        secrets: { routing_key: webhooks.routingKey(one), ...(hasSecretUrl(one.format) ? { url: one.url } : {}) },
      }));
    },
    complete(_, { account: name, environment, ...spec }, how) {
      const settings = webhooks.settings(webhookOwner({ account: name, environment }, how), spec);
      return { ...(name === undefined ? {} : { account: name, environment }), ...shownSettings(settings) };
    },
    async create(id, { account: name, environment, ...spec }, how) {
      const owner = webhookOwner({ account: name, environment }, how);
      const { secret } = await webhooks.create(how.principal, owner, spec, how.origin, id);
      // The secret of a PagerDuty webhook is the routing key, which the caller has.
      return spec.routing_key ? undefined : secret;
    },
    async change(id, { account: _, environment: __, ...settings }, spec, how) {
      const { format, url, routing_key: routingKey } = spec;
      const { principal, origin } = how;
      const current = await required(id);
      const owner = webhookOwner(spec, how);
      if (owner.accountId !== current.accountId || owner.environment !== current.environment) {
        throw fieldError("account", "cannot change, nor can environment. Give the document another name.");
      }
      if ((format ?? "standard") !== current.format) {
        throw fieldError("format", "cannot change. Give the document another name.");
      }
      if (routingKey && routingKey !== webhooks.routingKey(current)) {
        await webhooks.rotateSecret(principal, current, { overlapSeconds: 0, routingKey }, origin);
      }
      await webhooks.update(principal, current, { ...settings, url }, origin);
    },
    async remove(id, { principal, origin }) {
      await webhooks.delete(principal, await required(id), origin);
    },
  };

  async function required(id: string): Promise<SecuredWebhook> {
    const found = await webhooks.find(id);
    if (found) return found;
    throw new GatewayError("not_found", `There is no webhook ${shown(id)}.`);
  }
}

/** Returns the account and environment that the document names. If it names neither, returns the operators. */
function webhookOwner(
  { account: name, environment }: Pick<SpecOf<"webhook">, "account" | "environment">,
  { accounts }: Applying,
): WebhookOwner {
  if (name !== undefined && environment !== undefined) {
    return { accountId: accountId(name, accounts, "account"), environment };
  }
  if (name === undefined && environment === undefined) return operatorsOwner;
  throw fieldError(name === undefined ? "account" : "environment", "is required: account and environment go together.");
}

function ownerToSettings({ accountId: id, environment }: WebhookOwner, accountName: Reading["accountName"]): Settings {
  return id === null ? {} : { account: accountName(id), environment };
}

/** Returns the settings for display, without the URL if the URL is a secret. */
function shownSettings(webhook: Parameters<typeof webhookToSettings>[0]): Settings {
  const { url, ...others } = webhookToSettings(webhook);
  return hasSecretUrl(webhook.format) ? others : { url, ...others };
}

function key(deps: KindDeps): Kind<SpecOf<"key">> {
  const { keys, pepper } = deps;
  const made = ({ account: name, environment, ...request }: SpecOf<"key">, how: Applying, id?: string) => {
    const owner = { accountId: accountId(name, how.accounts, "account"), environment };
    const context = { pepper, origin: how.origin, ...(id === undefined ? {} : { id }) };
    return createKeyAsOperator(how.principal, request, owner, context);
  };
  return {
    idPrefix: "key_",
    required: ["account", "environment", "name"],
    hasSecret: true,
    async read({ markedIds, accountName, nowSeconds }) {
      const records = new Map((await keys.findKeys(markedIds)).map((record) => [record.id, record]));
      return markedIds.flatMap((id): Current[] => {
        const record = records.get(id);
        if (!record) return [];
        const owner = { account: accountName(record.accountId), environment: record.environment };
        return [
          {
            ...{ id: record.id, createdAt: record.createdAt, isUsed: record.lastUsedAt !== null },
            isEnded: ["revoked", "expired"].includes(keyStatus(record, nowSeconds)),
            settings: { ...owner, ...keyToSettings(record) },
          },
        ];
      });
    },
    complete(_, spec, how) {
      return { account: spec.account, environment: spec.environment, ...keyToSettings(made(spec, how).record) };
    },
    async create(id, spec, how) {
      const { record, key: secret, event } = made(spec, how, id);
      await keys.insertKey(record, event);
      return secret;
    },
    async change(id, _, { account: name, environment, ...request }, how) {
      const record = await required(id);
      const isHere = record.accountId === how.accounts.get(name) && record.environment === environment;
      if (!isHere) throw fieldError("account", "cannot change, nor can environment. Give the document another name.");
      await changeKey(deps, record, replaceKeyAsOperator(how.principal, record, request, how.origin));
    },
    async remove(id, { principal, origin }) {
      const record = await required(id);
      requireOtherKey(principal, record);
      await changeKey(deps, record, revokeKeyAsOperator(principal, record, origin));
    },
  };

  async function required(id: string): Promise<ApiKeyRecord> {
    const chain = await keys.findChainById(id);
    if (chain) return chain.keys[0];
    throw new GatewayError("not_found", `There is no API key ${shown(id)}.`);
  }
}

/** Waits for the work and resolves with undefined, for objects without a secret of their own. */
async function nothing(work: Promise<unknown>): Promise<undefined> {
  await work;
  return undefined;
}

/** Returns the error for an object that headrace.yaml or a node defines, not the database. */
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
