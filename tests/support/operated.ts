// A server with an operator, whose API a test asks as that.
import type { TestServer } from "./headrace.ts";
import { makeOperatorKey } from "./operator-key.ts";

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
  body: any;
}

export interface Operated {
  server: TestServer;
  operator: string;
  /** `path`: below `/v1/admin`. */
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
}

/** `key`: of an operator; left out: one is made. */
export async function operated(server: TestServer, key?: string): Promise<Operated> {
  const operator = key ?? (await makeOperatorKey(server.dataDir));
  return { server, operator, admin: adminOf(server, operator) };
}

export function adminOf(server: Pick<TestServer, "request">, operator: string): Operated["admin"] {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${operator}` };
    const response = await server.request(`/v1/admin${path}`, { method, headers, ...(body ? { body } : {}) });
    return { status: response.status, body: await response.json() };
  };
}
