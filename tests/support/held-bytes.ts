// Whoever holds bytes in this process: what is left with one of them after its server has ended is missing for ever.
import { type AccountBytes, type HolderIds, heldBytes, heldKinds, KeyBytes } from "../../src/base/bytes/held-bytes.ts";
import { withinMs } from "./long.ts";

/** Those that hold something now, or have given back more than they took: a sum over all of them hides what two have wrong. */
const holding = new Set<KeyBytes>();

class WatchedBytes extends KeyBytes {
  override take(...taken: Parameters<KeyBytes["take"]>): ReturnType<KeyBytes["take"]> {
    const refusal = super.take(...taken);
    this.#note();
    return refusal;
  }

  override release(...released: Parameters<KeyBytes["release"]>): void {
    super.release(...released);
    this.#note();
  }

  #note(): void {
    if (this.held === 0) holding.delete(this);
    else holding.add(this);
  }
}

heldBytes.holder = (account: AccountBytes, ids?: HolderIds, listener?: ConstructorParameters<typeof KeyBytes>[3]) =>
  new WatchedBytes(heldBytes, account, ids, listener);

/** Servers of this process that run: they share the ledger. */
const running = new Set<object>();

export function serverBegan(server: object): void {
  running.add(server);
}

/** Closed, though it may be looked at only later whether it left anything. */
export function serverEnded(server: object): void {
  running.delete(server);
}

/** Rejects where no server runs any more, and bytes are on somebody's account all the same. */
export async function nothingIsHeld(): Promise<void> {
  const end = performance.now() + withinMs(2_000);
  while (running.size === 0 && left() !== "") {
    if (performance.now() > end) throw new Error(`Held, though all servers have ended: ${left()}.`);
    await Bun.sleep(1);
  }
}

function left(): string {
  const named = { visitors: heldBytes.visitors, replicas: heldBytes.replicas };
  const others = Object.entries(named).filter(([, { held }]) => held !== 0);
  const holders = [...others, ...[...holding].map((one) => [one.ids?.key ?? "nobody", one] as const)];
  const kinds = heldKinds.filter((kind) => kind !== "cache" && heldBytes.byKind[kind] !== 0);
  return [
    ...holders.map(([name, { held }]) => `${name} ${held}`),
    ...kinds.map((kind) => `${kind} ${heldBytes.byKind[kind]}`),
  ].join(", ");
}
