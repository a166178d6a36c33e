// HTTP endpoint for MCP clients. Earlier protocol revisions use sessions, later ones single requests.

import { AsyncLocalStorage } from "node:async_hooks";
import {
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  PROTOCOL_VERSION_META_KEY,
  type ServerEvent,
  type ServerEventBus,
} from "@modelcontextprotocol/server";
import type { Clock } from "../../base/clock.ts";
import { longLived } from "../../base/long-lived.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import { type ClientCall, type ClientRequest, ownerOf } from "./client-call.ts";
import { protocolServer } from "./protocol-server.ts";
import { handledMethods, type RequestHandler } from "./request-handler.ts";
import { methodNotFound, refused } from "./rpc-error.ts";
import { unintroduced } from "./server-info.ts";
import { isObject } from "./server-lists.ts";
import { SessionRevoker, type SessionRevokerDeps } from "./session-revoker.ts";
import { rpcFault, Sessions, whenOver } from "./sessions.ts";
import { Subscriber } from "./subscriptions.ts";

/** Methods that the SDK itself answers or refuses. */
const ownMethods = new Set([
  "server/discover",
  "subscriptions/listen",
  "initialize",
  "ping",
  "logging/setLevel",
  "tasks/list",
]);
/** Methods whose response depends on the capabilities of the MCP servers. For other methods, these are not read. */
const introduced: ReadonlySet<unknown> = new Set(["server/discover", "subscriptions/listen"]);
const headerMismatch = -32_020;
/** Maximum `subscriptions/listen` streams: per owner, per account and in total. Sessions have separate limits. */
const { bounds } = longLived.mcpStream;
const [maxOfOwner, maxOfAccount, maxOfAll] = [bounds.key.most, bounds.account.most, bounds.total.most];

export class Endpoint {
  readonly #handler: RequestHandler;
  readonly #sessions: Sessions;
  readonly #revoker: SessionRevoker;
  readonly #modern: McpHttpHandler;
  /** The request that is being handled. The SDK's callbacks read it. */
  readonly #at = new AsyncLocalStorage<{ from: ClientRequest; body: unknown }>();
  /** Open `subscriptions/listen` streams. */
  readonly #listening = new Set<{ owner: string; accountId: string }>();
  #isClosed = false;

