// `headrace members`: lists, invites, changes and removes the people of an account.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import type { GivenQuotaRule } from "../../domain/limits/quota-rules.ts";
import { type Role, roles } from "../../domain/people/role.ts";
import { command } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { parseTools, toolsForm } from "../keys/key-settings.ts";
import { givenQuota, parseQuotas, quotasHelp, quotaWords } from "../keys/quota-view.ts";
import { formatRelative, formatTimeAndRelative, formatUsd, usdDigits } from "../terminal/figures.ts";
import { CliError, formatTable, printable } from "../terminal/terminal.ts";
import { requestJson, requestList, understood } from "./api-request.ts";
import type { Connection } from "./connection.ts";
import { serverCommand } from "./server-command.ts";

const member = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  role: z.string(),
  created_at: z.number(),
  usage: z.object({ spend: z.number(), last_used_at: z.number().nullable() }).nullish(),
  quotas: z.array(givenQuota).nullish(),
  tools: z.array(z.string()).nullish(),
  sees_all_usage: z.boolean().nullish(),
});
const invitation = z.object({ id: z.string(), email: z.string(), role: z.string(), expires_at: z.number() });
const newInvitation = invitation.extend({ link: z.string().nullable() });

const ownSession = z.object({
  person: z.object({ email: z.string() }),
  account: z.object({ id: z.string() }),
  accounts: z.array(z.object({ id: z.string(), membership_id: z.string() })),
});

/** A member of the account, or an invited person. */
interface Found {
  kind: "member" | "invitation";
  one: { id: string; email: string };
}

const whoArgument = ["<who>", "e-mail address, or id"] as const;
const roleMeanings = `\
Members manage their own keys, apps and chats; admins all of the account's; owners
its owners and admins as well.`;

const listCommand = serverCommand({
  name: "list",
  summary: "list members and invitations",
  description:
    "List the members of the account, with their spend of this month in the environment of the login, and the pending invitations.",
  options: { json: ["--json", "print both lists as the API gives them"] },
  examples: ["headrace members list", "headrace members list --json"],
  async run({ connect, ask, terminal, nowSeconds }) {
    const connection = await connect();
    const lists = await ask(async (_, signal) => ({
      members: await requestList(connection, "/members?include=usage", signal),
      invitations: await requestList(connection, "/invitations", signal),
    }));
    const show = () => {
      const time = (seconds: number | null | undefined) => formatRelative(seconds, nowSeconds());
      const members = lists.members.map((raw) => understood(member, raw, connection, "list of members"));
      const digits = usdDigits(members.map(({ usage }) => usage?.spend));
      const joined = members.map((one) => [
        ...[one.email, one.name, one.role, one.role !== "member" || one.sees_all_usage ? "all" : "own"],
        ...[time(one.created_at), formatUsd(one.usage?.spend, digits), time(one.usage?.last_used_at), one.id],
      ]);
      const invited = lists.invitations
        .map((raw) => understood(invitation, raw, connection, "list of invitations"))
        .map((one) => [one.email, "-", one.role, "-", `invited, ends ${time(one.expires_at)}`, "-", "-", one.id]);
      const header = ["E-MAIL", "NAME", "ROLE", "SEES", "JOINED", "SPEND, MONTH", "LAST USED", "ID"];
      terminal.print(formatTable(header, [...joined, ...invited], terminal.out, [5]));
    };
    return { json: lists, show };
  },
});

const inviteCommand = serverCommand({
  name: "invite",
  summary: "invite a person by a link",
  description: "Invite a person to the account by a link. The link works once, for a week.",
  arguments: [["<email>", "of whom it is for"]],
  options: {
    role: ["--role <role>", `one of ${roles.join(", ")}`, parseRole, "member"],
    quiet: ["-q, --quiet", "print nothing but the link, or on standard error the address that it was mailed to"],
    json: ["--json", "print what the API gives, the link included"],
  },
  examples: ["headrace members invite ada@example.com", "headrace members invite ada@example.com --role admin --quiet"],
  help: [
    `If the server sends mail, it mails the link and does not show it. Otherwise the link is
printed once, alone on standard output. Everything else goes to standard error.
Anyone who has the link can join. Send it over a private channel.`,
    roleMeanings,
  ],
  async run({ connect, request, options, terminal, nowSeconds }, email) {
    refuseSecret(email);
    const connection = await connect();
    const answer = await request("/invitations", { method: "POST", body: { email, role: options.role } });
    const show = () => {
      const made = understood(newInvitation, answer, connection, "new invitation");
      if (made.link !== null) terminal.print(printable(made.link));
      if (options.quiet) {
        // Without this line, the person would see neither why no link was printed nor whether the address was right.
        if (made.link === null) terminal.note(`Mailed to ${printable(made.email)}.`);
        return;
      }
      const who = `${printable(made.email)} is invited as ${article(made.role)} ${printable(made.role)}`;
      const until = formatTimeAndRelative(made.expires_at, nowSeconds());
      terminal.note(`${who}. The link works once, until ${until}.`);
      terminal.note(made.link === null ? "It was sent by mail." : "No mail was sent: hand the link over yourself.");
    };
    return { json: answer, show };
  },
});

