// Composes what people sign in with: their store, sessions, and the pages and endpoints for them.
import { BrowserSessions } from "./accounts/browser-sessions.ts";
import type { Config } from "./config.ts";
import type { Clock } from "./domain/clock.ts";
import type { Governance } from "./governance.ts";
import { isOwnOrigin } from "./http/browser.ts";
import { SessionPrincipals } from "./http/session-principal.ts";
import type { IncomingRequest } from "./http1/message.ts";
import type { Database } from "./storage/database.ts";
import { SqlSessionStore } from "./storage/session-store.ts";

export interface PeopleOptions {
  db: Database;
  config: Config;
  clock: Clock;
  governance: Governance;
}

export type People = ReturnType<typeof openPeople>;

export function openPeople({ db, config, clock, governance }: PeopleOptions) {
  const isOwn = (origin: string, req: IncomingRequest) => isOwnOrigin(origin, req, config.publicUrl);
  const sessionStore = new SqlSessionStore(db);
  const sessions = new BrowserSessions({
    sessions: sessionStore,
    csrfKey: governance.keyFor("csrf-v1"),
    isSecure: () => config.publicUrl?.startsWith("https:") ?? false,
    clock,
  });
  return {
    sessions,
    sessionStore,
    isOwnOrigin: isOwn,
    sessionPrincipals: new SessionPrincipals({
      sessions,
      authenticator: governance.authenticator,
      isOwnOrigin: isOwn,
      environment: config.mode === "development" ? "dev" : "live",
    }),
  };
}
