// The signed-in person, and the account and environment that the pages use.
import { createContext, type ReactNode, startTransition, useContext, useEffect, useState } from "react";
import { type ApiFailure, asFailure, bear, call, type Environment } from "./client.ts";
import { queryClient } from "./queries.ts";
import { type Over, useSessionEnd } from "./session-end.ts";
import type { Session } from "./types.ts";

export interface CurrentSession {
  session: Session;
  environment: Environment;
  /** The environments of this server. */
  environments: readonly Environment[];
  isOperator: boolean;
  /** True for owners and admins, who manage the whole account; members manage only their own keys and apps. */
  isManager: boolean;
  chooseEnvironment(environment: Environment): void;
  chooseAccount(accountId: string): Promise<void>;
  /** Loads the session again, after a change of name or role. */
  refresh(): Promise<void>;
}

const Context = createContext<CurrentSession | undefined>(undefined);
const remembered = "headrace-environment";

export function useSession(): CurrentSession {
  const current = useContext(Context);
  if (!current) throw new Error("useSession is for the parts within SessionProvider.");
  return current;
}

interface State {
  session: Session;
  environment: Environment;
  home: Environment;
}

interface SessionProviderProps {
  children: ReactNode;
  /** Shown until the session is known. */
  waiting: ReactNode;
  failed(failure: ApiFailure, retry: () => void): ReactNode;
  /** Rendered over a page whose session has ended. */
  over(over: Over): ReactNode;
}

export function SessionProvider({ children, waiting, failed, over }: SessionProviderProps) {
  const [state, setState] = useState<State>();
  const [failure, setFailure] = useState<ApiFailure>();
  const load = () => {
    setFailure(undefined);
    // The whole dashboard renders at this point, so a transition lets React do it in slices.
    loadSession().then(
      (loaded) => startTransition(() => setState(loaded)),
      (error: unknown) => setFailure(asFailure(error, "The dashboard could not start")),
    );
  };
  useEffect(load, []);
  const ended = useSessionEnd(state?.session, (now) => {
    bear({ csrfToken: now.csrf_token });
    setState((before) => before && { ...before, session: now });
  });
  if (failure) return failed(failure, load);
  if (!state) return waiting;
  const { session, environment, home } = state;
  const current: CurrentSession = {
    session,
    environment,
    environments: home === "dev" ? ["dev", "test", "live"] : ["live", "test"],
    isOperator: session.person.is_operator,
    isManager: session.role !== "member",
    chooseEnvironment(chosen) {
      localStorage.setItem(remembered, chosen);
      bear({ environment: chosen });
      queryClient.clear();
      setState((before) => before && { ...before, environment: chosen });
    },
    async chooseAccount(accountId) {
      // The answer is for the chosen account, because the person's rights depend on the account.
      const changed = await call<Session>("PATCH", "/v1/session", {
        body: { account_id: accountId },
        headers: { "headrace-account": accountId },
      });
      bear({ accountId });
      queryClient.clear();
      setState((before) => before && { ...before, session: changed });
    },
    async refresh() {
      // The change itself succeeded. If this read fails, only the old name stays on screen for a while.
      const now = await call<Session>("GET", "/v1/session").catch(() => undefined);
      if (now) setState((before) => before && { ...before, session: now });
    },
  };
  return (
    <>
      <Context.Provider key={`${session.account.id} ${environment}`} value={current}>
        {children}
      </Context.Provider>
      {ended && over(ended)}
    </>
  );
}

async function loadSession(): Promise<State> {
  const session = await call<Session>("GET", "/v1/session");
  const home = session.environment;
  const wanted = localStorage.getItem(remembered);
  const isHere = wanted === "live" || wanted === "test" || (wanted === "dev" && home === "dev");
  const environment = isHere ? wanted : home;
  bear({ csrfToken: session.csrf_token, environment, accountId: session.account.id });
  return { session, environment, home };
}