const roleCommand = serverCommand({
  name: "role",
  summary: "change a member's role",
  description: "Change a member's role. For owners.",
  arguments: [whoArgument, ["<role>", `one of ${roles.join(", ")}`, parseRole]],
  options: { json: ["--json", "print the member as the API gives it"] },
  examples: ["headrace members role ada@example.com owner"],
  help: [roleMeanings],
  async run({ ask, request, terminal }, who, role) {
    const { kind, one } = await ask((connection, signal) => findOne(connection, who, signal));
    const email = printable(one.email);
    if (kind === "invitation") {
      throw new CliError(
        `${email} has not joined yet. Invite again with the other role: headrace members invite ${email} --role ${role}`,
      );
    }
    const answer = await request(`/members/${encodeURIComponent(one.id)}`, { method: "PATCH", body: { role } });
    return { json: answer, show: () => terminal.print(`${email} is ${article(role)} ${role} now.`) };
  },
});

const quotasCommand = serverCommand({
  name: "quotas",
  summary: "set a member's quotas",
  description: "Replace the quotas of a member, or remove them with none. For owners, and for admins about members.",
  arguments: [whoArgument, ["<quotas>", 'such as "200 requests per 5h, 5 usd per day", or none', parseGivenQuotas]],
  options: { json: ["--json", "print the member as the API gives it"] },
  examples: [
    'headrace members quotas ada@example.com "5 usd per day, 200 requests per 5h"',
    "headrace members quotas ada@example.com none",
  ],
  help: [
    `The quotas apply in each environment to the dashboard, to headrace login, and to the
person's own keys and apps together.`,
    quotasHelp,
  ],
  async run({ ask, connect, request, terminal }, who, quotas) {
    const connection = await connect();
    const one = await ask((connection, signal) => findMember(connection, who, signal));
    const answer = await request(`/members/${encodeURIComponent(one.id)}`, { method: "PATCH", body: { quotas } });
    const show = () => {
      const words = quotaWords(understood(member, answer, connection, "member").quotas ?? []);
      terminal.print(`${printable(one.email)} ${words === "" ? "has no quotas now" : `may use ${words}`}.`);
    };
    return { json: answer, show };
  },
});

const toolsCommand = serverCommand({
  name: "tools",
  summary: "set the tools that a member may use",
  description: "Set the MCP tools that a member may use. For owners, and for admins about members.",
  arguments: [whoArgument, ["<tools>", toolsForm, parseTools]],
  options: { json: ["--json", "print the member as the API gives it"] },
  examples: [
    "headrace members tools ada@example.com github/search_*,weather",
    "headrace members tools ada@example.com none",
    "headrace members tools ada@example.com all",
  ],
  help: [
    "The list applies to the person, their keys and the apps that they allowed. Lists of those keys and apps also apply.",
  ],
  async run({ ask, connect, request, terminal }, who, given) {
    const connection = await connect();
    const one = await ask((_, signal) => findMember(connection, who, signal));
    const body = { tools: given === "none" ? null : given };
    const answer = await request(`/members/${encodeURIComponent(one.id)}`, { method: "PATCH", body });
    const show = () => {
      const tools = understood(member, answer, connection, "member").tools ?? null;
      const which = tools === null ? "all tools that are offered" : tools.join(", ") || "no tools";
      terminal.print(`${printable(one.email)} may use ${printable(which)} now.`);
    };
    return { json: answer, show };
  },
});

const seesMeanings = { own: false, all: true } as const;

const seesCommand = serverCommand({
  name: "sees",
  summary: "set whose usage a member sees",
  description: "Set whether a member sees the usage and requests of the whole account or only their own. For owners.",
  arguments: [whoArgument, ["<whose>", "own or all", parseSees]],
  options: { json: ["--json", "print the member as the API gives it"] },
  examples: ["headrace members sees ada@example.com all", "headrace members sees ada@example.com own"],
  help: [
    `The member sees usage and metadata, never the content of others. Owners and admins always
see the whole account.`,
  ],
  async run({ ask, request, terminal }, who, whose) {
    const one = await ask((connection, signal) => findMember(connection, who, signal));
    const body = { sees_all_usage: seesMeanings[whose] };
    const answer = await request(`/members/${encodeURIComponent(one.id)}`, { method: "PATCH", body });
    const what = whose === "all" ? "the usage of the whole account" : "their own usage alone";
    return { json: answer, show: () => terminal.print(`${printable(one.email)} sees ${what} now.`) };
  },
});

