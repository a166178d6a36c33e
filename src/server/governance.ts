// Composes the governance of requests: keys, tokens, tiers, limits, the ledger, stored chats and responses, with
// background work.

import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { StartError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Config, ReloadableConfig } from "../config/config.ts";
import { type ChangeFeed, noChangeFeed } from "../domain/change-feed.ts";
import type { KeyRing } from "../domain/key-ring.ts";
import type { LimitSet } from "../domain/limits/limits.ts";
import type { NewChat } from "../domain/models/stored-chat.ts";
import type { KeyChain } from "../domain/principal.ts";
import type { SealFor } from "../domain/seal.ts";
import type { ToolContent } from "../domain/tools/tool-content.ts";
import { SqlComparisons } from "../ledger/comparisons.ts";
import { SpoolLedger } from "../ledger/ledger.ts";
import { recentUsage } from "../ledger/recent-usage.ts";
import { SqlRequestLog } from "../ledger/request-log.ts";
import { totalsSince, unpricedSince } from "../ledger/usage/counted-since.ts";
import { SqlPeopleUsage } from "../ledger/usage/people-usage.ts";
import { SqlUsageReports } from "../ledger/usage/usage-reports.ts";
import { MemoryLimits } from "../limits/memory/memory-limits.ts";
import { WindowStarts } from "../limits/memory/window-starts.ts";
import type { SharedLimits, SharedLimitsOptions } from "../limits/shared/shared-limits.ts";
import { claimInstallation } from "../maintenance/installation-id.ts";
import { claimSecret, idOfSecret, secretInUse } from "../maintenance/installation-secret.ts";
import { SecretRotation } from "../maintenance/secret-rotation.ts";
import { type AddressLimit, AddressThrottle } from "../policy/address-throttle.ts";
import { Admitter } from "../policy/admit.ts";
import { AccessTokens } from "../policy/credentials/access-tokens.ts";
import { Authenticator } from "../policy/credentials/authenticate.ts";
import type { Chain } from "../policy/credentials/cached-chain.ts";
import { openContentKey, openPseudonymKey } from "../policy/credentials/content-key.ts";
import { KeyActivity } from "../policy/credentials/key-activity.ts";
import { SigningKeys } from "../policy/credentials/signing-keys.ts";
import { Suspensions } from "../policy/credentials/suspensions.ts";
import { UnknownCredentials } from "../policy/credentials/unknown-credentials.ts";
import { DroppedQuotas } from "../policy/dropped-quotas.ts";
import { LearnedLengths } from "../policy/learned-lengths.ts";
import { limitsOf, quotasOf } from "../policy/limits-of.ts";
import { Tiers } from "../policy/manage/tiers.ts";
import { BoundedChats } from "../policy/records/bounded-chats.ts";
import { DeletionClock } from "../policy/records/deletion-clock.ts";
import { IdempotentRequests } from "../policy/records/idempotent-requests.ts";
import { RefusalCounts } from "../policy/records/refusal-counts.ts";
import { RefusalLog } from "../policy/records/refusal-log.ts";
import { RefusedRequests } from "../policy/records/refused-requests.ts";
import { RequestHistory } from "../policy/records/request-history.ts";
import { ResponseWriter } from "../policy/records/response-writer.ts";
import { Retention } from "../policy/records/retention.ts";
import { Statements } from "../policy/records/statements.ts";
import { StoredRoom } from "../policy/records/stored-room.ts";
import { UsageDoubts } from "../policy/records/usage-doubts.ts";
import { Throttle } from "../policy/throttle.ts";
import { beginServing, requireWholeCopy } from "../storage/backup/copy-marks.ts";
import { deriveKeys, loadSecrets } from "../storage/files/secret-file.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlAccountStore } from "../storage/tables/account-store.ts";
import { SqlAuditLog } from "../storage/tables/audit-log.ts";
import { SqlChatStore } from "../storage/tables/chats/chat-store.ts";
import { ContentQueue } from "../storage/tables/chats/content-queue.ts";
import { SqlContentKeyStore } from "../storage/tables/content-key-store.ts";
import { onCredentialChange } from "../storage/tables/credential-change.ts";
import { ExpirySweep } from "../storage/tables/expiry-sweep.ts";
import { SqlKeyStore } from "../storage/tables/key-store.ts";
import { SqlKeyRotationStore } from "../storage/tables/notifications/key-rotation-store.ts";
import { SqlDeclaredMarks } from "../storage/tables/operations/declared-marks.ts";
import { SqlIdempotentRequests } from "../storage/tables/operations/idempotent-requests.ts";
import { SqlOrganizationStore } from "../storage/tables/operations/organization-store.ts";
import { SqlRefusalStore } from "../storage/tables/refusal-store.ts";
import { SqlRefusedRequests } from "../storage/tables/refused-request-store.ts";
import { SqlBackgroundStore } from "../storage/tables/responses/background-store.ts";
import { SqlConversationStore } from "../storage/tables/responses/conversation-store.ts";
import { SqlResponseStore } from "../storage/tables/responses/response-store.ts";
import { SqlStoredSizes } from "../storage/tables/responses/stored-sizes.ts";
import { SqlRetentionStore } from "../storage/tables/retention-store.ts";
import { SqlSigningKeyStore } from "../storage/tables/signing-key-store.ts";
import { SqlSpeeds } from "../storage/tables/speeds.ts";
import { SqlToolContents } from "../storage/tables/tools/tool-content-store.ts";
import { SqlUsageParties } from "../storage/tables/usage-parties.ts";
import { SummedLedger, type SummedLedgerOptions } from "../workers/primary/summed-ledger.ts";
import { InstallationWatch } from "./installation-watch.ts";
import type { Opened } from "./opened.ts";

