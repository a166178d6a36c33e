// Requirements on the server's process: how Bun was started, and that no proxy is used.
import type { Env } from "./formats.ts";
import { locationOutsideFile, type Problem, throwIfAny } from "./problems.ts";

const requestLimit = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const proxyVariables = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/**
 * Throws a ConfigError if Bun's limit of 256 outgoing requests is in force: beyond it, requests to model servers would
 * silently wait for each other. The launcher must set the variable, because Bun reads it at start (at most 65535).
 * Removes proxy variables: Bun would send even loopback requests, prompts and keys included, to the proxy.
 */
export function prepareProcess(env: Record<string, string | undefined> & Env): void {
  throwIfAny(requestLimitProblems(env));
  ignoreProxies(env);
}

/** Returns problems with Bun's limit of outgoing requests, for a process that was started with this environment. */
export function requestLimitProblems(env: Env): Problem[] {
  const limit = Number(env[requestLimit]);
  if (Number.isInteger(limit) && limit >= 1024 && limit <= 65_535) return [];
  return [
    {
      ...locationOutsideFile(requestLimit),
      message: "must be a whole number from 1024 to 65535 when the server's process starts",
      fix: "Start Headrace with `npm start` or `npx headrace serve`, which set it.",
    },
  ];
}

/** Makes this process connect without any proxy. */
export function ignoreProxies(env: Record<string, string | undefined>): void {
  for (const name of proxyVariables) delete env[name];
}
