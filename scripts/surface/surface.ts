// Lists what users, clients and operators can depend on, one fact a line, so that a change of it shows in a review.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Option } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { errorCodes } from "../../src/base/errors.ts";
import type { CommandEntry } from "../../src/cli/command.ts";
import { commands } from "../../src/cli/commands.ts";
import { configJsonSchema } from "../../src/config/config.ts";
import { auditActions } from "../../src/domain/audit.ts";
import { notificationTypes } from "../../src/domain/notifications/notification.ts";
import type { Route } from "../../src/http/exchange/route.ts";
import { openApiDocument } from "../../src/http/reference/openapi.ts";
import { migrationsFor } from "../../src/storage/sql/migrations.ts";
import { errorTable } from "../../src/wire/errors.ts";
import { namesInCode } from "./names-in-code.ts";

/** Where the surface stands as of the last `npm run check -- --write`. */
export const surfaceFile = "scripts/surface/surface.txt";

/**
 * The surface as text. `routes`: the route table. Where a fact is long, as the schema of an operation, its line ends with
 * eight hexadecimal digits of the SHA-256 of its JSON.
 */
export async function surfaceText(root: string, routes: readonly Route[]): Promise<string> {
  const code = namesInCode(root);
  const document = openApiDocument(routes, packageJson.version);
  const sections: Record<string, readonly string[]> = {
    routes: routes.map(routeLine),
    "API operations": Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => `${method} ${path} ${digest(operation)}`),
    ),
    "API components": Object.entries(document.components).flatMap(([kind, named]) =>
      Object.entries(named).map(([name, value]) => `${kind} ${name} ${digest(value)}`),
    ),
    "error codes": errorCodes.map((errorCode) => {
      const { status, type } = errorTable[errorCode];
      return `${errorCode} ${status} ${type}`;
    }),
    configuration: schemaLines(configJsonSchema() as Schema),
    commands: (await Promise.all([...commands.values()].map((load) => load()))).flatMap((entry) => commandLines(entry)),
    "environment variables": code.environment,
    metrics: code.metrics,
    "labels of metrics": code.labels,
    "log events": code.events,
    "webhook events": notificationTypes,
    "audit actions": auditActions,
    "database schema": (["sqlite", "postgres"] as const).flatMap((dialect) =>
      migrationsFor(dialect).map((statements, index) => `${dialect} step ${index + 1} ${digest(statements)}`),
    ),
    "pages of the dashboard": pagesIn(readFileSync(join(root, "web/shell/navigation.ts"), "utf8")),
  };
  const parts = Object.entries(sections).map(([title, lines]) => `# ${title}\n${lines.join("\n")}\n`);
  return parts.join("\n");
}

/** The titles of the sections in which two such texts differ. */
export function sectionsThatDiffer(before: string, after: string): string[] {
  const [old, now] = [before, after].map(
    (text) => new Map(text.split(/^# /m).map((part) => [part.split("\n", 1)[0], part])),
  );
  const titles = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
  return [...titles].filter((title) => title && old?.get(title) !== now?.get(title)) as string[];
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 8);
}

function routeLine(route: Route): string {
  const scopes = "scope" in route ? [route.scope].flat().join(" or ") : "";
  return `${route.method} ${route.path} ${route.access ?? "scope"} ${scopes}`.trimEnd();
}

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: readonly Schema[];
}

/** Each setting by its path; the digest is that of all that the setting takes. */
function schemaLines({ properties = {}, items, anyOf = [] }: Schema, path = ""): string[] {
  const named = Object.entries(properties).flatMap(([name, value]) => {
    const whole = path === "" ? name : `${path}.${name}`;
    return [`${whole} ${digest(value)}`, ...schemaLines(value, whole)];
  });
  return [...new Set([...named, ...[...(items ? [items] : []), ...anyOf].flatMap((one) => schemaLines(one, path))])];
}

/** A command and those below it; the digest is that of its help. */
function commandLines(entry: CommandEntry, above = "headrace"): string[] {
  const name = `${above} ${entry.name}`;
  const options = Object.values(entry.options ?? {}).map((one) => (one instanceof Option ? one.flags : one[0]));
  const words = [
    name,
    ...(entry.arguments ?? []).map(([argument]) => argument),
    ...options.map((flags) => `[${flags}]`),
  ];
  const help = [
    entry.description,
    entry.summary,
    entry.examples,
    entry.arguments,
    entry.options,
    entry.help?.map(String),
  ];
  return [`${words.join(" ")} ${digest(help)}`, ...(entry.commands ?? []).flatMap((one) => commandLines(one, name))];
}

function pagesIn(navigation: string): string[] {
  return [...navigation.matchAll(/path: "([^"]+)"/g)].map(([, path = ""]) => path);
}
