// `headrace people`: lists, shows, invites and deletes people, and makes operators. For operators.
import type { z } from "zod";
import { roles } from "../../domain/people/role.ts";
import { createdInvitationShape, personDetailsShape, personShape, resetLinkShape } from "../../wire/people/people.ts";
import { type Column, type CommandEntry, command, printRows } from "../command.ts";
import { ApiError, requestJson, requestList, requestWholeList, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";
import { formatRelative, formatTime, formatTimeAndRelative, formatUsd, usdDigits } from "../terminal/figures.ts";
import { CliError, exitCodes, formatFacts, printable, type Terminal } from "../terminal/terminal.ts";
import { accountId, accountPath } from "./accounts.ts";
import { suspensionCommands } from "./suspension.ts";

type Person = z.infer<typeof personShape>;

const who = ["<who>", "e-mail address, or id"] as const;
const json = ["--json", "print the person as the API gives it"] as const;
const personPath = (id: string) => `/admin/people/${encodeURIComponent(id)}`;

const columnsOf = (people: readonly Person[], nowSeconds: number): Column<Person>[] => [
  ["E-MAIL", ({ email }) => email],
  ["NAME", ({ name }) => name],
  ["OPERATOR", (person) => (person.is_operator ? "yes" : "-")],
  ["STATUS", (person) => (person.suspended_at === null ? "active" : "suspended")],
  ["SPEND, MONTH", ({ usage }) => formatUsd(usage?.spend, usdDigits(people.map((one) => one.usage?.spend)))],
  ["LAST USED", ({ usage }) => formatRelative(usage?.last_used_at, nowSeconds)],
  ["SINCE", ({ created_at: at }) => formatTime(at)],
  ["ID", ({ id }) => id],
];

const listCommand = serverCommand({
  name: "list",
  isDefault: true,
  summary: "list the people who can sign in (the default)",
  description: `List the people who can sign in, of all accounts, oldest first, with their spend of this month in the environment of the key or login. ${operatorNeeds}`,
  options: {
    operators: ["--operators", "only operators"],
    json: ["--json", "print the list as the API gives it"],
  },
  examples: ["headrace people", "headrace people list --operators"],
  async run({ connect, ask, options, terminal, nowSeconds }) {
    const connection = await connect();
    const all = await ask((_, signal) => requestList(connection, "/admin/people?include=usage", signal));
    const people = all.map((raw) => ({ raw, ...understood(personShape, raw, connection, "list of people") }));
    const shown = people.filter(({ is_operator: isOperator }) => !options.operators || isOperator);
    const show = () => {
      if (shown.length > 0)
        return printRows(terminal, shown, columnsOf(shown, nowSeconds()), ["SPEND, MONTH"], ["ID", "SINCE"]);
      terminal.note("Nobody can sign in yet. headrace setup-link makes the link for the first operator.");
    };
    return { json: shown.map(({ raw }) => raw), show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show one person and their accounts",
  description: `Show one person, with their role in each account. ${operatorNeeds}`,
  arguments: [who],
  options: { json },
  examples: ["headrace people show ada@example.com"],
  async run({ connect, ask, request, terminal }, wanted) {
    const connection = await connect();
    const { id } = await ask((_, signal) => findPerson(connection, wanted, signal));
    const answer = await request(personPath(id));
    return { json: answer, show: () => printPerson(terminal, answer, connection) };
  },
});

const inviteCommand = serverCommand({
  name: "invite",
  summary: "invite a person into an account",
  description: `Invite a person into any account, such as the owner of a new one. ${operatorNeeds}`,
  arguments: [["<email>", "e-mail address"]],
  options: {
    account: ["--account <account>", "name or id of the account"],
    role: ["--role <role>", "role in the account (default: member)", roles],
    json: ["--json", "print what the API gives, the link included"],
  },
  examples: ["headrace people invite ada@example.com --account 'Web shop' --role owner"],
  help: [
    `If the server sends mail, it mails the link. Otherwise the link is printed once, alone on
standard output: whoever has it can join.`,
  ],
  async run({ connect, ask, request, options, terminal, nowSeconds }, email) {
    const { account, role } = options;
    if (account === undefined) throw new CliError("Name the account: --account <account>.", exitCodes.usage);
    const connection = await connect();
    const path = `${accountPath(await ask((_, signal) => accountId(connection, account, signal)))}/invitations`;
    const answer = await request(path, { method: "POST", body: { email, ...(role ? { role } : {}) } });
    const show = () => {
      const made = understood(createdInvitationShape, answer, connection, "invitation");
      if (made.link !== null) terminal.print(printable(made.link));
      const how = made.link === null ? "by mail" : "by this link, which you pass on";
      const until = formatTimeAndRelative(made.expires_at, nowSeconds());
      terminal.note(`${printable(made.email)} is invited as ${made.role} ${how}, until ${until}.`);
    };
    return { json: answer, show };
  },
});

const resetLinkCommand = serverCommand({
  name: "reset-link",
  summary: "make a link with which a person sets a new password",
  description: `Make a link with which a person sets a new password. It works once, for an hour, and signs the person out everywhere. ${operatorNeeds}`,
  arguments: [who],
  options: { json: ["--json", "print what the API gives, the link included"] },
  examples: ["headrace people reset-link ada@example.com"],
  async run({ connect, ask, request, terminal }, wanted) {
    const connection = await connect();
    const { id, email } = await ask((_, signal) => findPerson(connection, wanted, signal));
    const answer = await request(`${personPath(id)}/reset-link`, { method: "POST" });
    const show = () => {
      terminal.print(printable(understood(resetLinkShape, answer, connection, "link").link));
      terminal.note(`For ${printable(email)}: it is not mailed, so pass it on yourself.`);
    };
    return { json: answer, show };
  },
});

const grantCommand = operatorCommand(true, {
  name: "make-operator",
  summary: "make a person an operator",
  description: "Make a person an operator, who may do everything on this installation.",
});

const revokeCommand = operatorCommand(false, {
  name: "end-operator",
  summary: "take the operator role from a person",
  description:
    "Take the operator role from a person. Operator's keys that the person made stay valid: revoke them as well.",
});

function operatorCommand(
  isOperator: boolean,
  { description, ...fields }: Pick<CommandEntry, "description"> & { name: string; summary: string },
): CommandEntry {
  return serverCommand({
    ...fields,
    description: `${description} ${operatorNeeds}`,
    arguments: [who],
    options: { json },
    examples: [`headrace people ${fields.name} ada@example.com`],
    async run({ connect, ask, request, terminal }, wanted) {
      const connection = await connect();
      const { id, email } = await ask((_, signal) => findPerson(connection, wanted, signal));
      const answer = await request(personPath(id), { method: "PATCH", body: { is_operator: isOperator } });
      const is = isOperator ? "is an operator now" : "is no operator any more";
      return { json: answer, show: () => terminal.print(`${printable(email)} ${is}.`) };
    },
  });
}

const deleteCommand = serverCommand({
  name: "delete",
  summary: "delete a person permanently",
  description: `Delete a person permanently, with their memberships, sessions and own keys. ${operatorNeeds}`,
  arguments: [who],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace people delete ada@example.com"],
  async run({ connect, ask, request, confirm, terminal }, wanted) {
    const connection = await connect();
    const { id, email } = await ask((_, signal) => findPerson(connection, wanted, signal));
    await confirm({
      question: `Delete ${email}`,
      consequence: "They leave all accounts, and their own keys, logins and apps end. This cannot be undone.",
    });
    const answer = await request(personPath(id), { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`${printable(email)} is deleted.`) };
  },
});

const suspension = suspensionCommands({
  group: "people",
  argument: who,
  example: "ada@example.com",
  refuses: "a person's sign-in, sessions, logins, own keys and apps",
  needs: operatorNeeds,
  async find({ connect, ask }, wanted) {
    const connection = await connect();
    const { id, email } = await ask((_, signal) => findPerson(connection, wanted, signal));
    return { path: personPath(id), name: email };
  },
});

export const peopleCommand = command({
  name: "people",
  summary: "list, invite, suspend and delete people of all accounts",
  description: `Manage the people of all accounts. ${operatorNeeds} headrace members is for owners of one account.`,
  examples: [
    "headrace people                                 list them",
    "headrace people show ada@example.com",
    "headrace people invite ada@example.com --account 'Web shop' --role owner",
    "headrace people suspend ada@example.com        at once, and resume later",
    "headrace people make-operator ada@example.com",
    "headrace people reset-link ada@example.com",
  ],
  commands: [
    ...[listCommand, showCommand, inviteCommand, resetLinkCommand],
    ...[...suspension, grantCommand, revokeCommand, deleteCommand],
  ],
});

export async function findPerson(connection: Connection, wanted: string, signal: AbortSignal): Promise<Person> {
  const unknown = new CliError(`No person has the address or id \`${printable(wanted)}\`. headrace people lists them.`);
  if (wanted.startsWith("usr_")) {
    const one = await requestJson(connection, personPath(wanted), signal).catch((error: unknown) => {
      throw error instanceof ApiError && error.status === 404 ? unknown : error;
    });
    return understood(personShape, one, connection, "person");
  }
  // Text without `@` is no address, and the API refuses a search for very short text.
  if (!wanted.includes("@")) throw unknown;
  const path = `/admin/people?email=${encodeURIComponent(wanted.trim())}`;
  const [found] = await requestWholeList(connection, path, "list of people", signal);
  if (found === undefined) throw unknown;
  return understood(personShape, found, connection, "list of people");
}

function printPerson({ print, out }: Terminal, answer: unknown, connection: Connection): void {
  const person = understood(personDetailsShape, answer, connection, "person");
  print(`${out.bold(printable(person.email))}  ${printable(person.name)}\n`);
  const facts: [string, string][] = [
    ["ID", person.id],
    ["Operator", person.is_operator ? "yes" : "no"],
    ...(person.suspended_at === null
      ? []
      : [["Suspended", `since ${formatTime(person.suspended_at)}`] satisfies [string, string]]),
    ["Since", formatTime(person.created_at)],
    ...person.memberships.map(({ account_name: name, account_id: id, role }): [string, string] => [
      "Account",
      `${name}, as ${role} (${id})`,
    ]),
  ];
  print(formatFacts(facts, out));
}
