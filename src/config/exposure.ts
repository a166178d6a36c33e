// Checks the settings of a server that other machines can reach: requires some, and warns of risky ones.
import { parseHttpUrl } from "../base/text/http-url.ts";
import { isLoopbackHost } from "./formats.ts";
import type { Mode } from "./options.ts";
import type { Problem } from "./problems.ts";
import type { Taken } from "./sources.ts";

/** Requires production mode to listen beyond loopback, and a public URL in production. */
export function exposureProblems(
  host: Taken<string>,
  mode: Taken<Mode>,
  publicUrl: Taken<string | undefined>,
): Problem[] {
  if (!host.valid || !mode.valid) return [];
  if (mode.value === "production") {
    if (!publicUrl.valid || publicUrl.value !== undefined) return [];
    const fix = "Give the address that clients use with --public-url, HEADRACE_PUBLIC_URL or public_url in the file.";
    return [{ ...publicUrl.location, message: "is missing; production mode needs it", fix }];
  }
  if (isLoopbackHost(host.value)) return [];
  const message = `${host.value} can be reached from other machines, which needs production mode`;
  const fix = "Start with --mode production and --public-url, or listen on 127.0.0.1.";
  return [{ ...host.location, message, fix }];
}

export function exposureWarnings(startup: {
  mode: Mode;
  publicUrl: string | undefined;
  trustedProxies: readonly string[];
}): string[] {
  const warnings: string[] = [];
  const url = startup.publicUrl === undefined ? undefined : parseHttpUrl(startup.publicUrl);
  if (startup.mode === "production" && url?.protocol === "http:" && !isLoopbackHost(url.hostname)) {
    warnings.push("public_url: begins with http://, so keys and prompts travel unencrypted; put TLS in front");
  }
  const everyone = startup.trustedProxies.find((range) => range.endsWith("/0"));
  if (everyone !== undefined) {
    warnings.push(`trusted_proxies: ${everyone} lets every client claim any address`);
  }
  return warnings;
}