  constructor(
    handler: RequestHandler,
    clock: Pick<Clock, "monotonicMs" | "nowSeconds">,
    still: SessionRevokerDeps["still"],
  ) {
    this.#handler = handler;
    this.#revoker = new SessionRevoker({ clock, still });
    this.#sessions = new Sessions(handler, clock, this.#revoker);
    const current = () => {
      const request = this.#at.getStore();
      if (!request) throw new Error("A request came by no way that is known.");
      return request;
    };
    const bus: ServerEventBus = {
      // Do nothing: subscribers forward the servers' notifications.
      publish: () => {},
      subscribe: (listener) => {
        const { from, body } = current();
        const subscriber = new Subscriber(from, handler.onChange, (method, params) => {
          const event = eventOf(method, params);
          if (event) listener(event);
        });
        // Ignore the error: the client can still read the lists on request.
        void handler.listen(resourcesOf(body), { ...beforeCall(from), isAskable: true, subscriber }).catch(() => {});
        return () => subscriber.end();
      },
    };
    this.#modern = createMcpHandler(
      async () => {
        const { from, body } = current();
        const isIntroduced = isObject(body) && introduced.has(body["method"]);
        const introduction = isIntroduced ? await handler.introduction(from, false) : unintroduced;
        return protocolServer(handler, false, introduction, () => from);
      },
      { legacy: "reject", bus, maxSubscriptions: maxOfAll },
    );
  }

  /** Number of open sessions, for metrics. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /**
   * Handles an HTTP request. `body` is the parsed body of a POST. Throws `not_found` if the endpoint's server does not
   * exist.
   */
  async answer(request: Request, from: ClientRequest, body: unknown): Promise<Response> {
    if (this.#isClosed) return rpcFault(503, -32_000, "The gateway is about to stop.", body);
    // Check the server's name first, before any list is read.
    if (from.only !== undefined) this.#handler.requireServer(from.only, from);
    const isLegacy = !namesRevision(body) && (await isLegacyRequest(request, body));
    if (isLegacy) {
      const answer = await this.#sessions.answer(request, from, body);
      return request.method === "GET" ? this.#watched(answer, from, () => {}) : answer;
    }
    const fault = await this.#fault(request, from, body);
    if (fault !== undefined) return fault;
    const fetch = () => this.#at.run({ from, body }, () => this.#modern.fetch(request, { parsedBody: body }));
    const isListening = isObject(body) && body["method"] === "subscriptions/listen";
    return isListening ? await this.#listen(fetch, from, body) : await fetch();
  }

  async #listen(fetch: () => Promise<Response>, from: ClientRequest, body: unknown): Promise<Response> {
    const one = { owner: ownerOf(from.principal), accountId: from.principal.account.id };
    const all = [...this.#listening];
    const ofAccount = all.filter(({ accountId }) => accountId === one.accountId);
    const own = ofAccount.filter(({ owner }) => owner === one.owner);
    if (own.length >= maxOfOwner || ofAccount.length >= maxOfAccount || all.length >= maxOfAll) {
      const most = `${maxOfOwner} of one key, ${maxOfAccount} of one account and ${maxOfAll} in all`;
      return rpcFault(429, refused, `As many streams listen as may: ${most}. End one of them.`, body);
    }
    this.#listening.add(one);
    const over = () => this.#listening.delete(one);
    try {
      return this.#watched(await fetch(), from, over);
    } catch (error) {
      over();
      throw error;
    }
  }

  /** Closes a notification stream when its credential is revoked or expires. Other streams end with their response. */
  #watched(answer: Response, { principal, clientGone }: ClientRequest, over: () => void): Response {
    if (!answer.body) {
      over();
      return answer;
    }
    const forget = this.#revoker.add(principal, principal.tokenExpiresAt, () => clientGone.cancel());
    const body = whenOver(answer.body, () => {
      forget();
      over();
    });
    return new Response(body, answer);
  }

  /**
   * Returns an error response for what the SDK does not check: unknown methods, and headers that differ from the
   * arguments.
   */
  async #fault(request: Request, from: ClientRequest, body: unknown): Promise<Response | undefined> {
    if (!isObject(body) || typeof body["method"] !== "string" || body["id"] === undefined) return undefined;
    const { method, params } = body;
    if (!handledMethods.has(method) && !ownMethods.has(method)) {
      return rpcFault(404, methodNotFound, `Method not found: ${method.slice(0, 100)}`, body);
    }
    if (method !== "tools/call" || !isObject(params)) return undefined;
    const message = await this.#handler.parameterFault(params, beforeCall(from), request.headers);
    return message === undefined ? undefined : rpcFault(400, headerMismatch, message, body);
  }

  /** Checks the credentials of all sessions and streams now, as after a suspension. */
  check(): Promise<void> {
    return this.#revoker.check();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#revoker.close();
    await this.#sessions.close();
    await this.#modern.close();
    await this.#handler.close();
  }
}

/**
 * Reports whether the body names a protocol revision, which requests of sessions never do. This is faster than the
 * SDK's full check.
 */
function namesRevision(body: unknown): boolean {
  if (!isObject(body) || body["method"] === "initialize") return false;
  const { params } = body;
  const _meta = isObject(params) ? params["_meta"] : undefined;
  return isObject(_meta) && _meta[PROTOCOL_VERSION_META_KEY] !== undefined;
}

/**
 * Returns a call for work before the actual call. It gets no notifications, and servers cannot send requests to its
 * client.
 */
function beforeCall(from: ClientRequest): ClientCall {
  return {
    ...from,
    ...{ capabilities: {}, isAskable: false, cancellation: from.clientGone },
    notify: () => {},
    ask: () => Promise.reject(new Error("Nobody is asked before a call.")),
  };
}

const eventKinds: Readonly<Record<string, Exclude<ServerEvent["kind"], "resource_updated">>> = {
  "notifications/tools/list_changed": "tools_list_changed",
  "notifications/prompts/list_changed": "prompts_list_changed",
  "notifications/resources/list_changed": "resources_list_changed",
};

function eventOf(method: string, { uri }: JsonObject): ServerEvent | undefined {
  const kind = eventKinds[method];
  if (kind) return { kind };
  return typeof uri === "string" ? { kind: "resource_updated", uri } : undefined;
}

/** Returns the URIs of the resources that a client subscribes to. */
function resourcesOf(body: unknown): readonly unknown[] {
  const params = isObject(body) ? body["params"] : undefined;
  const wanted = isObject(params) ? params["notifications"] : undefined;
  const uris = isObject(wanted) ? wanted["resourceSubscriptions"] : undefined;
  return Array.isArray(uris) ? uris.slice(0, 100) : [];
}
