// Who is signed in, and for which account and environment the pages speak.
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { ApiFailure, bear, call, type Environment } from "./client.ts";
import { queryClient } from "./queries.ts";
import type { Session } from "./types.ts";

export interface CurrentSession {
  session: Session;
  environment: Environment;
  /** Those that this server has. */
  environments: readonly Environment[];
  isOperator: boolean;
  /** Owners and admins manage what is the account's; members what is theirs. */
  isManager: boolean;
  chooseEnvironment(environment: Environment): void;
  chooseAccount(accountId: string): Promise<void>;
  /** Asks again who is signed in, after a change of name or role. */
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
}

export function SessionProvider({ children, waiting, failed }: SessionProviderProps) {
  const [state, setState] = useState<State>();
  const [failure, setFailure] = useState<ApiFailure>();
  const load = () => {
    setFailure(undefined);
    loadSession().then(setState, (error: unknown) => setFailure(asFailure(error)));
  };
  useEffect(load, []);
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
      setState({ ...state, environment: chosen });
    },
    async chooseAccount(accountId) {
      const changed = await call<Session>("PATCH", "/v1/session", { body: { account_id: accountId } });
      queryClient.clear();
      setState({ ...state, session: changed });
    },
    async refresh() {
      setState({ ...state, session: await call<Session>("GET", "/v1/session") });
    },
  };
  return (
    <Context.Provider key={`${session.account.id} ${environment}`} value={current}>
      {children}
    </Context.Provider>
  );
}

async function loadSession(): Promise<State> {
  const session = await call<Session>("GET", "/v1/session");
  const home = session.environment;
  const wanted = localStorage.getItem(remembered);
  const isHere = wanted === "live" || wanted === "test" || (wanted === "dev" && home === "dev");
  const environment = isHere ? wanted : home;
  bear({ csrfToken: session.csrf_token, environment });
  return { session, environment, home };
}

function asFailure(error: unknown): ApiFailure {
  return error instanceof ApiFailure
    ? error
    : new ApiFailure({ status: 0, code: "internal_error", message: `The dashboard failed: ${String(error)}` });
}
