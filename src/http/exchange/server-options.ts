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
  /** Loads further routes. Called at the first request that matches none of `routes`. */
  otherRoutes?: () => Promise<readonly Route[]>;
  authenticator: Pick<Authenticator, "authenticate">;
  /** Finds the caller of a request by the browser session. */
  sessions: Pick<SessionPrincipals, "applies" | "find">;
  /**
   * Returns the base URL of the API, which ends in `/v1`. Each 401 answer refers to the metadata of this URL (RFC 9728,
   * 5.1).
   */
  baseUrl(): string;
  openRequests: Pick<OpenRequests, "enter">;
  /** Limits of the HTTP parser. Default: those of the HTTP server. */
  limits?: Partial<Http1Limits>;
  trustedProxies: BlockList;
  locality: Locality;
  /**
   * Reports whether the caller has the first key of a development server. Undefined if this is no development server.
   */
  isFirstKey?: (principal: Principal) => boolean;
  /** The public URL of the gateway. Undefined if the gateway is reached only from this machine. */
  publicUrl?: string | undefined;
  /** Limits requests without a credential, counted by client address. */
  addressThrottle: Pick<AddressThrottle, "take">;
  /** Reports whether the server is stopping and refuses requests. Default: never. */
  isRefusing?: () => boolean;
  /** Returns the allowed CORS origins. Called for every request, because a reload may change them. */
  corsOrigins(): readonly string[];
  log: Log;
  /**
   * Returns the rules by which requests are logged. Default: all are logged. Called for every request, because a reload
   * may change the rules.
   */
  requestLog?: () => RequestLogSettings;
  clock: Clock;
  /** Forwards requests to the primary process. Undefined in a process that handles all requests. */
  elsewhere?: Elsewhere | undefined;
  /** Called before an answer is sent, so that a change has taken effect in other processes first. */
  beforeAnswer?: (() => void) | undefined;
  /** The tracer of authenticated requests. */
  tracer?: Tracer | undefined;
  /** Called at the end of each exchange. */
  observer?: Pick<Observer, "httpEnded"> | undefined;
}
