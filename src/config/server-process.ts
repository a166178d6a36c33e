// Requirements on the process before it serves: how Bun was started, and which proxy it would use.
import type { Env } from "./formats.ts";
import { locationOutsideFile, type Problem, throwIfAny } from "./problems.ts";

const requestLimit = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const proxyVariables = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/**
 * Throws a ConfigError unless the launcher lifted Bun's limit of 256 outgoing requests: beyond it, requests to model
 * servers would silently wait for each other. Bun reads the variable at its own start and ignores values above 65535.
 * Removes proxy variables: Bun would send even loopback requests, prompts and keys included, to that proxy.
 */
export function prepareProcess(env: Record<string, string | undefined> & Env): void {
  throwIfAny(requestLimitProblems(env));
  ignoreProxies(env);
}

/** Returns problems with the request limit in the environment that a process was started with. */
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
