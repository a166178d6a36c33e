// The page of who sees what of another's: the kinds of what is seen, and the kind of every endpoint, page and command.
import type { Route } from "../src/http/exchange/route.ts";

export const readers = ["operator", "owner", "admin", "member", "app", "key"] as const;
export type Reader = (typeof readers)[number];

export interface Sight {
  title: string;
  /** What each reader sees; `refused`: 401 or 403. */
  cells: Readonly<Record<Reader, string>>;
  /** Files of the tests that try it. */
  tests: readonly string[];
}

const asRole = "as in their role";
const refused = "refused";
const memberKey = "a member's key: as the member";
const rows = "tests/e2e/who-sees.test.ts";

export const sights = {
  figures: {
    title: "Figures of usage and requests",
    cells: {
      operator: asRole,
      owner: "all of the account",
      admin: "all of the account",
      member: "own; all of the account if an owner allowed it",
      app: "its own, for the person who allowed it",
      key: `all of the account; ${memberKey}`,
    },
    tests: ["tests/e2e/seen-usage.test.ts", "tests/hostile/other-owners.test.ts", rows],
  },
  content: {
    title: "Prompts, answers, files and batches",
    cells: {
      operator: asRole,
      owner: "all that the account stored",
      admin: "all that the account stored",
      member: "own",
      app: "its own, for the person who allowed it",
      key: `all that the account stored; ${memberKey}`,
    },
    tests: ["tests/e2e/seen-usage.test.ts", "tests/hostile/other-owners.test.ts", rows],
  },
  "one key or app": {
    title: "Figures of one key, or of an app that the account publishes",
    cells: {
      operator: asRole,
      ...{ owner: "all of the account", admin: "all of the account", member: "own keys and apps", app: refused },
      key: `all of the account; ${memberKey}`,
    },
    tests: ["tests/e2e/seen-usage.test.ts", "tests/contract/app-routes.test.ts", rows],
  },
  keys: {
    title: "Keys and apps of the account",
    cells: {
      operator: asRole,
      owner: "all of the account, without secrets",
      admin: "all of the account, without secrets",
      member: "own, without secrets",
      app: refused,
      key: `all of the account, without secrets; ${memberKey}`,
    },
    tests: ["tests/hostile/member-keys.test.ts", "tests/hostile/management-targets.test.ts", rows],
  },
  webhooks: {
    title: "Webhooks and end users of the account",
    cells: {
      operator: asRole,
      ...{ owner: "all of the account", admin: "all of the account", member: refused, app: refused },
      key: "all of the account; a member's key: refused",
    },
    tests: ["tests/e2e/seen-usage.test.ts", rows],
  },
  members: {
    title: "Members, invitations and audit log of the account",
    cells: {
      operator: asRole,
      ...{ owner: "all of the account", admin: "all of the account", member: refused, app: refused, key: refused },
    },
    tests: ["tests/e2e/seen-usage.test.ts", rows],
  },
  own: {
    title: "The person's own sessions, sign-in, authorizations, connections and requests for more",
    cells: {
      operator: asRole,
      ...{ owner: "own; requests for more of all", admin: "own; requests for more of all", member: "own" },
      ...{ app: refused, key: refused },
    },
    tests: [rows],
  },
  tools: {
    title: "Tools of MCP servers",
    cells: {
      ...{ operator: asRole, owner: "own sessions and calls", admin: "own sessions and calls" },
      ...{ member: "own sessions and calls", key: "own sessions and calls" },
      app: "refused without a token for MCP",
    },
    tests: ["tests/e2e/mcp/authorization.test.ts", rows],
  },
  settings: {
    title: "Models, prices and limits that the caller may use",
    cells: Object.fromEntries(
      readers.map((reader) => [
        reader,
        "own limits; of an organization's quota, the usage of all its accounts together",
      ]),
    ) as Record<Reader, string>,
    tests: ["tests/e2e/seen-usage.test.ts", rows],
  },
  "all accounts": {
    title: "Requests, usage, refusals and statements of all accounts",
    cells: {
      operator: "figures and attempts of all accounts, never content",
      ...{ owner: refused, admin: refused, member: refused, app: refused, key: refused },
    },
    tests: ["tests/e2e/all-accounts.test.ts", "tests/hostile/operator-canary.test.ts", rows],
  },
  installation: {
    title: "Accounts, people, upstreams, models, nodes and settings of the installation",
    cells: {
      operator: "all, without secrets and content",
      ...{ owner: refused, admin: refused, member: refused, app: refused, key: refused },
    },
    tests: ["tests/contract/routes.test.ts", "tests/hostile/operator-canary.test.ts", rows],
  },
  public: {
    title: "Sign-in, health and descriptions of the server",
    cells: Object.fromEntries(readers.map((reader) => [reader, "nothing of another's"])) as Record<Reader, string>,
    tests: ["tests/contract/routes.test.ts"],
  },
} as const satisfies Record<string, Sight>;
export type SightName = keyof typeof sights;

