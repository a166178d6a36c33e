// The text that `headrace serve` prints at start.
import packageJson from "../../../package.json" with { type: "json" };
import type { Config } from "../../config/config.ts";
import { showsAs } from "../../domain/api-key.ts";
import { demoId } from "../../engines/llama/model-store.ts";
import type { FoundServer } from "../../engines/local-servers.ts";
import type { FirstKey, RunningServer } from "../../server/serve.ts";
import { credentialsPath, readCredentials } from "../../storage/files/credentials-file.ts";
import type { Style } from "./terminal.ts";

/** The members of the running server that the banner needs. */
interface ShownServer {
  readonly baseUrl: string;
  readonly firstKey: ShownKey;
  readonly catalog: Pick<RunningServer["catalog"], "list">;
}

interface ShownKey {
  readonly key?: string | undefined;
  readonly record: Pick<FirstKey["record"], "prefix" | "last4" | "environment">;
}

/**
 * Returns the banner: the address, the key, the models, and a command to paste. `setupLink` is set as long as nobody
 * has a sign-in.
 */
export function banner(
  config: Pick<Config, "dataDir" | "mode" | "upstreams" | "databaseUrl">,
  server: ShownServer,
  found: readonly FoundServer[],
  style: Style,
  setupLink?: string,
): string {
  const { firstKey, baseUrl } = server;
  // Browsers must use this address. Under another address, the server refuses changes by signed-in people.
  const url = baseUrl.replace(/\/v1$/, "");
  const file = credentialsPath(config.dataDir);
  // Only models that the shown key may use.
  const models = server.catalog.list().filter((model) => model.environments.includes(firstKey.record.environment));
  const able = models.filter((model) => model.capabilities?.chat !== false);
  const others = able.filter((model) => model.id !== demoId);
  const chatModel = others.find((model) => model.capabilities?.chat) ?? others[0] ?? able[0];
  const { prefix, last4 } = firstKey.record;
  const key = firstKey.key
    ? `${style.bold(firstKey.key)}   ${style.dim(`(shown only now; also in ${file})`)}`
    : `${prefix}…${last4}   ${style.dim(`(${whereItIs(config, firstKey)})`)}`;
  const shown = models.slice(0, 8).map((model) => `${model.id} (${model.deployments[0]?.engine.name ?? "nowhere"})`);
  if (models.length > shown.length) shown.push(`and ${models.length - shown.length} more`);
  const lines = [
    "",
    `  ${style.bold(`Headrace ${packageJson.version}`)}, ${config.mode === "development" ? "for this machine only (development mode)" : "production mode"}`,
    "",
    `  Base URL   ${style.bold(baseUrl)}`,
    `  API key    ${key}`,
    `  Models     ${shown.length > 0 ? shown.join("\n             ") : "none yet"}`,
    `  Dashboard  ${url}/`,
    `  Docs       ${url}/docs`,
    ...localServerLines(config, found),
  ];
  if (setupLink !== undefined) {
    lines.push("", `  Create your sign-in: ${style.bold(setupLink)} ${style.dim("(works once, 24 h)")}`);
  }
  if (chatModel) lines.push("", "  Try it:", "", tryIt(config, server, chatModel.id));
  return `${lines.join("\n")}\n\n`;
}

function localServerLines(config: Pick<Config, "mode" | "upstreams">, found: readonly FoundServer[]): string[] {
  const lines: string[] = [];
  const locked = found.filter((server) => server.models === undefined);
  for (const { title, url } of locked)
    lines.push(`  Found      ${title} at ${url}, which wants a key: add it to headrace.yaml`);
  if (config.mode === "development") return lines;
  const known = new Set(config.upstreams.map((upstream) => upstream.url));
  const unserved = found.filter((server) => server.models !== undefined && !known.has(server.url));
  if (unserved.length === 0) return lines;
  lines.push("", "  Model servers found on this machine. To serve them, add to headrace.yaml:", "", "    upstreams:");
  for (const { name, url } of unserved) lines.push(`      - { name: ${name}, url: "${url}" }`);
  return lines;
}

function tryIt(config: Pick<Config, "dataDir">, { firstKey, baseUrl }: ShownServer, model: string): string {
  const file = credentialsPath(config.dataDir);
  const key =
    firstKey.key ??
    (keyIsIn(config, firstKey)
      ? `$(node -p ${shellQuoted(`require(${JSON.stringify(file)}).api_key`)})`
      : "$HEADRACE_API_KEY");
  // The demo model is so small that only its likeliest tokens make sense.
  const temperature = model === demoId ? { temperature: 0 } : {};
  const body = JSON.stringify({
    model,
    stream: true,
    ...temperature,
    messages: [{ role: "user", content: "Who are you?" }],
  });
  return `curl -N ${baseUrl}/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d ${shellQuoted(body)}`;
}

function whereItIs(config: Pick<Config, "dataDir" | "databaseUrl">, firstKey: ShownKey): string {
  if (keyIsIn(config, firstKey)) return `from the first start; in ${credentialsPath(config.dataDir)}`;
  return config.databaseUrl === undefined
    ? "from the first start"
    : "shown by the replica that started first, and in its credentials.json";
}

function keyIsIn(config: Pick<Config, "dataDir">, { record }: ShownKey): boolean {
  const key = readCredentials(config.dataDir)?.api_key;
  return key !== undefined && showsAs(key, record);
}

/** Quotes text for a POSIX shell, also inside `"$(…)"`. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
