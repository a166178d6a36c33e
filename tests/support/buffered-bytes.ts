// Servers of this process, which share the ledger of bytes: what is left on somebody's account after them is missing for ever.
import { bufferedBytes, bufferKinds } from "../../src/base/bytes/buffered-bytes.ts";
import type { RunningServer } from "../../src/server/serve.ts";
import { withinMs } from "./long.ts";

const running = new Set<object>();

export function serverBegan(server: object): void {
  running.add(server);
}

/** Closed, though it may be looked at only later whether it left anything. */
export function serverEnded(server: object): void {
  running.delete(server);
}

/**
 * Rejects where no server runs any more, and bytes are held all the same; or are on accounts though their sum is right: one
 * was given back what another has taken.
 */
export async function nothingIsHeld(): Promise<void> {
  const end = performance.now() + withinMs(2_000);
  while (running.size === 0 && (bufferedBytes.total !== 0 || bufferedBytes.memoryAccounts !== 0)) {
    if (performance.now() > end) throw new Error(`All servers have ended, and bytes are still held: ${left()}.`);
    await Bun.sleep(1);
  }
}

/** Likewise for workers while they run: none that has no request under way may have bytes on an account. */
export async function nothingIsHeldBy(workers: NonNullable<RunningServer["workers"]>): Promise<void> {
  const end = performance.now() + withinMs(2_000);
  for (;;) {
    const texts = await workers.metrics();
    const holding = texts.filter(
      (text) => isZero(text, "http_requests_in_flight") && !isZero(text, "held_bytes_holders"),
    );
    const [one] = holding;
    if (one === undefined) return;
    if (performance.now() > end) throw new Error(`A worker has no request, and holds bytes:\n${heldIn(one)}`);
    await Bun.sleep(10);
  }
}

function isZero(text: string, gauge: string): boolean {
  return !new RegExp(`^headrace_${gauge} -?[1-9]`, "m").test(text);
}

function heldIn(text: string): string {
  return (text.match(/^headrace_held_bytes.*$/gm) ?? []).join("\n");
}

function left(): string {
  const kinds = bufferKinds.filter((kind) => bufferedBytes.byKind[kind] !== 0);
  return [
    ...kinds.map((kind) => `${kind} ${bufferedBytes.byKind[kind]}`),
    `holders ${bufferedBytes.memoryAccounts}`,
  ].join(", ");
}
