// Several servers of one installation in this process: one database, one secret, behind a load balancer that favours none.
import { randomBytes } from "node:crypto";
import { startHeadrace, type TestServer, type TestServerOptions } from "./headrace.ts";
import { type LoadBalancer, startLoadBalancer } from "./load-balancer.ts";
import { freshDatabase } from "./postgres.ts";

export interface TestReplicas {
  /** Where the load balancer is. */
  url: string;
  /** The first key of the installation. */
  key: string;
  setupLink: string | undefined;
  servers: readonly TestServer[];
  balancer: LoadBalancer;
  /** Such as another one is started with. */
  env: Record<string, string>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestReplicasOptions extends Omit<TestServerOptions, "dataDir"> {
  count?: number;
  /** The address of PostgreSQL; a fresh one otherwise. */
  databaseUrl?: string;
}

/** In production mode: nobody behind a load balancer is local. */
export async function startReplicas({ count = 2, databaseUrl, ...options }: TestReplicasOptions = {}) {
  const balancer = startLoadBalancer();
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl ?? (await freshDatabase()),
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
    ...options.env,
  };
  const flags = { mode: "production", publicUrl: balancer.url, ...options.flags };
  const started = await Promise.allSettled(
    Array.from({ length: count }, () => startHeadrace({ ...options, env, flags })),
  );
  const servers = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const close = async () => {
    await balancer[Symbol.asyncDispose]();
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  };
  const failed = started.find((one) => one.status === "rejected");
  if (failed) {
    await close();
    throw failed.reason;
  }
  balancer.servers = servers.map((server) => server.url);
  const replicas: TestReplicas = {
    url: balancer.url,
    key: servers.find(({ key }) => key !== "")?.key ?? "",
    setupLink: servers[0]?.setupLink,
    ...{ servers, balancer, env },
    [Symbol.asyncDispose]: close,
  };
  return replicas;
}
