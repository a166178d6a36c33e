// `headrace limits request`, `requests`, `grant` and `refuse`: more of a quota for a time.
import { InvalidArgumentError } from "commander";
import { type LimitRequestWire, limitRequestShape } from "../../wire/people/limit-requests.ts";
import { type Column, printRows } from "../command.ts";
import { parseQuotas, quotaWords } from "../keys/quota-view.ts";
import { requestList, understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatRelative, formatTimeAndRelative, parseSpan } from "../terminal/figures.ts";
import { printable } from "../terminal/terminal.ts";
import { type isOfAll, pathOf } from "./all-accounts.ts";

const idArgument = ["<id>", "id of the request, as headrace limits requests shows it"] as const;
const json = ["--json", "print the request as the API gives it"] as const;
const allAccounts = ["--all-accounts", "for operators: requests about the limits of accounts"] as const;

export const requestCommand = serverCommand({
  name: "request",
  summary: "ask for more of a limit",
  description: "Ask owners and admins for more of your quota as a member. Needs headrace login.",
  arguments: [["<quota>", 'the additional amount and the quota, such as "5 usd per day"', parseOne]],
  options: {
    reason: ["--reason <text>", "why you need more, in one line"],
    ofAccount: ["--of-account", "ask operators for more of the account's quota; for owners and admins"],
    json,
  },
  examples: [
    'headrace limits request "5 usd per day" --reason "evaluation, until Friday"',
    'headrace limits request "100 usd per month" --of-account --reason "migration"',
  ],
  help: ["headrace limits shows the quotas. You can have one open request for each quota."],
  async run({ connect, request, options, terminal }, quota) {
    const connection = await connect();
    const owner = options.ofAccount ? "account" : "member";
    const body = { ...quota, owner, reason: options.reason ?? "" };
    const answer = await request("/limit-requests", { method: "POST", body });
    const show = () => {
      const { id } = understood(limitRequestShape, answer, connection, "limit request");
      const who = options.ofAccount ? "Operators" : "Owners and admins";
      terminal.print(`${who} see your request ${printable(id)} now. headrace limits requests shows the answer.`);
    };
    return { json: answer, show };
  },
});

export const requestsCommand = serverCommand({
  name: "requests",
  summary: "list requests for more of a limit",
  description:
    "List requests for more of a limit: your own, or all of the account for owners and admins. Needs headrace login; with --all-accounts, an operator's key.",
  options: {
    open: ["--open", "only those that are not decided"],
    allAccounts,
    json: ["--json", "print the list as the API gives it"],
  },
  examples: ["headrace limits requests", "headrace limits requests --open --all-accounts"],
  async run({ connect, ask, options, terminal, nowSeconds }) {
    const connection = await connect();
    const path = `${pathOf("/limit-requests", options)}${options.open ? "?status=open" : ""}`;
    const raw = await ask((_, signal) => requestList(connection, path, signal));
    const requests = raw.map((one) => understood(limitRequestShape, one, connection, "list of limit requests"));
    const show = () => {
      if (requests.length === 0) return terminal.note("There is no such request.");
      printRows(terminal, requests, columnsOf(nowSeconds()), [], ["ASKED", "REASON"]);
    };
    return { json: raw, show };
  },
});

export const grantCommand = serverCommand({
  name: "grant",
  summary: "raise a limit for a time",
  description:
    "Raise a quota for a time, as a member asked. Needs headrace login as owner or admin; with --all-accounts, an operator's key.",
  arguments: [idArgument],
  options: {
    amount: ["--amount <number>", "amount to add (default: the amount that was asked for)", parseAmount],
    for: ["--for <span>", "how long, such as 24h or 7d (default: 24h)", parseTime],
    allAccounts,
    json,
  },
  examples: ["headrace limits grant lrq_… --amount 5 --for 24h", "headrace limits grant lrq_… --for 7d --all-accounts"],
  async run({ connect, ask, request, options, terminal, nowSeconds }, id) {
    const connection = await connect();
    const asked = async () => {
      const all = await ask((_, signal) => requestList(connection, pathOf("/limit-requests", options), signal));
      const requests = all.map((one) => understood(limitRequestShape, one, connection, "list of limit requests"));
      return requests.find((one) => one.id === id)?.amount;
    };
    const amount = options.amount ?? (await asked());
    const body = { amount: amount ?? undefined, seconds: options.for ?? 86_400 };
    const answer = await request(decisionPath(id, "grant", options), { method: "POST", body });
    const show = () => {
      const { person, decision, ...quota } = understood(limitRequestShape, answer, connection, "limit request");
      const more = quotaWords([{ ...quota, amount: decision?.amount ?? 0 }]);
      const until = formatTimeAndRelative(decision?.until ?? 0, nowSeconds());
      terminal.print(`${printable(person.email)} has ${more} more until ${until}.`);
    };
    return { json: answer, show };
  },
});

export const refuseCommand = serverCommand({
  name: "refuse",
  summary: "refuse a request, or end its raise early",
  description:
    "Refuse a request for more of a limit. If it was granted, its raise ends immediately. Needs headrace login as owner or admin; with --all-accounts, an operator's key.",
  arguments: [idArgument],
  options: { allAccounts, json },
  examples: ["headrace limits refuse lrq_…"],
  async run({ request, options, terminal }, id) {
    const answer = await request(decisionPath(id, "refuse", options), { method: "POST", body: {} });
    return { json: answer, show: () => terminal.print("The request is refused, and the limit is as before.") };
  },
});

function decisionPath(id: string, decision: "grant" | "refuse", options: Parameters<typeof isOfAll>[0]): string {
  return `${pathOf("/limit-requests", options)}/${encodeURIComponent(id)}/${decision}`;
}

function columnsOf(nowSeconds: number): Column<LimitRequestWire>[] {
  return [
    ["ID", ({ id }) => id],
    ["WHO", ({ person, owner }) => (owner === "account" ? `${person.email}, account` : person.email)],
    ["MORE", ({ amount, ...quota }) => (amount == null ? `per ${quota.per}, ${quota.unit}` : wanted(quota, amount))],
    ["STATUS", ({ status, decision }) => statusText(status, decision?.until, nowSeconds)],
    ["ASKED", ({ created_at: at }) => formatRelative(at, nowSeconds)],
    ["REASON", ({ reason }) => reason],
  ];
}

function wanted({ unit, per, models, tag }: Pick<LimitRequestWire, "unit" | "per" | "models" | "tag">, amount: number) {
  return quotaWords([{ unit, per, models, tag, amount }]);
}

function statusText(status: string, until: number | null | undefined, nowSeconds: number): string {
  return status === "granted" && until != null ? `granted, ends ${formatRelative(until, nowSeconds)}` : status;
}

function parseOne(text: string) {
  const [quota, ...others] = parseQuotas(text);
  if (!quota || others.length > 0) throw new InvalidArgumentError("Name one quota.");
  const { hard_stop: isHard, ...given } = quota;
  if (isHard) throw new InvalidArgumentError('Leave out "hard".');
  return given;
}

function parseAmount(text: string): number {
  const amount = Number(text);
  if (/^\d{1,15}(\.\d{1,9})?$/.test(text) && amount > 0) return amount;
  throw new InvalidArgumentError("It must be a number above 0.");
}

function parseTime(text: string): number {
  const seconds = parseSpan(text);
  if (seconds !== undefined && seconds >= 60) return seconds;
  throw new InvalidArgumentError("Give a time such as 2h or 7d, at least 1m.");
}