export interface GovernanceOptions {
  db: Database;
  config: Config;
  log: Log;
  clock: Clock;
  /**
   * Returns the base URL with `/v1`. The value is a function, because a port of 0 is known only once the server
   * listens.
   */
  baseUrl(): string;
  /** The feed of changes between processes that share the database. */
  feed?: ChangeFeed;
  /** Returns the number of replicas according to the database; at least 1. */
  countReplicas?: () => number;
  /** The usage that workers have settled but that may not be in the database yet. */
  ofWorkers?: Pick<SummedLedgerOptions, "hold" | "flush">;
  /** Called after each change of credentials or limits by this process. */
  onChanged?: () => void;
  /** Replaces the default limits of clients without a credential. */
  addressLimits?: Partial<Record<AddressLimit, number>> | undefined;
  opened: Opened;
}

export interface Governance {
  pepper: Uint8Array;
  /** The peppers of the current and the replaced secrets. */
  peppers: KeyRing;
  secretId: string;
  secretRotation: SecretRotation;
  installation: InstallationWatch;
  /** Returns keys for one purpose, 32 bytes each, derived from the current and the replaced secrets. */
  keyFor(purpose: Exclude<Parameters<typeof deriveKeys>[1], "api-key-pepper-v1">): KeyRing;
  keys: SqlKeyStore;
  keyRotations: SqlKeyRotationStore;
  accounts: SqlAccountStore;
  organizations: SqlOrganizationStore;
  declaredMarks: SqlDeclaredMarks;
  idempotentRequests: IdempotentRequests;
  audit: SqlAuditLog;
  chats: SqlChatStore;
  chatWriter: ContentQueue<NewChat>;
  toolContents: SqlToolContents;
  /** Stores contents of tool calls, if configured. */
  toolContentWriter: ContentQueue<ToolContent>;
  responses: SqlResponseStore;
  /** Stores responses before their clients receive the end. */
  responseKeeper: ResponseWriter;
  background: SqlBackgroundStore;
  conversations: SqlConversationStore;
  /** Seals stored content under a key of the installation that survives a change of the secret. */
  contentSeal: SealFor;
  /** Makes pseudonyms of accounts and their users for model servers; also survives a change of the secret. */
  pseudonymKey: Uint8Array;
  ledger: SpoolLedger;
  summedLedger: SummedLedger;
  retention: Retention;
  reports: SqlUsageReports;
  statements: Statements;
  parties: SqlUsageParties;
  peopleUsage: SqlPeopleUsage;
  /** From this time on, requests without a price are counted. Unix seconds; 0 means always. */
  unpricedSince: number;
  requestHistory: RequestHistory;
  /** Results of comparisons between a model and the models that get a share of its requests. */
  comparisons: SqlComparisons;
  tiers: Tiers;
  limits: MemoryLimits | SharedLimits;
  /** Returns whether limits are shared with other replicas now. Undefined if this process counts for itself. */
  redisCheck: (() => "ok" | "failed") | undefined;
  throttle: Throttle;
  addressThrottle: AddressThrottle;
  unknownCredentials: UnknownCredentials;
  deletionClock: DeletionClock;
  lengths: LearnedLengths;
  admitter: Admitter;
  signingKeys: SigningKeys;
  tokens: AccessTokens;
  refusals: RefusalLog;
  refusalStore: SqlRefusalStore;
  refusalCounts: RefusalCounts;
  usageDoubts: UsageDoubts;
  refusedRequests: RefusedRequests;
  speeds: SqlSpeeds;
  authenticator: Authenticator;
  suspensions: Suspensions;
  /**
   * Call it after this process commits a change of a key or account. The change applies to this process immediately,
   * and to others soon. `ids` are those of keys, accounts, people and apps: only credentials that depend on one of
   * these are affected.
   */
  changed(ids?: readonly string[]): void;
  /** Call it after this process commits a change of a tier. */
  tiersChanged(): Promise<void>;
  reconfigure(changed: ReloadableConfig): void;
  /** Records the current limits of a request that a worker of this server serves. */
  limitsSeen(limits: LimitSet): void;
}

