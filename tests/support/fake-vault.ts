// A Vault with the key-value store, version 2, as its API describes it: seals, refuses, and ends leases on demand.

export interface FakeVault {
  url: string;
  /** A token without a lease. */
  staticToken: string;
  logins: { path: string; body: unknown }[];
  namespaces: (string | null)[];
  reads: number;
  renewals: number;
  requests: number;
  /** The lease of new tokens. */
  leaseSeconds: number;
  /** Where all requests are sent on to, if set. */
  redirect: string | undefined;
  put(path: string, data: Record<string, string> | undefined): void;
  seal(isSealed: boolean): void;
  /** Answers 403 to reads. */
  refuse(refuses: boolean): void;
  revokeRole(): void;
  revokeTokens(): void;
  /** Lets time pass for the leases. */
  passSeconds(seconds: number): void;
  stop(): void;
}

export function startVault(secrets: Record<string, Record<string, string>>, port = 0): FakeVault {
  const stored = new Map<string, Record<string, string>>(Object.entries(secrets));
  const leases = new Map<string, number>();
  const state = { nowSeconds: 0, isSealed: false, refuses: false, hasRole: true };
  const answer = (status: number, body: unknown = { errors: [] }) => Response.json(body, { status });
  const lease = (token: string) => {
    leases.set(token, state.nowSeconds + vault.leaseSeconds);
    return answer(200, { auth: { client_token: token, lease_duration: vault.leaseSeconds, renewable: true } });
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      vault.requests++;
      if (vault.redirect !== undefined) return Response.redirect(vault.redirect, 307);
      if (state.isSealed) return answer(503, { errors: ["Vault is sealed"] });
      const path = new URL(request.url).pathname.slice("/v1/".length);
      const token = request.headers.get("x-vault-token") ?? "";
      vault.namespaces.push(request.headers.get("x-vault-namespace"));
      if (/^auth\/[^/]+\/login$/.test(path)) {
        vault.logins.push({ path, body: await request.json() });
        return state.hasRole ? lease(`hvs.${vault.logins.length}`) : answer(400);
      }
      const isAlive = token === vault.staticToken || (leases.get(token) ?? 0) > state.nowSeconds;
      if (!isAlive) return answer(403, { errors: ["permission denied"] });
      if (path === "auth/token/lookup-self") return answer(200, { data: { id: token } });
      if (path === "auth/token/renew-self") {
        if (token === vault.staticToken) return answer(400, { errors: ["lease is not renewable"] });
        vault.renewals++;
        return lease(token);
      }
      vault.reads++;
      if (state.refuses) return answer(403, { errors: ["permission denied"] });
      const data = stored.get(path);
      return data === undefined ? answer(404) : answer(200, { data: { data, metadata: { version: 1 } } });
    },
  });
  const vault: FakeVault = {
    url: `http://127.0.0.1:${server.port}`,
    staticToken: "hvs.static-token",
    ...{ logins: [], namespaces: [], reads: 0, renewals: 0, requests: 0, leaseSeconds: 3_600, redirect: undefined },
    put(path, data) {
      if (data === undefined) stored.delete(path);
      else stored.set(path, data);
    },
    seal(isSealed) {
      state.isSealed = isSealed;
    },
    refuse(refuses) {
      state.refuses = refuses;
    },
    revokeRole() {
      state.hasRole = false;
    },
    revokeTokens: () => leases.clear(),
    passSeconds(seconds) {
      state.nowSeconds += seconds;
    },
    stop: () => void server.stop(true),
  };
  return vault;
}
