// What servers tell beside any request, on its way to one client that listens: that lists or resources have changed.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { ClientSession, JsonObject } from "../../domain/tools/client-session.ts";
import { maxUriLength, publicUri } from "./names.ts";
import { listKinds } from "./server-lists.ts";

const listChanges: ReadonlySet<string> = new Set(Object.values(listKinds).map(({ changed }) => changed));
const updated = "notifications/resources/updated";
/** What comes within this time is told once: a server that tells of each of its changes is not passed on as often. */
const gatherMs = 50;
const maxResources = 100;

/** Who hears of a resource of a link; the server is told of the first and of the last one, as others share the link. */
const listeners = new WeakMap<ClientSession, Map<string, Set<Subscriber>>>();

interface Followed {
  readonly link: ClientSession;
  readonly stop: () => void;
  /** Addresses of resources, as the server knows them. */
  readonly uris: Set<string>;
}

/** Who listens: at the address of all servers, or of one alone. */
export interface Listening {
  readonly only: string | undefined;
  readonly memoryAccount: MemoryAccount;
}

export class Subscriber {
  readonly #from: Listening;
  readonly #tell: (method: string, params: JsonObject) => void;
  readonly #followed = new Map<string, Followed>();
  /** What is to be told next, once each. */
  readonly #waiting = new Map<string, { method: string; params: JsonObject }>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #unlisten: () => void;
  #isOver = false;

  /** `onChange`: of what there is at all, servers and what is approved of them. */
  constructor(
    from: Listening,
    onChange: (listener: () => void) => () => void,
    tell: (method: string, params: JsonObject) => void,
  ) {
    this.#from = from;
    this.#tell = tell;
    this.#unlisten = onChange(() => {
      for (const method of listChanges) this.#gather(method, method, {});
    });
  }

  /** Tells what the server tells from now on; in place of a link to it that was followed before. */
  follow(server: string, link: ClientSession): void {
    const known = this.#followed.get(server);
    if (this.#isOver || known?.link === link) return;
    if (known) this.#leave(known);
    const stop = link.onChange((method, params) => this.#heard(server, method, params));
    this.#followed.set(server, { link, stop, uris: new Set() });
  }

  /** Whether it may have one more; the server was asked for it, or is told of it already. */
  get hasRoom(): boolean {
    let count = 0;
    for (const { uris } of this.#followed.values()) count += uris.size;
    return count < maxResources;
  }

  /** The client wants to know of a resource; false: the server is told of that already, for somebody else. */
  add(server: string, uri: string): boolean {
    const followed = this.#followed.get(server);
    if (!followed) return true;
    followed.uris.add(uri);
    const all = listeners.get(followed.link) ?? new Map<string, Set<Subscriber>>();
    listeners.set(followed.link, all);
    const others = all.get(uri) ?? new Set();
    all.set(uri, others.add(this));
    return others.size === 1;
  }

  /** It wants to know of it no more; false: somebody else does. */
  remove(server: string, uri: string): boolean {
    const followed = this.#followed.get(server);
    if (!followed) return true;
    followed.uris.delete(uri);
    return letGo(this, followed.link, uri);
  }

  /** The client is gone. */
  end(): void {
    this.#isOver = true;
    this.#unlisten();
    clearTimeout(this.#timer);
    for (const followed of this.#followed.values()) this.#leave(followed);
    this.#followed.clear();
  }

  #leave({ link, stop, uris }: Followed): void {
    stop();
    const exchange = { memoryAccount: this.#from.memoryAccount, cancellation: new Cancellation() };
    for (const uri of uris) {
      // A server that is away has forgotten the subscription.
      if (letGo(this, link, uri)) link.request("resources/unsubscribe", { uri }, exchange).catch(() => {});
    }
  }

  #heard(server: string, method: string, params: JsonObject): void {
    if (listChanges.has(method)) this.#gather(method, method, {});
    const { uri } = params;
    if (method !== updated || typeof uri !== "string" || uri.length > maxUriLength) return;
    // A part of a resource may have changed that somebody wants to know of.
    const isWanted = [...(this.#followed.get(server)?.uris ?? [])].some((one) => uri.startsWith(one));
    const told = this.#from.only === undefined ? publicUri(server, uri) : uri;
    // Whatever else a server says there waits for each client that listens, without a bound.
    if (isWanted && this.#waiting.size < maxResources) this.#gather(`${method} ${told}`, method, { uri: told });
  }

  #gather(key: string, method: string, params: JsonObject): void {
    if (this.#isOver) return;
    this.#waiting.set(key, { method, params });
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const all = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const one of all) this.#tell(one.method, one.params);
    }, gatherMs);
  }
}

/** Whether nobody is left who wants to know of it. */
function letGo(follower: Subscriber, link: ClientSession, uri: string): boolean {
  const all = listeners.get(link);
  const others = all?.get(uri);
  others?.delete(follower);
  if (others && others.size > 0) return false;
  all?.delete(uri);
  return true;
}
