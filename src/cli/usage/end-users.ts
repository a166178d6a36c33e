// `headrace end-users`: budgets for the users whom requests name. For owners, admins and keys of the account.
import type { z } from "zod";
import type { GivenQuotaRule } from "../../domain/limits/quota-rules.ts";
import { endUserDetailsShape, endUserListShape } from "../../wire/operations/end-users.ts";
import { type Column, command, printRows } from "../command.ts";
import { parseQuotas, quotaFacts, quotaWords } from "../keys/quota-view.ts";
import { understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatFacts, printable } from "../terminal/terminal.ts";

const path = "/account/end-users";
const pathOf = (id: string) => `${path}/${encodeURIComponent(id)}`;
const needs = "Needs a login as owner or admin, or a key of the account with keys:manage.";
const endUserArgument = ["<id>", "end user, as requests name it"] as const;
const quotasArgument = [
  "<quotas>",
  'such as "0.5 usd per day, 20 requests per hour", or none',
  (text: string): GivenQuotaRule[] => (text === "none" ? [] : parseQuotas(text)),
] as const;
const json = ["--json", "print what the API gives"] as const;

type Row = { id: string; quotas: z.infer<typeof endUserListShape>["data"][number]["quotas"] };
const columns: Column<Row>[] = [
  ["END USER", ({ id }) => printable(id)],
  ["QUOTAS", ({ quotas }) => quotaWords(quotas) || "unlimited"],
];

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the budgets (the default)",
  description: `List the default budget and the budgets of single end users. ${needs}`,
  options: { json },
  examples: ["headrace end-users"],
  async run({ connect, request, terminal }) {
    const answer = await request(path);
    const connection = await connect();
    const show = () => {
      const { default_quotas: quotas, data } = understood(endUserListShape, answer, connection, "list of end users");
      if (quotas === null && data.length === 0) return terminal.note("No end user has a budget.");
      printRows(terminal, [{ id: "(all others)", quotas: quotas ?? [] }, ...data], columns);
    };
    return { json: answer, show };
  },
});

const showCommand = endUserCommand({
  name: "show",
  summary: "show the budget of one end user, and its usage",
  description: `Show the budget that applies to an end user: used, left, and when it resets. ${needs}`,
  examples: ["headrace end-users show alice"],
  send: (id) => [pathOf(id)],
});

const removeCommand = endUserCommand({
  name: "remove",
  summary: "remove the budget of one end user; the default budget applies again",
  description: `Remove the budget of an end user. The default budget applies again. ${needs}`,
  examples: ["headrace end-users remove alice"],
  send: (id) => [pathOf(id), { method: "DELETE" }],
});

const setCommand = serverCommand({
  name: "set",
  summary: "set the budget of one end user",
  description: `Set the budget of an end user, in place of the default budget. ${needs}`,
  arguments: [endUserArgument, quotasArgument],
  options: { json },
  examples: ['headrace end-users set alice "5 usd per month"'],
  async run({ request, terminal }, id, quotas) {
    const answer = await request(pathOf(id), { method: "PUT", body: { quotas } });
    return { json: answer, show: () => terminal.print(`The budget of ${printable(id)} is set.`) };
  },
});

const defaultCommand = serverCommand({
  name: "default",
  summary: "set the budget of each end user without one of their own",
  description: `Set the budget of each end user without one of their own; none removes it. ${needs}`,
  arguments: [quotasArgument],
  options: { json },
  examples: ['headrace end-users default "0.5 usd per day"'],
  async run({ request, terminal }, quotas) {
    const body = { default_quotas: quotas.length === 0 ? null : quotas };
    const answer = await request(path, { method: "PUT", body });
    return { json: answer, show: () => terminal.print("The default budget is set.") };
  },
});

export const endUsersCommand = command({
  name: "end-users",
  summary: "set budgets for the users whom requests name",
  description: `Set budgets for the users whom requests name with user or safety_identifier. ${needs}`,
  examples: [
    "headrace end-users                                 list the budgets",
    'headrace end-users default "0.5 usd per day"       each end user',
    'headrace end-users set alice "5 usd per month"     one end user',
    "headrace end-users show alice                      used and left",
  ],
  commands: [listCommand, showCommand, defaultCommand, setCommand, removeCommand],
});

interface EndUserFields {
  name: string;
  summary: string;
  description: string;
  examples: readonly string[];
  send(id: string): [path: string, how?: { method: "DELETE" }];
}

function endUserCommand({ send, ...fields }: EndUserFields) {
  return serverCommand({
    ...fields,
    arguments: [endUserArgument],
    options: { json },
    async run({ connect, request, terminal, nowSeconds }, id) {
      const answer = await request(...send(id));
      const connection = await connect();
      const show = () => {
        const endUser = understood(endUserDetailsShape, answer, connection, "end user");
        const facts: [string, string][] = [
          ["End user", printable(endUser.id)],
          ["Budget", endUser.is_default ? "the default" : "their own"],
          ...quotaFacts(endUser.quotas_used, terminal.unicode, nowSeconds()),
        ];
        terminal.print(formatFacts(facts, terminal.out));
        if (endUser.quotas_used.length === 0) terminal.note("No quota limits this end user.");
      };
      return { json: answer, show };
    },
  });
}
