// What the HTTP server is made with.
import type { BlockList } from "node:net";
import type { Clock } from "../../base/clock.ts";
import type { Log, RequestLogSettings } from "../../base/log.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Observer } from "../../domain/usage/observer.ts";
import type { Tracer } from "../../domain/usage/trace.ts";
import type { TcpPlace, UnixPlace } from "../../http1/server/server.ts";
import type { Http1Limits } from "../../http1/server/server-limits.ts";
import type { AddressThrottle } from "../../policy/address-throttle.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import type { Elsewhere } from "./handed-over.ts";
import type { Locality } from "./locality.ts";
import type { Route } from "./route.ts";
import type { SessionPrincipals } from "./session-principal.ts";

export type HttpServerOptions = HttpServerParts & (TcpPlace | UnixPlace);

export interface HttpServerParts {
  routes: readonly Route[];
  /** Gives further ones; called when a request comes that is for none of `routes`. Left out: there are none. */
  otherRoutes?: () => Promise<readonly Route[]>;
  authenticator: Pick<Authenticator, "authenticate">;
  /** People at browsers. */
  sessions: Pick<SessionPrincipals, "applies" | "find">;
  /** What clients are given, with `/v1`; each 401 tells the metadata of this resource (RFC 9728, 5.1). */
  baseUrl(): string;
  openRequests: Pick<OpenRequests, "enter">;
  /** Those left out have their defaults. */
  limits?: Partial<Http1Limits>;
  trustedProxies: BlockList;
  locality: Locality;
  /** Reports whether a key is the first one of a development server; left out: none is. */
  isFirstKey?: (principal: Principal) => boolean;
  /** Under which browsers reach the server; left out: on this machine alone. */
  publicUrl?: string | undefined;
  /** Bounds who needs no credential. */
  addressThrottle: Pick<AddressThrottle, "take">;
  /** Whether requests are refused as the server is about to end; left out: never. */
  isRefusing?: () => boolean;
  /** Allowed origins; read for every request, as a reload may change them. */
  corsOrigins(): readonly string[];
  log: Log;
  /** Which requests get a line there; likewise. Left out: all. */
  requestLog?: () => RequestLogSettings;
  clock: Clock;
  /** Answers what no route is for, and what is handed over; left out: this process answers everything. */
  elsewhere?: Elsewhere | undefined;
  /** Called before an answer is sent, where what the request changed has to hold elsewhere first. */
  beforeAnswer?: (() => void) | undefined;
  /** Told of requests that are authenticated. */
  tracer?: Tracer | undefined;
  /** Told of the end of each exchange. */
  observer?: Pick<Observer, "httpEnded"> | undefined;
}
