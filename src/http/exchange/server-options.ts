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
  /** Returns further routes, called at the first request for none of `routes`. Absent if there are none. */
  otherRoutes?: () => Promise<readonly Route[]>;
  authenticator: Pick<Authenticator, "authenticate">;
  /** Finds the principals of people at browsers. */
  sessions: Pick<SessionPrincipals, "applies" | "find">;
  /** The URL for clients, with `/v1`. Each 401 names the metadata of this resource (RFC 9728, 5.1). */
  baseUrl(): string;
  openRequests: Pick<OpenRequests, "enter">;
  /** Limits of HTTP; the defaults apply if absent. */
  limits?: Partial<Http1Limits>;
  trustedProxies: BlockList;
  locality: Locality;
  /** Reports whether a key is the first one of a development server. Absent if there is none. */
  isFirstKey?: (principal: Principal) => boolean;
  /** The URL under which browsers reach the server. Absent if only browsers on this machine reach it. */
  publicUrl?: string | undefined;
  /** Limits clients without a credential. */
  addressThrottle: Pick<AddressThrottle, "take">;
  /** Reports whether requests are refused because the server is about to end. Absent means never. */
  isRefusing?: () => boolean;
  /** Returns the allowed origins. Called for every request, because a reload may change them. */
  corsOrigins(): readonly string[];
  log: Log;
  /**
   * Returns which requests get a log line; all by default. Called for every request, because a reload may change it.
   */
  requestLog?: () => RequestLogSettings;
  clock: Clock;
  /** Answers requests that were handed over or have no route here. Absent if this process answers everything. */
  elsewhere?: Elsewhere | undefined;
  /**
   * Called before an answer is sent, if the request changed something that must first take effect in other processes.
   */
  beforeAnswer?: (() => void) | undefined;
  /** The tracer of authenticated requests. */
  tracer?: Tracer | undefined;
  /** Called at the end of each exchange. */
  observer?: Pick<Observer, "httpEnded"> | undefined;
}
