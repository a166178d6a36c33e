// The options of the HTTP server.
import type { BlockList } from "node:net";
import type { Clock } from "../../base/clock.ts";
import type { Log, RequestLogSettings } from "../../base/log.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Observer } from "../../domain/usage/observer.ts";
import type { Tracer } from "../../domain/usage/trace.ts";
import type { TcpAddress, UnixAddress } from "../../http1/server/server.ts";
import type { Http1Limits } from "../../http1/server/server-limits.ts";
import type { AddressThrottle } from "../../policy/address-throttle.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import type { Elsewhere } from "./handed-over.ts";
import type { Locality } from "./locality.ts";
import type { Route } from "./route.ts";
import type { SessionPrincipals } from "./session-principal.ts";

export type HttpServerOptions = HttpServerParts & (TcpAddress | UnixAddress);

export interface HttpServerParts {
  routes: readonly Route[];
  /** Loads more routes. Called at the first request that matches none of `routes`. */
  otherRoutes?: () => Promise<readonly Route[]>;
  authenticator: Pick<Authenticator, "authenticate">;
  /** Finds the caller by a browser session. */
  sessions: Pick<SessionPrincipals, "applies" | "find">;
  /** The base URL of the API, which ends in `/v1`. Each 401 refers to its metadata (RFC 9728, 5.1). */
  baseUrl(): string;
  openRequests: Pick<OpenRequests, "enter">;
  /** Limits of the HTTP parser. Default: those of the HTTP server. */
  limits?: Partial<Http1Limits>;
  trustedProxies: BlockList;
  locality: Locality;
  /** Reports whether the caller has the first key of a development server. Undefined for other servers. */
  isFirstKey?: (principal: Principal) => boolean;
  /** The public URL for browsers. Undefined if the server is reached only from this machine. */
  publicUrl?: string | undefined;
  /** Limits requests without a credential, by client address. */
  addressThrottle: Pick<AddressThrottle, "take">;
  /** Reports whether the server is stopping and refuses requests. Default: never. */
  isRefusing?: () => boolean;
  /** Returns the allowed CORS origins. Called for every request, because a reload may change them. */
  corsOrigins(): readonly string[];
  log: Log;
  /**
   * Returns which requests are logged. Default: all. Called for every request, because a reload may change the
   * setting.
   */
  requestLog?: () => RequestLogSettings;
  clock: Clock;
  /** Forwards requests to the primary. Undefined in a process that handles all requests. */
  elsewhere?: Elsewhere | undefined;
  /** Called before an answer is sent, after a change that must first take effect in other processes. */
  beforeAnswer?: (() => void) | undefined;
  /** The tracer of authenticated requests. */
  tracer?: Tracer | undefined;
  /** Called at the end of each exchange. */
  observer?: Pick<Observer, "httpEnded"> | undefined;
}
