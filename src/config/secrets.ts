// The secret values of the configuration, which must not appear in any log or trace.
import type { Config, ReloadableConfig } from "./config.ts";
import { featureSecrets } from "./sections/feature-sections.ts";

/**
 * Returns all secrets, both as written in the configuration and as sent. `reloaded` is the configuration after the last
 * reload.
 */
export function configuredSecrets(config: Config, reloaded: ReloadableConfig = config): readonly string[] {
  const { secretsHex, databaseUrl, redisUrl, mail, sso, tracing, files, export: exported } = config;
  const values = [
    ...(secretsHex ?? []),
    ...[databaseUrl, redisUrl, mail?.url].flatMap((url) => passwordsOf(url)),
    sso?.clientSecret,
    files.s3?.secretAccessKey,
    exported?.s3?.secretAccessKey,
    ...[tracing, exported?.otlp].flatMap((one) => Object.values(one?.headers ?? {})),
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
