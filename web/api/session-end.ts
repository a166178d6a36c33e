// Notices that another session, or none, has come in the place of that of the page, which then waits, hidden, for its person.
import { useEffect, useRef, useState } from "react";
import { asFailure, call, isSessionOver, onSessionEnd } from "./client.ts";
import { onSignOut } from "./tab-storage.ts";
import type { Session } from "./types.ts";

/** A session that has ended with something on the page that would be lost. */
export interface Over {
  session: Session;
  /** Why it does not go on, as it was last tried. */
  problem: string | undefined;
  /** Looks whether its person is signed in again. */
  check(): void;
}

/** So long nobody asks again by coming back to the tab. */
const pauseMs = 5_000;
/** What may hold something that somebody has written or chosen. */
const holding = "form, textarea, [role=dialog]";

/** `renew` takes the session of the same person that is there now. Undefined while there is one. */
export function useSessionEnd(known: Session | undefined, renew: (now: Session) => void): Over | undefined {
  const [isOver, setOver] = useState(false);
  const [problem, setProblem] = useState<string>();
  /** Those who asked for something meanwhile. */
  const waiting = useRef<PromiseWithResolvers<void>>(undefined);
  const found = (now: Session) => {
    // Nothing of what was here is for somebody else.
    if (now.person.id !== known?.person.id) return window.location.reload();
    if (JSON.stringify(now) !== JSON.stringify(known)) renew(now);
    setOver(false);
    setProblem(undefined);
    waiting.current?.resolve();
    waiting.current = undefined;
  };
  const missed = (error: unknown) => {
    // What cannot be asked now is said by what else is asked.
    if (!waiting.current) return;
    const failure = asFailure(error, "Your session could not be checked");
    // A member of the account no longer: the page begins anew with another one.
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
  // While this tab was out of sight somebody may have signed out and in again in another one.
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
