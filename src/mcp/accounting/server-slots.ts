// Bounds the concurrent requests of each MCP server. Waiting requests get a slot in turn, within a bounded time.
import { GatewayError } from "../../base/errors.ts";
import type { McpServerSlots, SlotWanted } from "../../domain/tools/mcp-server-slots.ts";

interface Waiter {
  /** Takes the slot. */
  enter(): void;
}

interface Slots {
  running: number;
  /** Running calls of each party. */
  readonly held: Map<string, number>;
  /** Waiting calls by party; the party whose turn is next comes first. */
  readonly waiting: Map<string, Waiter[]>;
  waitingCount: number;
  /** Maximum concurrent calls, from the latest configuration of the server. */
  most: number;
}

/** Maximum waiting calls of one server, and of one party at that server. */
const [maxWaiting, maxOfParty] = [256, 64];
const maxWaitMs = 10_000;

export class ServerSlots implements McpServerSlots {
  readonly #servers = new Map<string, Slots>();

  /** Number of servers with running or waiting calls. */
  get tracked(): number {
    return this.#servers.size;
  }

  async take(wanted: SlotWanted): Promise<() => void> {
    const { server, party, cancellation } = wanted;
    cancellation?.throwIfCancelled();
    const places = this.#of(server);
    if (mayEnter(places, party)) enter(places, party);
    else await this.#wait(places, wanted);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#leave(server.name, places, party);
    };
  }

  #of({ name, maxConcurrency }: SlotWanted["server"]): Slots {
    let places = this.#servers.get(name);
    if (!places) {
      places = { running: 0, held: new Map(), waiting: new Map(), waitingCount: 0, most: maxConcurrency };
      this.#servers.set(name, places);
    }
    places.most = maxConcurrency;
    return places;
  }

  #wait(places: Slots, { server, party, cancellation }: SlotWanted): Promise<void> {
    const others = places.waiting.get(party) ?? [];
    if (places.waitingCount >= maxWaiting || others.length >= maxOfParty) throw noSlot(server);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const over = () => {
      clearTimeout(timer);
      cancellation?.off(cancelled);
    };
    const waiter: Waiter = {
      enter: () => {
        over();
        resolve();
      },
    };
    const giveUp = (reason: unknown) => {
      over();
      leaveQueue(places, party, waiter);
      reject(reason);
    };
    const cancelled = () => giveUp(cancellation?.reason);
    const timer = setTimeout(() => giveUp(noSlot(server)), Math.min(maxWaitMs, server.timeoutMs));
    others.push(waiter);
    places.waiting.set(party, others);
    places.waitingCount++;
    cancellation?.onCancel(cancelled);
    return promise;
  }

  #leave(name: string, places: Slots, party: string): void {
    places.running--;
    const held = (places.held.get(party) ?? 0) - 1;
    if (held > 0) places.held.set(party, held);
    else places.held.delete(party);
    // A raised bound can free several slots at once.
    while (letNextIn(places));
    if (places.running === 0 && places.waitingCount === 0) this.#servers.delete(name);
  }
}

/**
 * Reserves the last quarter of the slots for parties without running calls, so that a busy party does not keep others
 * out.
 */
function mayEnter({ running, held, most }: Slots, party: string): boolean {
  return running < (held.has(party) ? most - Math.floor(most / 4) : most);
}

function enter(places: Slots, party: string): void {
  places.running++;
  places.held.set(party, (places.held.get(party) ?? 0) + 1);
}

/** Lets the next waiting call in. Returns false if no waiting call may enter. */
function letNextIn(places: Slots): boolean {
  for (const [party, [next]] of places.waiting) {
    if (!next || !mayEnter(places, party)) continue;
    leaveQueue(places, party, next);
    // The party moves behind all other parties.
    const rest = places.waiting.get(party);
    if (rest) {
      places.waiting.delete(party);
      places.waiting.set(party, rest);
    }
    enter(places, party);
    next.enter();
    return true;
  }
  return false;
}

function leaveQueue(places: Slots, party: string, waiter: Waiter): void {
  const waiters = places.waiting.get(party);
  const at = waiters?.indexOf(waiter) ?? -1;
  if (!waiters || at < 0) return;
  waiters.splice(at, 1);
  places.waitingCount--;
  if (waiters.length === 0) places.waiting.delete(party);
}

function noSlot({ name, maxConcurrency }: SlotWanted["server"]): GatewayError {
  const message = `The MCP server \`${name}\` has its ${maxConcurrency} calls at a time, and no place became free. Retry in 1 s.`;
  return new GatewayError("service_unavailable", message, { retryAfterSeconds: 1, refusal: "capacity" });
}