/** Opens the governance. Resolves when the usage of an earlier process's spool is in the database. */
export async function openGovernance(options: GovernanceOptions): Promise<Governance> {
  const { db, config, log, clock, baseUrl, feed = noChangeFeed, countReplicas = () => 1, opened } = options;
  const secrets = loadSecrets(config.dataDir, config.secretsHex);
  await requireWholeCopy(db);
  const id = await claimInstallation(db, config.dataDir);
  if (!(await secretInUse(db, secrets, clock.nowSeconds()))) throw otherSecret(config);
  const secretRotation = opened.add(new SecretRotation({ db, secrets, clock, log }));
  // Values are resealed before `claimSecret` puts the new secret into use: from then on the operator may drop the old
  // ones.
  await secretRotation.reseal();
  if (!(await claimSecret(db, secrets, clock.nowSeconds()))) throw otherSecret(config);
  const copiedTo = await beginServing(db);
  if (copiedTo !== undefined) {
    log.warn("records_moved", {
      detail: `The records in ${config.dataDir} were copied to PostgreSQL at ${copiedTo}, and this server goes on with the old ones. Set HEADRACE_DATABASE_URL, unless that is meant.`,
    });
  }
  const peppers = deriveKeys(secrets, "api-key-pepper-v1");
  const [pepper] = peppers;
  const secretId = idOfSecret(secrets[0]);
  const keys = new SqlKeyStore(db, { secretId });
  const keyRotations = new SqlKeyRotationStore(db);
  const accounts = new SqlAccountStore(db);
  const audit = new SqlAuditLog(db);
  const chats = new SqlChatStore(db);
  let reloadable: ReloadableConfig = config;

  await keys.endDue(clock.nowSeconds());
  let closeShared: () => unknown = () => {};
  // The shared limits are opened after the ledger, but closed after it too, so that leases that end while the ledger
  // closes are reported.
  opened.onClose(() => closeShared());
  const directory = join(config.dataDir, "spool");
  const countedSince = await unpricedSince(db, clock.nowSeconds());
  const totals = { totalsSince: await totalsSince(db, clock.nowSeconds()) };
  const ledger = opened.add(await SpoolLedger.open({ db, directory, log, clock }));
  const ofWorkers = options.ofWorkers ?? noWorkers;
  const summedLedger = new SummedLedger({ ledger, ...ofWorkers });
  const caughtUp = async () => {
    await ofWorkers.flush();
    await ledger.catchUp();
  };
  const sizes = new SqlStoredSizes(db);
  const room = new StoredRoom({ sizes, clock, maxBytes: () => reloadable.chatAccountBytes });
  const chatWriter = opened.add(
    new ContentQueue({
      ...({ what: "chat", store: new BoundedChats({ chats, room, log }), log } as const),
      retentionDays: () => reloadable.chatRetentionDays,
    }),
  );
  const retentionStore = new SqlRetentionStore(db);
  const deletionClock = new DeletionClock({ store: retentionStore, clock, log });
  opened.add(new ExpirySweep({ what: "chat", store: chats, deletionClock, log }));
  const contentKeys = new SqlContentKeyStore(db);
  const contentSeal = await openContentKey(contentKeys, deriveKeys(secrets, "content-key-seal-v1"));
  const pseudonymKey = await openPseudonymKey(contentKeys, deriveKeys(secrets, "content-key-seal-v1"));
  const toolContents = new SqlToolContents(db, contentSeal);
  const toolContentWriter = opened.add(
    new ContentQueue({
      ...({ what: "tool_content", store: toolContents, log } as const),
      retentionDays: () => (reloadable.tools.record === "content" ? reloadable.chatRetentionDays : 0),
    }),
  );
  opened.add(new ExpirySweep({ what: "tool_content", store: toolContents, deletionClock, log }));
  const responses = new SqlResponseStore(db, contentSeal);
  const responseKeeper = opened.add(
    new ResponseWriter({ responses, room, log, retentionDays: () => reloadable.chatRetentionDays }),
  );
  opened.add(new ExpirySweep({ what: "response", store: responses, deletionClock, log }));

  const recordRetention = opened.add(
    new Retention({
      store: retentionStore,
      rollUp: () => ledger.rollUp(),
      settings: () => reloadable.retention,
      clock,
      deletionClock,
      log,
      // On PostgreSQL only writers wait during a piece, and each commit takes time, so a piece may take longer.
      ...(config.databaseUrl === undefined ? {} : { pieceMs: 15 }),
    }),
  );
  await recordRetention.load();

  const tiers = new Tiers();
  tiers.configure(config.tiers);
  tiers.load(await accounts.listTiers());
  const limitsOfChain = ({ keys: chain, account }: Chain) =>
    limitsOf({ keys: chain, account, environment: chain[0].environment, tier: tiers.find(account.tier) });
  const ofReplicas =
    config.redisUrl === undefined
      ? undefined
      : await openShared({ url: config.redisUrl, clock, ledger: summedLedger, directory, log, countReplicas });
  if (ofReplicas) {
    closeShared = () => ofReplicas.close();
    ofReplicas.forgetQuotas(await quotasOf(ledger.recovered, keys, limitsOfChain));
  }
  const limits =
    ofReplicas ?? new MemoryLimits({ clock, ledger: summedLedger, starts: windowStarts(config.dataDir, clock, log) });
  const droppedQuotas = new DroppedQuotas(limits);
  if (limits instanceof MemoryLimits) limits.replay(await pastUsage(db, keys, clock, limitsOfChain));

  const signingKeys = new SigningKeys({
    store: new SqlSigningKeyStore(db),
    sealingKey: deriveKeys(secrets, "signing-key-seal-v1"),
    clock,
    log,
  });
  await signingKeys.start();
  opened.add(signingKeys);
  const issuer = () => baseUrl().replace(/\/v1$/, "");
  const tokens = new AccessTokens({ signingKeys, audit, issuer, audience: baseUrl, clock });
  const activity = opened.add(new KeyActivity({ keys, log }));
  const refusals = opened.add(new RefusalLog({ audit, clock, log }));
  const refusalStore = new SqlRefusalStore(db);
  const refusalCounts = opened.add(new RefusalCounts({ store: refusalStore, clock, log }));
  const usageDoubts = new UsageDoubts({ clock, log });
  const refusedStore = new SqlRefusedRequests(db);
  const refusedRequests = opened.add(new RefusedRequests({ store: refusedStore, clock, log }));
  const repeats = new SqlIdempotentRequests(db);
  const throttle = new Throttle(limits);
  const repeatOptions = { store: repeats, throttle, sealFor: contentSeal, pepper, clock, log };
  const idempotentRequests = new IdempotentRequests(repeatOptions);
  opened.add(new ExpirySweep({ what: "idempotent_request", store: repeats, deletionClock, log }));
  const addressThrottle = new AddressThrottle({ clock, limits: options.addressLimits });
  const unknownCredentials = new UnknownCredentials(addressThrottle);
  const suspensions = opened.add(new Suspensions({ keys, log }));
  const authenticator = new Authenticator({
    keys,
    pepper: peppers,
    renewals: secretRotation.renewals,
    mode: config.mode,
    tokens,
    activity,
    refusals,
    unknown: unknownCredentials,
    limitsOf: (chain) => droppedQuotas.seen(limitsOfChain(chain)),
    priorityOf: (account) => tiers.find(account.tier).priority,
    onDropped: () => suspensions.changed(),
    reread,
    clock,
    log,
  });
  signingKeys.onEnded = () => tokens.forget();
  /** Reloads tiers and signing keys, which are always in memory, after a change by any process. */
  async function reread(): Promise<void> {
    await Promise.all([loadTiers(), signingKeys.refresh()]);
  }
  async function loadTiers(): Promise<void> {
    if (!tiers.load(await accounts.listTiers())) return;
    authenticator.invalidate();
    options.onChanged?.();
  }
  authenticator.start();
  opened.add(authenticator);
  feed.onChange("credentials", (ids) => void authenticator.hint(ids));
  const dropped = () => {
    authenticator.invalidate();
    options.onChanged?.();
  };
  onCredentialChange(db, dropped);
  const changed = (ids?: readonly string[]) => {
    dropped();
    feed.announce("credentials", ids);
  };

  const lengths = new LearnedLengths();
  const reports = new SqlUsageReports(db, caughtUp, totals);
  const parties = new SqlUsageParties(db);
  return {
    pepper,
    peppers,
    secretId,
    secretRotation,
    installation: new InstallationWatch({ db, secrets, id, clock, log }),
    keyFor: (purpose) => deriveKeys(secrets, purpose),
    keys,
    keyRotations,
    accounts,
    organizations: new SqlOrganizationStore(db),
    declaredMarks: new SqlDeclaredMarks(db),
    idempotentRequests,
    audit,
    chats,
    chatWriter,
    toolContents,
    toolContentWriter,
    responses,
    responseKeeper,
    background: new SqlBackgroundStore(db, contentSeal),
    conversations: new SqlConversationStore(db, contentSeal),
    contentSeal,
    pseudonymKey,
    ledger,
    summedLedger,
    retention: recordRetention,
    reports,
    statements: new Statements({ reports, parties }),
    parties,
    peopleUsage: new SqlPeopleUsage(db, caughtUp),
    unpricedSince: countedSince,
    comparisons: new SqlComparisons(db, caughtUp),
    requestHistory: new RequestHistory(new SqlRequestLog(db, clock, caughtUp), refusedStore),
    tiers,
    limits,
    redisCheck: ofReplicas && (() => (ofReplicas.state().status === "ok" ? "ok" : "failed")),
    throttle,
    addressThrottle,
    unknownCredentials,
    deletionClock,
    lengths,
    admitter: new Admitter({ limits, lengths, clock }),
    signingKeys,
    tokens,
    refusals,
    refusalStore,
    refusalCounts,
    usageDoubts,
    refusedRequests,
    speeds: new SqlSpeeds(db),
    authenticator,
    suspensions,
    changed,
    async tiersChanged() {
      await loadTiers();
      // Only limits changed, so cached credentials stay valid even if the new limits cannot be read.
      changed([]);
    },
    reconfigure(changed) {
      reloadable = changed;
      tiers.configure(changed.tiers);
      authenticator.limitsChanged();
    },
    limitsSeen: (limits) => void droppedQuotas.seen(limits),
  };
}

