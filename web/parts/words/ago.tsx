// A relative time such as "5 minutes ago", which stays current; the exact time is its hint.
import { useSyncExternalStore } from "react";
import { ago, atSecond } from "./figures.ts";

const everyMs = 30_000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let passed = 0;

/** Shows a relative time. `seconds` is Unix time; null shows `never`. */
export function Ago({ seconds, never = "never" }: { seconds: number | null; never?: string }) {
  useSyncExternalStore(subscribe, () => passed);
  if (seconds === null) return <>{never}</>;
  return (
    <time dateTime={new Date(seconds * 1000).toISOString()} data-hint={atSecond(seconds)}>
      {ago(seconds)}
    </time>
  );
}

/** Subscribes to the shared timer that updates all relative times. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    passed += 1;
    for (const notify of listeners) notify();
  }, everyMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}
