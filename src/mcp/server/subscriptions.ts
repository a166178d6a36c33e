// Forwards the notifications of MCP servers to one client: changes of lists and of resources.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { ClientSession, JsonObject } from "../../domain/tools/client-session.ts";
import { maxUriLength, publicUri } from "./names.ts";
import { listKinds } from "./server-lists.ts";

const listChanges: ReadonlySet<string> = new Set(Object.values(listKinds).map(({ changed }) => changed));
const updated = "notifications/resources/updated";
/**
 * Milliseconds for which notifications are collected. Repeated ones are sent once, so that a server cannot flood its
 * clients.
 */
const gatherMs = 50;
const maxResources = 100;

/**
 * For each session and resource URI: its subscribers. They share the session, so only the first one subscribes at the
 * server, and the last one unsubscribes.
 */
const listeners = new WeakMap<ClientSession, Map<string, Set<Subscriber>>>();

interface Subscription {
  readonly link: ClientSession;
  readonly stop: () => void;
  /** URIs of the client's subscribed resources, as the server names them. */
  readonly uris: Set<string>;
}

/** A client with an open notification stream. `only` is the server's name at the endpoint of a single server. */
export interface Listening {
  readonly only: string | undefined;
  readonly memoryAccount: MemoryAccount;
}

export class Subscriber {
  readonly #from: Listening;
  readonly #notify: (method: string, params: JsonObject) => void;
  readonly #subscriptions = new Map<string, Subscription>();
  /** Notifications that will be sent next, without duplicates. */
  readonly #waiting = new Map<string, { method: string; params: JsonObject }>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #unlisten: () => void;
  #isOver = false;

  /** `onChange` reports changes of servers and approvals. */
  constructor(
    from: Listening,
    onChange: (listener: () => void) => () => void,
    notify: (method: string, params: JsonObject) => void,
  ) {
    this.#from = from;
    this.#notify = notify;
    this.#unlisten = onChange(() => {
      for (const method of listChanges) this.#gather(method, method, {});
    });
  }

  /** Forwards the notifications of this server from now on. Replaces the server's earlier session. */
  attach(server: string, link: ClientSession): void {
    const known = this.#subscriptions.get(server);
    if (this.#isOver || known?.link === link) return;
    if (known) this.#leave(known);
    const stop = link.onChange((method, params) => this.#heard(server, method, params));
    this.#subscriptions.set(server, { link, stop, uris: new Set() });
  }

  /** True if the client may subscribe to another resource. */
  get hasRoom(): boolean {
    let count = 0;
    for (const { uris } of this.#subscriptions.values()) count += uris.size;
    return count < maxResources;
  }

  /** Adds a subscription. Returns false if another client has already subscribed at the server. */
  add(server: string, uri: string): boolean {
    const subscription = this.#subscriptions.get(server);
    if (!subscription) return true;
    subscription.uris.add(uri);
    const all = listeners.get(subscription.link) ?? new Map<string, Set<Subscriber>>();
    listeners.set(subscription.link, all);
    const others = all.get(uri) ?? new Set();
    all.set(uri, others.add(this));
    return others.size === 1;
  }

  /** Removes a subscription. Returns false if another client still needs it at the server. */
  remove(server: string, uri: string): boolean {
    const subscription = this.#subscriptions.get(server);
    if (!subscription) return true;
    subscription.uris.delete(uri);
    return letGo(this, subscription.link, uri);
  }

  /** Ends all subscriptions, because the client has disconnected. */
  end(): void {
    this.#isOver = true;
    this.#unlisten();
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions.values()) this.#leave(subscription);
    this.#subscriptions.clear();
  }

  #leave({ link, stop, uris }: Subscription): void {
    stop();
    const exchange = { memoryAccount: this.#from.memoryAccount, cancellation: new Cancellation() };
    for (const uri of uris) {
      // Ignore the error: a restarted server has no subscription.
      if (letGo(this, link, uri)) link.request("resources/unsubscribe", { uri }, exchange).catch(() => {});
    }
  }

  #heard(server: string, method: string, params: JsonObject): void {
    if (listChanges.has(method)) this.#gather(method, method, {});
    const { uri } = params;
    if (method !== updated || typeof uri !== "string" || uri.length > maxUriLength) return;
    // The update may concern a part of a subscribed resource, whose URI is then longer.
    const isWanted = [...(this.#subscriptions.get(server)?.uris ?? [])].some((one) => uri.startsWith(one));
    const clientUri = this.#from.only === undefined ? publicUri(server, uri) : uri;
    // Limit the number, so that a server cannot fill the memory.
    if (isWanted && this.#waiting.size < maxResources)
      this.#gather(`${method} ${clientUri}`, method, { uri: clientUri });
  }

  #gather(key: string, method: string, params: JsonObject): void {
    if (this.#isOver) return;
    this.#waiting.set(key, { method, params });
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const all = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const one of all) this.#notify(one.method, one.params);
    }, gatherMs);
  }
}

/** Removes a subscriber. Returns true if it was the last one of the resource. */
function letGo(subscriber: Subscriber, link: ClientSession, uri: string): boolean {
  const all = listeners.get(link);
  const others = all?.get(uri);
  others?.delete(subscriber);
  if (others && others.size > 0) return false;
  all?.delete(uri);
  return true;
}
