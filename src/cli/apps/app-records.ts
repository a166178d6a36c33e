// Apps as the API describes them: finds the app that a person names, and prints it.
import { z } from "zod";
import { refuseSecret } from "../keys/key-records.ts";
import type { Connection } from "../login/connection.ts";
import { type Found, recordsOf } from "../login/records.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { CliError, formatFacts, printable, type Terminal } from "../terminal/terminal.ts";

const appSecret = z.object({
  id: z.string(),
  last4: z.string(),
  created_at: z.number(),
  expires_at: z.number().nullish(),
});

export const appRecord = z.object({
  id: z.string(),
  name: z.string(),
  homepage_url: z.string().nullish(),
  type: z.string(),
  redirect_uris: z.array(z.string()),
  scopes: z.array(z.string()),
  tools: z.array(z.string()).nullish(),
  environment: z.string(),
  require_pkce: z.boolean(),
  publisher: z.string().nullish(),
  created_by: z.string().nullish(),
  created_at: z.number(),
  secrets: z.array(appSecret),
});

export type ListedApp = z.infer<typeof appRecord>;

export type FoundApp = Found<"app", typeof appRecord>;
const records = recordsOf("app", appRecord);
export const { path: appPath, list: listApps } = records;

/** `<app>` as a Commander argument: name and description. */
export const appArgument = ["<app>", "id (the client id) or name"] as const;

/**
 * Returns the one app with this id or name. Rejects with a CliError that lists the candidates if several have the name.
 */
export async function findApp(connection: Connection, wanted: string, signal: AbortSignal): Promise<FoundApp> {
  refuseSecret(wanted);
  const direct = wanted.startsWith("app_") ? await records.withId(connection, wanted, signal) : undefined;
  if (direct) return direct;
  const matches = (await listApps(connection, signal)).filter(({ app }) => app.id === wanted || app.name === wanted);
  const [only, ...others] = matches;
  if (only && others.length === 0) return only;
  if (!only) {
    throw new CliError(
      `No app fits \`${printable(wanted)}\`: neither an id nor a name. headrace apps list shows those that you may see.`,
    );
  }
  const candidates = matches.map(({ app }) => `  ${printable(`${app.id}  ${app.type}  ${app.name}`)}`);
  throw new CliError(`Several apps have this name. Name the one you mean by its id:\n${candidates.join("\n")}`);
}

/** Formats an app as `"Notes" (app_…)` for questions and answers. */
export function shownApp({ id, name }: Pick<ListedApp, "id" | "name">): string {
  return printable(`"${name}" (${id})`);
}

/** Prints everything about an app, for a person. */
export function printApp(terminal: Terminal, app: ListedApp, nowMs: number): void {
  const nowSeconds = Math.floor(nowMs / 1000);
  const maker = app.created_by ? ` by ${app.created_by}` : "";
  terminal.print(`${terminal.out.bold(printable(app.name))}  ${printable(app.type)}\n`);
  const [firstUri = "none: by the device flow alone", ...otherUris] = app.redirect_uris;
  const facts: [string, string][] = [
    ["Client ID", app.id],
    ["Publisher", app.publisher ?? "-"],
    ["Home page", app.homepage_url ?? "-"],
    ["Environment", app.environment],
    ["Scopes", app.scopes.join(", ")],
    ...(app.tools ? [["Tools", app.tools.join(", ") || "none"] as [string, string]] : []),
    ["PKCE", app.require_pkce ? "required" : "not required"],
    ["Redirects to", firstUri],
    ...otherUris.map((uri): [string, string] => ["", uri]),
    ["Created", `${formatTimeAndRelative(app.created_at, nowSeconds)}${maker}`],
    ...app.secrets.map(({ last4, created_at: made, expires_at: ends }): [string, string] => {
      const end = ends ? `, ends ${formatTimeAndRelative(ends, nowSeconds)}` : "";
      return ["Secret", `hrs_…${last4}, made ${formatTimeAndRelative(made, nowSeconds)}${end}`];
    }),
  ];
  terminal.print(formatFacts(facts, terminal.out));
}
