// `headrace whoami`: shows the server, the identity and the credential of the commands.
import { z } from "zod";
import { isOwnKey, listKeys, shownKey } from "../keys/key-records.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { formatFacts, printable } from "../terminal/terminal.ts";
import { ApiError, requestJson, understood } from "./api-request.ts";
import type { Connection } from "./connection.ts";
import { serverCommand } from "./server-command.ts";

const session = z.object({
  person: z.object({ id: z.string(), email: z.string(), name: z.string(), is_operator: z.boolean() }),
  account: z.object({ id: z.string(), name: z.string() }),
  role: z.string(),
  environment: z.string(),
  scopes: z.array(z.string()),
});

export type PersonSession = z.infer<typeof session>;

/** Returns the person of a login. Rejects with an ApiError of 403 for a key, which has no person. */
export async function readSession(connection: Connection, signal: AbortSignal): Promise<PersonSession> {
  return understood(session, await requestJson(connection, "/session", signal), connection, "session");
}

export const whoamiCommand = serverCommand({
  name: "whoami",
  summary: "show who is signed in, or which key is used",
  description: "Show who is signed in, to which account and server, or which API key is used.",
  options: { json: ["--json", "print one JSON object"] },
  examples: ["headrace whoami", "headrace whoami --json"],
  help: ["Exit code 1 when the server cannot be reached or refuses the login or key."],
  async run({ connect, ask, terminal, nowSeconds }) {
    const connection = await connect();
    const identity = await ask(identify);
    const { baseUrl, keySource } = connection;
    return {
      json: { base_url: baseUrl, source: keySource, ...identity },
      show: () => terminal.print(formatFacts(facts(identity, connection, nowSeconds()), terminal.out)),
    };
  },
});

/** The known facts about a credential. A fact is null if it is unknown or does not exist. */
interface Identity {
  person: PersonSession["person"] | null;
  account: PersonSession["account"] | null;
  role: string | null;
  key: { id: string; name: string; shown: string } | null;
  environment: string | null;
  scopes: readonly string[] | null;
  /** The expiry in Unix seconds; null for never or unknown. */
  expires_at: number | null;
}

async function identify(connection: Connection, signal: AbortSignal): Promise<Identity> {
  try {
    const { person, account, role, environment, scopes } = await readSession(connection, signal);
    return { person, account, role, key: null, environment, scopes, expires_at: connection.login?.expiresAt ?? null };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    return identifyKey(connection, signal);
  }
}

const account = z.object({ id: z.string(), name: z.string(), environment: z.string() });

/** Returns the facts about the key that its scopes allow it to read. */
async function identifyKey(connection: Connection, signal: AbortSignal): Promise<Identity> {
  const [found, keys] = await Promise.all([
    unlessForbidden(requestJson(connection, "/account", signal)),
    unlessForbidden(listKeys(connection, signal)),
  ]);
  const of = found === undefined ? undefined : understood(account, found, connection, "account");
  const key = keys?.find((one) => isOwnKey(connection, one.key))?.key;
  return {
    person: null,
    account: of ? { id: of.id, name: of.name } : null,
    role: null,
    key: key ? { id: key.id, name: key.name, shown: shownKey(key) } : null,
    environment: of?.environment ?? key?.environment ?? null,
    scopes: key?.scopes ?? null,
    expires_at: key?.expires_at ?? null,
  };
}

async function unlessForbidden<Result>(answer: Promise<Result>): Promise<Result | undefined> {
  return answer.catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  });
}

function facts(identity: Identity, { baseUrl, keySource, login }: Connection, nowSeconds: number) {
  const { person, key, scopes, role, environment, expires_at } = identity;
  const unknown = (scope: string) => `not to be seen without the scope ${scope}`;
  const until = expires_at === null ? "never" : formatTimeAndRelative(expires_at, nowSeconds);
  const rows: [name: string, value: string][] = [["Server", baseUrl]];
  if (person) {
    // An operator acts as an operator only with this scope, which no login has.
    const operates = person.is_operator && scopes?.includes("admin:manage");
    rows.push(["Person", `${namedPerson(person)}${operates ? ", operator" : ""}`]);
  } else {
    rows.push(["Key", key ? `${key.shown} "${key.name}" (${key.id})` : unknown("keys:manage")]);
  }
  rows.push(["From", keySource]);
  rows.push([
    "Account",
    identity.account ? `${identity.account.name} (${identity.account.id})` : unknown("usage:read"),
  ]);
  if (role !== null) rows.push(["Role", role]);
  if (environment !== null) rows.push(["Environment", environment]);
  if (scopes !== null) rows.push(["Scopes", scopes.join(", ") || "-"]);
  if (login) rows.push(["Token", `until ${until}, renewed by itself`]);
  else if (key) rows.push(["Expires", until]);
  return rows;
}

/** Returns `Ada Lovelace <ada@example.com>`, or the address alone if there is no name. */
export function namedPerson({ name, email }: { name: string; email: string }): string {
  return printable(name.trim() === "" || name === email ? email : `${name} <${email}>`);
}