/** The kinds of endpoints by the beginning of their path; the first that fits. */
const ofPaths: readonly (readonly [SightName, RegExp])[] = [
  ["all accounts", /^\/v1\/admin\/(requests|usage|overview|refusals|statement|accounts\/:id\/statement)\b/],
  ["installation", /^\/v1\/admin\//],
  ["one key or app", /^\/v1\/(keys|apps)\/:id\/usage$/],
  ["figures", /^\/v1\/(usage|requests|overview|refusals|statement|account$)/],
  ["members", /^\/v1\/(members|invitations|audit)\b/],
  ["webhooks", /^\/v1\/(webhooks|account\/end-users)\b/],
  ["own", /^\/v1\/(session|sessions|passkeys|authorizations|limit-requests|tools\/connections|account\/)/],
  ["own", /^\/v1\/(me|person|people|password|profile)\b/],
  ["tools", /^\/(mcp|v1\/tools)\b/],
  ["settings", /^\/v1\/(models|model-status|prices|tiers|limits)\b/],
  ["keys", /^\/v1\/(keys|apps)\b/],
  ["content", /^\/v1\/(chat|completions|responses|realtime|messages|conversations|files|uploads|batches)\b/],
  ["content", /^\/v[12]\/(embeddings|rerank|score|moderations|decisions|audio|images|tokenize|detokenize)\b/],
];

export function sightOf({ path, access }: Pick<Route, "path" | "access">): SightName | undefined {
  if (path === "/metrics") return "installation";
  if (access === "public" || access === "page" || access === "machine") return "public";
  return ofPaths.find(([, pattern]) => pattern.test(path))?.[0];
}

/** The kinds of the dashboard's pages by path. An operator's choice "All accounts" is the kind `all accounts`. */
const ofPages: Readonly<Record<string, readonly SightName[]>> = {
  "/": ["figures", "all accounts"],
  "/usage": ["figures", "all accounts"],
  "/requests": ["figures", "all accounts"],
  "/statements": ["figures", "all accounts"],
  "/chats": ["content"],
  "/batches": ["content"],
  "/apps": ["keys"],
  "/tools": ["tools"],
  "/settings/api-keys": ["keys"],
  "/settings/members": ["members"],
  "/settings/audit-log": ["members"],
  "/settings/webhooks": ["webhooks"],
  "/settings/security": ["own"],
  "/settings/limits": ["settings", "own", "webhooks"],
  ...Object.fromEntries(["/playground", "/catalog", "/prices"].map((path) => [path, ["settings"]])),
};

/** Commands on the server's machine that open its files. */
const serverCommands: ReadonlySet<string> = new Set([
  ...["backup", "migrate", "operator-key", "restore", "secret", "serve", "setup-link", "spool"],
]);

/** The kinds of commands by their first word. The commands of the last line open the server's files or read nothing. */
const ofCommands: Readonly<Record<string, readonly SightName[]>> = {
  ...{
    requests: ["figures", "all accounts"],
    usage: ["figures", "all accounts"],
    statement: ["figures", "all accounts"],
  },
  ...{
    top: ["all accounts"],
    keys: ["keys", "one key or app"],
    apps: ["keys", "one key or app"],
    members: ["members"],
  },
  ...{
    webhooks: ["webhooks", "installation"],
    "end-users": ["webhooks"],
    tools: ["tools", "own", "installation"],
    batches: ["content"],
  },
  ...{
    models: ["settings", "installation"],
    prices: ["settings"],
    limits: ["settings", "own", "installation"],
    status: ["settings"],
  },
  ...{ chat: ["settings"], whoami: ["figures"], doctor: ["settings"], list: ["settings", "installation"] },
  ...Object.fromEntries(
    [
      ...["accounts", "people", "upstreams", "tiers", "audit", "nodes", "replicas", "config", "cache", "apply"],
      "organizations",
      ...["diff", "export", "pull"],
    ].map((name) => [name, ["installation"]]),
  ),
  ...Object.fromEntries(
    [
      ...["backup", "commands", "completion", "connect", "engine", "environment", "login", "logout", "migrate", "node"],
      ...["operator-key", "restore", "rm", "secret", "serve", "setup-link", "spool"],
    ].map((name) => [name, []]),
  ),
};

export interface Surface {
  routes: readonly Route[];
  /** Paths of the dashboard's pages. */
  pages: readonly string[];
  /** First words of the commands. */
  commands: readonly string[];
}

/** Returns the page, and what of the surface has no kind, one line each. */
export function whoSeesPage({ routes, pages, commands }: Surface): { page: string; faults: string[] } {
  const faults: string[] = [];
  const kindsOfPage = (path: string) =>
    ofPages[path] ?? (path.startsWith("/admin/") ? (["installation"] as const) : undefined);
  const endpoints = new Map<SightName, Map<string, string[]>>();
  for (const route of routes) {
    const sight = sightOf(route);
    if (sight === undefined) {
      faults.push(`scripts/who-sees.ts: ${route.method} ${route.path} has no kind of what is seen.`);
      continue;
    }
    const paths = endpoints.get(sight) ?? new Map<string, string[]>();
    endpoints.set(sight, paths.set(route.path, [...(paths.get(route.path) ?? []), route.method]));
  }
  for (const path of pages) if (!kindsOfPage(path)) faults.push(`scripts/who-sees.ts: the page ${path} has no kind.`);
  for (const name of commands) if (!ofCommands[name]) faults.push(`scripts/who-sees.ts: headrace ${name} has no kind.`);
  const titleOf = (kinds: readonly SightName[]) =>
    kinds.map((kind) => sights[kind].title).join("; ") || "nothing of another's";
  const lines = [
    "# Who sees what",
    "",
    "The tables show what operators, owners, admins, members, apps and keys can read of each other. This page is generated by `scripts/who-sees.ts`; the tests that the first table names check its cells.",
    "",
    "## What each reader sees",
    "",
    "A reader needs the scope of the endpoint as well. An operator has the scope `admin:manage`, as a key or a person; elsewhere the operator's own role counts. A refusal is 401 or 403. A single record of somebody else that the reader may not see is 404, like a missing one.",
    "",
    "An operator's key belongs to an account, by default the first one, and sees what other keys of that account see, also stored prompts and answers. An operator can make a key for any account, also with `chat:read`, and read content with it; the audit log then has `key.created`.",
    "",
    table(["What", ...readers, "Tests"], Object.values(sights).map(sightRow)),
    "",
    "## Endpoints",
    "",
    table(
      ["Endpoint", "Scope", "What"],
      Object.keys(sights).flatMap((name) =>
        [...(endpoints.get(name as SightName) ?? [])].map(([path, methods]) => [
          `\`${[...new Set(methods)].join(", ")} ${path}\``,
          routes.find((route) => route.path === path)?.access ?? "",
          sights[name as SightName].title,
        ]),
      ),
    ),
    "",
    "## Pages",
    "",
    table(
      ["Page", "What"],
      pages.map((path) => [`\`${path}\``, titleOf(kindsOfPage(path) ?? [])]),
    ),
    "",
    "## Commands",
    "",
    table(
      ["Command", "What"],
      commands.map((name) => [
        `\`headrace ${name}\``,
        serverCommands.has(name)
          ? "The server's files: whoever may run it can read and change everything"
          : titleOf(ofCommands[name] ?? []),
      ]),
    ),
    "",
  ];
  return { page: lines.join("\n"), faults };
}

function sightRow({ title, cells, tests }: Sight): string[] {
  return [title, ...readers.map((reader) => cells[reader]), tests.map((path) => `\`${path}\``).join(", ")];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
