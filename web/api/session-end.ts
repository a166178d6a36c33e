// Notices that the page's session has ended or been replaced. The page is then hidden until the same person signs in
// again.
import { useEffect, useRef, useState } from "react";
import { asFailure, call, isSessionOver, onSessionEnd } from "./client.ts";
import { onSignOut } from "./tab-storage.ts";
import type { Session } from "./types.ts";

/** A session that has ended while the page has something that would be lost. */
export interface Over {
  session: Session;
  /** The reason why the last attempt to continue failed. */
  problem: string | undefined;
  /** Checks whether the same person is signed in again. */
  check(): void;
}

/** Minimum milliseconds between two checks of the session. A check runs when the user returns to the tab. */
const pauseMs = 5_000;
/** Elements that may hold unsaved input. */
const holding = "form, textarea, [role=dialog]";

/** `renew` takes over the same person's new session. Returns undefined while the session is valid. */
export function useSessionEnd(known: Session | undefined, renew: (now: Session) => void): Over | undefined {
  const [isOver, setOver] = useState(false);
  const [problem, setProblem] = useState<string>();
  /** The promise on which all suspended requests wait; undefined while no request waits. */
  const waiting = useRef<PromiseWithResolvers<void>>(undefined);
  const found = (now: Session) => {
    // Another person signed in, who must not see this page's data.
    if (now.person.id !== known?.person.id) return window.location.reload();
    if (JSON.stringify(now) !== JSON.stringify(known)) renew(now);
    setOver(false);
    setProblem(undefined);
    waiting.current?.resolve();
    waiting.current = undefined;
  };
  const missed = (error: unknown) => {
    // A failed check needs no message here: the page's other requests report the failure.
    if (!waiting.current) return;
    const failure = asFailure(error, "Your session could not be checked");
    // The person has left the account, so the page reloads with another account.
    if (failure.status === 403) return window.location.reload();
    setProblem(isSessionOver(failure) ? "You are not signed in yet." : failure.message);
  };
  const ask = () => {
    if (known) call<Session>("GET", "/v1/session", { isOnce: waiting.current !== undefined }).then(found, missed);
  };
  const latestAsk = useRef(ask);
  useEffect(() => {
    latestAsk.current = ask;
  });
  const isKnown = known !== undefined;
  useEffect(() => {
    if (!isKnown) return;
    const ends = [
      onSessionEnd(() => {
        if (!waiting.current && !document.querySelector(holding)) return undefined;
        waiting.current ??= Promise.withResolvers();
        setOver(true);
        return waiting.current.promise;
      }),
      onSignOut(() => window.location.reload()),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, [isKnown]);
  // The user may have signed out and in again in another tab meanwhile.
  useEffect(() => {
    let askedMs = Date.now();
    const comeBack = () => {
      const isSoon = !waiting.current && Date.now() - askedMs < pauseMs;
      if (document.visibilityState !== "visible" || isSoon) return;
      askedMs = Date.now();
      latestAsk.current();
    };
    document.addEventListener("visibilitychange", comeBack);
    return () => document.removeEventListener("visibilitychange", comeBack);
  }, []);
  return isOver && known ? { session: known, problem, check: () => latestAsk.current() } : undefined;
}
