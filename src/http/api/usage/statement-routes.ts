// The endpoints for monthly cost statements, of one account or of all accounts. The lines of a statement add up to the
// ledger's total.
import type { z } from "zod";
import type { CalendarMonth } from "../../../base/calendar-month.ts";
import type { Clock } from "../../../base/clock.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { Account, AccountStore, OrganizationStore } from "../../../domain/account.ts";
import type { Environment } from "../../../domain/api-key.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { Statement, StatementQuery } from "../../../domain/usage/statement.ts";
import type { Ledger } from "../../../domain/usage/usage.ts";
import { AccountTurns } from "../../../policy/account-turns.ts";
import { requireAccount } from "../../../policy/manage/manage-accounts.ts";
import { requireOrganization } from "../../../policy/manage/manage-organizations.ts";
import { requireOperator } from "../../../policy/manage/operator.ts";
import { addedUp, type Statements } from "../../../policy/records/statements.ts";
import { prefersCsv } from "../../content/csv.ts";
import { readQuery } from "../../content/query.ts";
import type { Answer, Exchange, RouteDoc, ScopedRoute } from "../../exchange/route.ts";
import { csvAnswer, variesByAccept } from "./csv-answer.ts";
import {
  type Sight,
  type StatementNameSources,
  type StatementNames,
  seesAllNames,
  sightOf,
  statementNames,
} from "./statement-names.ts";
import {
  allAccountsParameters,
  operatorParameters,
  operatorQuery,
  ownQuery,
  statementParameters,
  timeOf,
} from "./statement-query.ts";
import {
  type AccountLine,
  type AllAccountsWire,
  allAccountsCsv,
  allAccountsShape,
  groupsToWire,
  linesToWire,
  maxLines,
  type StatementWire,
  statementCsv,
  statementShape,
  sumsToWire,
} from "./statement-wire.ts";
import { writtenSoon } from "./written-soon.ts";

export interface StatementRouteDeps extends StatementNameSources {
  statements: Pick<Statements, "read">;
  accounts: Pick<AccountStore, "findAccount" | "listAccounts">;
  organizations: Pick<OrganizationStore, "findOrganization" | "listAccountsOf">;
  /** The ledger to flush before a statement, so that the records of all processes are in the database. */
  summedLedger: Pick<Ledger, "flush">;
  clock: Clock;
  /** The public base URL of this server. */
  installationUrl(): string;
  /** Time in Unix seconds since which requests without a price are counted. 0 if they were always counted. */
  unpricedSince: number;
}

type Deps = StatementRouteDeps & { turns: AccountTurns };

/** Maximum running and waiting statements of one account. */
const maxOfAccount = 64;
const accountsAtOnce = 100;
const linesAtOnce = 500;

const description =
  "Covers a calendar month in UTC. Costs are exact to nine decimals: the lines and the unlisted rest add up to the total, which is the ledger's. Requests to models without a price are counted separately. With `Accept: text/csv` the answer is all lines and the total as CSV.";

const ownDoc: RouteDoc = {
  tag: "Usage",
  operationId: "getStatement",
  summary: "Retrieve the statement of a month",
  description: `${description} Covers the credential's own environment. A member sees only their own usage unless an owner allowed more, and an app sees its own.`,
  query: statementParameters,
  response: { description: "The statement.", json: statementShape, contentTypes: ["text/csv"] },
};

export function statementRoutes(given: StatementRouteDeps): ScopedRoute[] {
  // SQLite runs on the main thread, so one statement is computed at a time and accounts take turns.
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount, what: "statements", rests: true });
  const deps: Deps = { ...given, turns };
  return [
    {
      method: "GET",
      path: "/v1/statement",
      access: "usage:read",
      doc: ownDoc,
      async handle(exchange, principal) {
        const asked = readQuery(statementParameters, exchange.req.target);
        const query = ownQuery(asked, principal, deps.clock.nowSeconds());
        return statementAnswer(deps, exchange, query, {
          principal,
          account: principal.account,
          sight: sightOf(principal),
        });
      },
    },
    ofAccount(deps),
    ofAllAccounts(deps),
  ];
}

function ofAccount(deps: Deps): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/admin/accounts/:id/statement",
    access: "admin:manage",
    doc: {
      ...ownDoc,
      tag: "Administration",
      operationId: "getAccountStatement",
      summary: "Retrieve the statement of a month of any account",
      description,
      query: operatorParameters,
      parameters: [{ name: "id", in: "path", description: "Id of the account, `acct_…`." }],
      errors: ["not_found", "permission_denied"],
    },
    async handle(exchange, principal) {
      requireOperator(principal);
      const id = exchange.params["id"] ?? "";
      const account = requireAccount(await deps.accounts.findAccount(id), id);
      const asked = readQuery(operatorParameters, exchange.req.target);
      const query = operatorQuery(asked, account.id, principal, deps.clock.nowSeconds());
      return statementAnswer(deps, exchange, query, { principal, account, sight: seesAllNames });
    },
  };
}

function ofAllAccounts(deps: Deps): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/admin/statement",
    access: "admin:manage",
    doc: {
      tag: "Administration",
      operationId: "getStatementOfAccounts",
      summary: "Retrieve the statement of a month, with a line for each account of the server or of one organization",
      description,
      query: allAccountsParameters,
      response: { description: "The statement.", json: allAccountsShape, contentTypes: ["text/csv"] },
      errors: ["permission_denied", "not_found"],
    },
    async handle(exchange, principal) {
      requireOperator(principal);
      return allAccountsAnswer(deps, exchange, principal);
    },
  };
}