const noWorkers = { flush: async () => true, hold: async () => () => {} };

function windowStarts(dataDir: string, clock: Clock, log: Log): WindowStarts {
  return new WindowStarts(join(dataDir, "window-starts"), clock.nowSeconds(), log);
}

/** Opens shared limits; their code is loaded only if they are configured. */
async function openShared(options: SharedLimitsOptions): Promise<SharedLimits> {
  const { SharedLimits } = await import("../limits/shared/shared-limits.ts");
  return await SharedLimits.open(options);
}

/** Returns the ledger's usage in the current windows, so that a restart does not reset the limits. */
async function pastUsage(
  db: Database,
  keys: SqlKeyStore,
  clock: Clock,
  limitsOfChain: (chain: KeyChain) => ReturnType<typeof limitsOf>,
) {
  const nowSeconds = clock.nowSeconds();
  const recent = await recentUsage(db, nowSeconds);
  const chains = new Map<string, KeyChain | undefined>();
  for (const { keyId } of recent) if (!chains.has(keyId)) chains.set(keyId, await keys.findChainById(keyId));
  return recent.flatMap(({ keyId, at, requests, tokens }) => {
    const chain = chains.get(keyId);
    if (!chain) return [];
    const { requests: requestLimits, tokens: tokenLimits } = limitsOfChain(chain);
    const secondsAgo = Math.max(0, nowSeconds - at);
    return [{ requests: requestLimits, tokens: tokenLimits, secondsAgo, count: requests, usedTokens: tokens }];
  });
}

function otherSecret({ databaseUrl, dataDir }: Config): StartError {
  const start =
    "The secret is not the one with which this database was set up, so every API key, sign-in and sealed setting would be refused. ";
  return new StartError(
    databaseUrl === undefined
      ? `${start}Set HEADRACE_SECRET to what it was, that one after a new one where it is replaced, or unset it where the file \`secret\` in ${dataDir} was used before.`
      : `${start}Set HEADRACE_SECRET to what the other replicas have: it is the same for all that share a database. To replace it, all of them accept the new one first: docs/operating.md, "Replacing the secret".`,
  );
}
