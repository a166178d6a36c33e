// The values of the configuration that must appear in no log and no trace.
import type { Config, ReloadableConfig } from "./config.ts";
import { featureSecrets } from "./sections/feature-sections.ts";

/**
 * All secrets, both as they are written in the configuration and as they are sent. `reloaded`: what a reload put in the
 * place of the start's.
 */
export function configuredSecrets(config: Config, reloaded: ReloadableConfig = config): readonly string[] {
  const { secretsHex, databaseUrl, redisUrl, mail, sso, tracing, files } = config;
  const values = [
    ...(secretsHex ?? []),
    ...[databaseUrl, redisUrl, mail?.url].flatMap((url) => passwordsOf(url)),
    sso?.clientSecret,
    files.s3?.secretAccessKey,
    ...Object.values(tracing?.headers ?? {}),
    ...[...config.upstreams, ...reloaded.upstreams].map(({ apiKey }) => apiKey),
    ...[config, reloaded].flatMap(featureSecrets),
  ];
  return [...new Set(values.filter((value) => value !== undefined && value !== null))];
}

function passwordsOf(url: string | undefined): string[] {
  if (url === undefined || !URL.canParse(url)) return [];
  const { password } = new URL(url);
  return password === "" ? [] : [password, decodeURIComponent(password)];
}
