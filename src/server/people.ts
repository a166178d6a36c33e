// Composes the sign-in of people and apps: accounts, sessions, passkeys, single sign-on, the authorization server.

import { BrowserSessions, idleSeconds } from "../accounts/browser-sessions.ts";
import { FailedSignIns } from "../accounts/failed-sign-ins.ts";
import { OneTimeLinks } from "../accounts/links.ts";
import { matchingSecret } from "../accounts/manage-apps.ts";
import { OwnAccount } from "../accounts/own-account.ts";
import { Passkeys } from "../accounts/passkeys.ts";
import { SignIn } from "../accounts/sign-in.ts";
import { SingleSignOn } from "../accounts/single-sign-on.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../domain/api-key.ts";
import type { App } from "../domain/people/app.ts";
import { resolveBySystem } from "../egress/addresses.ts";
import { isOwnOrigin, pageOrigin } from "../http/exchange/browser.ts";
import type { Locality } from "../http/exchange/locality.ts";
import { SessionPrincipals } from "../http/exchange/session-principal.ts";
import type { IncomingRequest } from "../http1/message.ts";
import { SmtpMailer } from "../mail/smtp-mailer.ts";
import { ClientDocuments, type ClientDocumentsOptions } from "../oauth/client/client-documents.ts";
import { ClientThrottle } from "../oauth/client/client-throttle.ts";
import { Housekeeper } from "../oauth/housekeeper.ts";
import { keyDigest } from "../policy/credentials/key-digest.ts";
import type { Database } from "../storage/sql/database.ts";
import { SqlAppStore } from "../storage/tables/people/app-store.ts";
import { SqlOAuthStore } from "../storage/tables/people/oauth-store.ts";
import { SqlOutsideClientStore } from "../storage/tables/people/outside-client-store.ts";
import { SqlPendingStore } from "../storage/tables/people/pending-store.ts";
import { SqlPersonStore } from "../storage/tables/people/person-store.ts";
import { SqlSessionStore } from "../storage/tables/people/session-store.ts";
import { SqlSigningKeyStore } from "../storage/tables/signing-key-store.ts";
import type { Governance } from "./governance.ts";
import type { Opened } from "./opened.ts";

export interface PeopleOptions {
  db: Database;
  config: Config;
  clock: Clock;
  log: Log;
  governance: Governance;
  locality: Locality;
  /**
   * Returns the base URL with `/v1`. The value is a function, because a port of 0 is known only once the server
   * listens.
   */
  baseUrl(): string;
  /** Options for fetching client documents. A test serves documents from this machine. */
  documentFetch?: Partial<Pick<ClientDocumentsOptions, "resolve" | "ca" | "timeoutMs">> | undefined;
  opened: Opened;
}

export type People = ReturnType<typeof openPeople>;

/** Retired keys accept no token, and are kept only for inspection. */
const retiredKeysKeptSeconds = 30 * 86_400;

