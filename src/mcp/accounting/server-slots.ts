// Limits the concurrent calls of each MCP server. Other calls wait a limited time; the callers (parties) take turns.
import { GatewayError } from "../../base/errors.ts";
import type { McpServerSlots, SlotWanted } from "../../domain/tools/mcp-server-slots.ts";

interface Waiter {
  /** Takes the slot. */
  enter(): void;
}

interface Slots {
  running: number;
  /** Number of running calls of each party (a person or key). */
  readonly held: Map<string, number>;
  /** Waiting calls of each party. The map's order is the order in which parties are served. */
  readonly waiting: Map<string, Waiter[]>;
  waitingCount: number;
  /** Maximum concurrent calls, as last configured for the server. */
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
    const slots = this.#of(server);
    if (mayEnter(slots, party)) enter(slots, party);
    else await this.#wait(slots, wanted);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#leave(server.name, slots, party);
    };
  }

  #of({ name, maxConcurrency }: SlotWanted["server"]): Slots {
    let slots = this.#servers.get(name);
    if (!slots) {
      slots = { running: 0, held: new Map(), waiting: new Map(), waitingCount: 0, most: maxConcurrency };
      this.#servers.set(name, slots);
    }
    slots.most = maxConcurrency;
    return slots;
  }

  #wait(slots: Slots, { server, party, cancellation }: SlotWanted): Promise<void> {
    const others = slots.waiting.get(party) ?? [];
    if (slots.waitingCount >= maxWaiting || others.length >= maxOfParty) throw noSlot(server);
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
      leaveQueue(slots, party, waiter);
      reject(reason);
    };
    const cancelled = () => giveUp(cancellation?.reason);
    const timer = setTimeout(() => giveUp(noSlot(server)), Math.min(maxWaitMs, server.timeoutMs));
    others.push(waiter);
    slots.waiting.set(party, others);
    slots.waitingCount++;
    cancellation?.onCancel(cancelled);
    return promise;
  }

  #leave(name: string, slots: Slots, party: string): void {
    slots.running--;
    const held = (slots.held.get(party) ?? 0) - 1;
    if (held > 0) slots.held.set(party, held);
    else slots.held.delete(party);
    // If the configured maximum has been raised, several waiting calls can start.
    while (letNextIn(slots));
    if (slots.running === 0 && slots.waitingCount === 0) this.#servers.delete(name);
  }
}

/**
 * Reports whether a call may start. The last quarter of the slots is for parties without running calls, so that a busy
 * party cannot block others.
 */
function mayEnter({ running, held, most }: Slots, party: string): boolean {
  return running < (held.has(party) ? most - Math.floor(most / 4) : most);
}

function enter(slots: Slots, party: string): void {
  slots.running++;
  slots.held.set(party, (slots.held.get(party) ?? 0) + 1);
}

/** Lets the next waiting call in. Returns false if no waiting call may start. */
function letNextIn(slots: Slots): boolean {
  for (const [party, [next]] of slots.waiting) {
    if (!next || !mayEnter(slots, party)) continue;
    leaveQueue(slots, party, next);
    // A party that was served moves to the end of the order.
    const rest = slots.waiting.get(party);
    if (rest) {
      slots.waiting.delete(party);
      slots.waiting.set(party, rest);
    }
    enter(slots, party);
    next.enter();
    return true;
  }
  return false;
}

function leaveQueue(slots: Slots, party: string, waiter: Waiter): void {
  const waiters = slots.waiting.get(party);
  const at = waiters?.indexOf(waiter) ?? -1;
  if (!waiters || at < 0) return;
  waiters.splice(at, 1);
  slots.waitingCount--;
  if (waiters.length === 0) slots.waiting.delete(party);
}

function noSlot({ name, maxConcurrency }: SlotWanted["server"]): GatewayError {
  const message = `The MCP server \`${name}\` has its ${maxConcurrency} calls at a time, and no place became free. Retry in 1 s.`;
  return new GatewayError("service_unavailable", message, { retryAfterSeconds: 1, refusal: "capacity" });
}