async function statementAnswer(
  deps: Deps,
  exchange: Exchange,
  query: StatementQuery,
  { principal, account, sight }: { principal: Principal; account: Account; sight: Sight },
): Promise<Answer> {
  variesByAccept(exchange);
  await allWritten(deps, query);
  const isCsv = prefersCsv(exchange.req.headers.get("accept"));
  const { statement, names, of } = await deps.turns.run(
    principal.account.id,
    async () => {
      const read = await deps.statements.read(query);
      const shown = isCsv ? read.lines : read.lines.slice(0, maxLines);
      return { statement: read, ...(await namesIn(deps, query, { ...read, lines: shown }, sight)) };
    },
    exchange.req.clientGone,
  );
  const { overlaps, total } = statement;
  const head = {
    ...headOf(deps, query),
    account: { id: account.id, name: account.name },
    ...{ of: groupsToWire(of, names), group_by: [...query.groupBy], overlaps },
  };
  if (isCsv) return csvAnswer(exchange, pieces(statementCsv(head, statement, names)));
  const wire: StatementWire = { ...head, ...linesToWire(statement, names), total: sumsToWire(total) };
  return Response.json(wire);
}

/** Returns the names of the ids in a statement's lines and in its filter. */
async function namesIn(
  deps: Deps,
  query: StatementQuery,
  { lines, total }: Statement,
  sight: Sight,
): Promise<{ names: StatementNames; of: Statement["lines"][number]["groups"] }> {
  const { keyId, personId, appId, tag } = query;
  const of = {
    ...(keyId === undefined ? {} : { key: keyId }),
    ...(personId === undefined ? {} : { person: personId }),
    ...(appId === undefined ? {} : { app: appId }),
    ...(tag === undefined ? {} : { tag }),
  };
  // Without any usage, the filter's id may belong to another account, so its name must not be shown.
  const named = total.requests === 0 ? lines : [{ groups: of }, ...lines];
  return { names: await statementNames(query, named, sight, deps), of };
}

async function allAccountsAnswer(deps: Deps, exchange: Exchange, principal: Principal): Promise<Answer> {
  variesByAccept(exchange);
  const asked = readQuery(allAccountsParameters, exchange.req.target);
  const { environment = principal.environment, organization: id } = asked;
  const time = timeOf(asked, deps.clock.nowSeconds());
  const found = id === undefined ? null : requireOrganization(await deps.organizations.findOrganization(id), id);
  await allWritten(deps, time);
  const lines = await deps.turns.run(
    principal.account.id,
    () => linesOfAccounts(deps, { ...time, environment }, id),
    exchange.req.clientGone,
  );
  const total = addedUp(lines.map(({ sums }) => sums));
  const organization = found && { id: found.id, name: found.name };
  const head = { ...headOf(deps, { ...time, environment }), organization };
  if (prefersCsv(exchange.req.headers.get("accept"))) {
    return csvAnswer(exchange, pieces(allAccountsCsv(head, lines, total)));
  }
  const wire: AllAccountsWire = {
    ...head,
    lines: lines.map(({ sums, ...account }) => ({ ...account, ...sumsToWire(sums) })),
    total: sumsToWire(total),
  };
  return Response.json(wire);
}

async function linesOfAccounts(
  { accounts, organizations, statements }: Deps,
  scope: CalendarMonth & { environment: Environment },
  organization: string | undefined,
): Promise<AccountLine[]> {
  const lines: AccountLine[] = [];
  for (let after: string | undefined; ; ) {
    const page = { after, limit: accountsAtOnce };
    const found = await (organization === undefined
      ? accounts.listAccounts(page)
      : organizations.listAccountsOf(organization, page));
    for (const { id, name } of found) {
      const { total } = await statements.read({ ...scope, accountId: id, groupBy: [] });
      if (total.requests > 0) lines.push({ account: id, account_name: name, sums: total });
    }
    if (found.length < accountsAtOnce) return lines;
    after = found.at(-1)?.id;
  }
}

/** Throws if a past month's usage may not all be in the database yet, because its statement must be complete. */
async function allWritten({ clock, summedLedger }: Deps, { end }: Pick<CalendarMonth, "end">): Promise<void> {
  if ((await writtenSoon(summedLedger)) || end > clock.nowSeconds()) return;
  const message = "What was used last is not in the database yet, so that this statement would lack it. Retry in 1 s.";
  throw new GatewayError("service_unavailable", message, { retryAfterSeconds: 1 });
}

function headOf(
  { clock, installationUrl, unpricedSince }: Deps,
  { start, end, environment }: CalendarMonth & { environment: Environment },
): Omit<z.infer<typeof allAccountsShape>, "lines" | "organization" | "total"> {
  const now = clock.nowSeconds();
  return {
    object: "statement",
    month: new Date(start * 1000).toISOString().slice(0, 7),
    ...{ start, end, time_zone: "UTC", created_at: now, is_over: end <= now },
    ...{ installation: installationUrl(), environment, currency: "USD" },
    unpriced_since: start < unpricedSince ? unpricedSince : null,
  };
}

async function* pieces(lines: Iterable<string>): AsyncGenerator<string> {
  let together: string[] = [];
  for (const line of lines) {
    if (together.push(line) < linesAtOnce) continue;
    yield together.join("");
    together = [];
    await new Promise(setImmediate);
  }
  yield together.join("");
}