/** Opens what the routes for people and apps need besides `Governance`. */
export function openPeople(options: PeopleOptions) {
  const { db, config, clock, log, governance, locality, baseUrl, opened } = options;
  const { accounts, audit, authenticator, keyFor, limits, pepper, peppers, secretId, secretRotation } = governance;
  const { publicUrl, mail, sso } = config;
  const environment: Environment = config.mode === "development" ? "dev" : "live";
  const issuer = () => baseUrl().replace(/\/v1$/, "");
  const isOwn = (origin: string, req: IncomingRequest) => isOwnOrigin(origin, req, publicUrl, locality);
  const firstAccountId = () => accounts.ensureFirstAccount(clock.nowSeconds());

  const people = new SqlPersonStore(db);
  const sessionStore = new SqlSessionStore(db);
  const oauth = new SqlOAuthStore(db);
  const outsideClients = new SqlOutsideClientStore(db);
  const clientThrottle = new ClientThrottle(limits);
  const pendingStore = new SqlPendingStore(db);
  const signingKeyStore = new SqlSigningKeyStore(db);
  const pending = { store: pendingStore, sealingKey: keyFor("pending-seal-v1"), clock };
  const isSecure = publicUrl?.startsWith("https:") ?? false;
  const formKey = keyFor("csrf-v1");
  const sessions = new BrowserSessions({
    sessions: sessionStore,
    csrfKey: formKey,
    isSecure: () => isSecure,
    unknown: governance.unknownCredentials,
    clock,
    log,
  });
  const failures = opened.add(new FailedSignIns({ audit, clock, log }));
  const links = opened.add(
    new OneTimeLinks({
      people,
      sessions,
      clock,
      publicOrigin: issuer,
      firstAccountId,
      mail: mail && new SmtpMailer(mail),
      limits,
      log,
    }),
  );
  const singleSignOn =
    sso &&
    new SingleSignOn({
      ...{ settings: sso, people, clock, pending },
      joinAccountId: async () => sso.accountId ?? firstAccountId(),
    });
  opened.add(
    new Housekeeper({
      tasks: {
        sessions: (nowSeconds) => sessionStore.prune(nowSeconds, idleSeconds),
        oauth: (nowSeconds) => oauth.prune(nowSeconds),
        outside_clients: (nowSeconds) => outsideClients.prune(nowSeconds),
        links: (nowSeconds) => people.pruneLinks(nowSeconds),
        // Pending sign-ins may be many, and are worthless after minutes.
        pending: () => pendingStore.prune(clock.nowSeconds()),
        signing_keys: (nowSeconds) => signingKeyStore.pruneSigningKeys(nowSeconds - retiredKeysKeptSeconds),
      },
      deletionClock: governance.deletionClock,
      log,
    }),
  );

  let hasPeople = false;
  return {
    people,
    sessions,
    sessionStore,
    oauth,
    links,
    apps: new SqlAppStore(db, { secretId, environment }),
    outsideClients,
    mayRegister: config.oauth.registration === "on",
    clientDocuments:
      config.oauth.clientDocuments === "off"
        ? undefined
        : new ClientDocuments({
            ...{ clientThrottle, environment, clock, hosts: config.oauth.clientDocumentHosts ?? null },
            rules: { allowLoopback: config.mode === "development" },
            ...{ resolve: resolveBySystem, ...options.documentFetch },
          }),
    signIn: new SignIn({ people, sessions, limits, failures, clock, log, pending }),
    ownAccount: new OwnAccount({ people, limits, clock }),
    failures,
    passkeys: new Passkeys({ people, failures, clock, pending }),
    singleSignOn,
    singleSignOnName: () => singleSignOn?.name,
    clientThrottle,
    matchesSecret(app: App, secret: string): boolean {
      const match = matchingSecret(app, secret, peppers, clock.nowSeconds());
      const digest = match && keyDigest(secret, pepper);
      if (match && digest !== undefined && match.digest !== digest)
        secretRotation.renewals.appSecretFound(match, digest);
      return match !== undefined;
    },
    sessionPrincipals: new SessionPrincipals({ sessions, authenticator, isOwnOrigin: isOwn, environment }),
    isOwnOrigin: isOwn,
    pageOrigin: (req: IncomingRequest) => pageOrigin(req, publicUrl, locality),
    // Over plain http, browsers send a form's origin only under another policy than `no-referrer`.
    formReferrerPolicy: () => (publicUrl?.startsWith("http:") ? ("same-origin" as const) : undefined),
    environment,
    formKey,
    sealingKey: keyFor("oauth-seal-v1"),
    issuer,
    audience: baseUrl,
    /** Reports whether no person can sign in yet. */
    async isNew(): Promise<boolean> {
      hasPeople ||= (await people.listPeople({ after: undefined, limit: 1 })).length > 0;
      return !hasPeople;
    },
    /**
     * Returns the setup link, unless a person exists. Invalidates an earlier link, unless another process printed it.
     */
    async setupLink(): Promise<string | undefined> {
      if ((await people.listPeople({ after: undefined, limit: 1 })).length > 0) return undefined;
      if (config.databaseUrl !== undefined) return (await links.sharedSetupLink(keyFor("setup-link-v1")))?.url;
      return (await links.createSetupLink({ type: "system" })).url;
    },
  };
}