const removeCommand = serverCommand({
  name: "remove",
  summary: "remove a member, or cancel an invitation",
  description: "Remove a member, or cancel an invitation. With your own address you leave the account.",
  arguments: [whoArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print what the API gives"] },
  examples: ["headrace members remove ada@example.com", "headrace members remove ada@example.com --yes"],
  async run({ ask, request, confirm, terminal }, who) {
    const { kind, one } = await ask(
      async (connection, signal) => (await findSelf(connection, who, signal)) ?? findOne(connection, who, signal),
    );
    const isMember = kind === "member";
    await confirm(
      isMember
        ? {
            question: `Remove ${one.email} from the account`,
            consequence: "Keys that they made as a member, logins and apps that they allowed end too.",
          }
        : { question: `Take back the invitation of ${one.email}` },
    );
    const path = `/${isMember ? "members" : "invitations"}/${encodeURIComponent(one.id)}`;
    const answer = await request(path, { method: "DELETE" });
    const what = isMember ? "is removed" : "is no longer invited";
    return { json: answer, show: () => terminal.print(`${printable(one.email)} ${what}.`) };
  },
});

export const membersCommand = command({
  name: "members",
  summary: "list, invite and remove the people of the account",
  description: "Manage the members of the account. For owners and admins, with headrace login.",
  examples: [
    "headrace members list",
    "headrace members invite ada@example.com",
    "headrace members role ada@example.com admin",
    'headrace members quotas ada@example.com "5 usd per day"',
    "headrace members tools ada@example.com github,weather",
    "headrace members sees ada@example.com all",
    "headrace members remove ada@example.com",
  ],
  help: [roleMeanings],
  commands: [listCommand, inviteCommand, roleCommand, quotasCommand, toolsCommand, seesCommand, removeCommand],
});

function parseGivenQuotas(text: string): GivenQuotaRule[] {
  return text === "none" ? [] : parseQuotas(text);
}

function parseSees(text: string): keyof typeof seesMeanings {
  if (text === "own" || text === "all") return text;
  throw new InvalidArgumentError("It must be own or all.");
}

function parseRole(text: string): Role {
  const role = roles.find((one) => one === text);
  if (role) return role;
  throw new InvalidArgumentError(`It must be one of ${roles.join(", ")}.`);
}

/**
 * Finds the caller's own membership without the list of members. Plain members may not read the list, although they may
 * leave.
 */
async function findSelf(connection: Connection, who: string, signal: AbortSignal): Promise<Found | undefined> {
  const { person, account, accounts } = understood(
    ownSession,
    await requestJson(connection, "/session", signal),
    connection,
    "session",
  );
  const own = accounts.find(({ id }) => id === account.id);
  const isMeant = own && (who === own.membership_id || who.trim().toLowerCase() === person.email.toLowerCase());
  return isMeant ? { kind: "member", one: { ...person, id: own.membership_id } } : undefined;
}

/**
 * Finds a member or an invited person by id or address. Members come first. Rejects with a CliError if nobody matches.
 */
async function findOne(connection: Connection, who: string, signal: AbortSignal): Promise<Found> {
  refuseSecret(who);
  const wanted = who.trim().toLowerCase();
  const isMeant = ({ id, email }: { id: string; email: string }) => id === who || email.toLowerCase() === wanted;
  const listed = await requestList(connection, "/members", signal);
  const one = listed.map((raw) => understood(member, raw, connection, "list of members")).find(isMeant);
  if (one) return { kind: "member", one };
  const invited = await requestList(connection, "/invitations", signal);
  const open = invited.map((raw) => understood(invitation, raw, connection, "list of invitations")).find(isMeant);
  if (open) return { kind: "invitation", one: open };
  throw new CliError(
    `No person with the address or id \`${printable(who)}\` is a member or invited. See headrace members list.`,
  );
}

/** Finds a member. Rejects with a CliError for an invited person, who has no membership to change. */
async function findMember(connection: Connection, who: string, signal: AbortSignal): Promise<Found["one"]> {
  const { kind, one } = await findOne(connection, who, signal);
  if (kind === "member") return one;
  throw new CliError(`${printable(one.email)} has not joined yet. headrace members list shows who has.`);
}

function article(role: string): string {
  return /^[aeiou]/.test(role) ? "an" : "a";
}
