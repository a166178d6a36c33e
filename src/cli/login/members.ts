// `headrace members`: lists, invites, changes and removes the people of an account.
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { type Role, roles } from "../../domain/people/role.ts";
import { refuseSecret } from "../keys/key-records.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatRelative, formatTimeAndRelative } from "../terminal/figures.ts";
import { confirm } from "../terminal/input.ts";
import { CliError, formatTable, interruptible, printable } from "../terminal/terminal.ts";
import { requestJson, requestList, understood } from "./api-request.ts";
import { addConnectionOptions, type ConnectionOptions, connectionHelp, findConnection } from "./client.ts";
import type { Connection } from "./connection.ts";

interface MembersOptions extends ConnectionOptions {
  json?: boolean;
  yes?: boolean;
}

interface InviteOptions extends MembersOptions {
  role: Role;
  quiet?: boolean;
}

const member = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  role: z.string(),
  created_at: z.number(),
  last_seen_at: z.number().nullish(),
});
const invitation = z.object({ id: z.string(), email: z.string(), role: z.string(), expires_at: z.number() });
const newInvitation = invitation.extend({ link: z.string().nullable() });

const ownSession = z.object({
  person: z.object({ email: z.string() }),
  account: z.object({ id: z.string() }),
  accounts: z.array(z.object({ id: z.string(), membership_id: z.string() })),
});

/** Somebody who is in the account, or who may come. */
interface Found {
  kind: "member" | "invitation";
  one: { id: string; email: string };
}

const whoArgument = ["<who>", "e-mail address, or id"] as const;
const roleMeanings = `
Members manage their own keys, apps and chats; admins all of the account's; owners
its owners and admins as well.`;

export function registerMembers(program: Command, context: CliContext): void {
  const members = program
    .command("members")
    .summary("list, invite and remove the people of the account")
    .description("Manage who is a member of the account. For its owners and admins, with headrace login.")
    .addHelpText(
      "after",
      `
Examples:
  headrace members list
  headrace members invite ada@example.com
  headrace members role ada@example.com admin
  headrace members remove ada@example.com
${roleMeanings}`,
    );
  const list = members
    .command("list")
    .summary("list the members, and who is invited")
    .description("List the members of the account, and the invitations that nobody has followed yet.");
  addConnectionOptions(list.option("--json", "print both lists as the API gives them"))
    .addHelpText("after", `\nExamples:\n  headrace members list\n  headrace members list --json\n${connectionHelp}`)
    .action((options: MembersOptions) => listAll(context, options));

  const invite = members
    .command("invite")
    .summary("send or make a link with which somebody joins")
    .description("Invite somebody into the account by a link that works once, for a week.");
  addConnectionOptions(
    invite
      .argument("<email>", "of whom it is for")
      .option("--role <role>", `one of ${roles.join(", ")}`, parseRole, "member")
      .option("-q, --quiet", "print nothing but the link, or on standard error the address that it was mailed to")
      .option("--json", "print what the API gives, the link included"),
  )
    .addHelpText(
      "after",
      `
Examples:
  headrace members invite ada@example.com
  headrace members invite ada@example.com --role admin --quiet

Where the server sends mail, the link goes to the address and is not shown. Otherwise it
is printed once, alone on standard output; everything else goes to standard error.
Whoever has it can join: hand it over where nobody else reads it.
${roleMeanings}
${connectionHelp}`,
    )
    .action((email: string, options: InviteOptions) => inviteOne(context, email, options));

  const role = members
    .command("role")
    .summary("change a member's role")
    .description("Change a member's role. For owners.");
  addConnectionOptions(
    role
      .argument(...whoArgument)
      .argument("<role>", `one of ${roles.join(", ")}`, parseRole)
      .option("--json", "print the member as the API gives it"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace members role ada@example.com owner\n${roleMeanings}\n${connectionHelp}`,
    )
    .action((who: string, wanted: Role, options: MembersOptions) => changeRole(context, who, wanted, options));

  const remove = members
    .command("remove")
    .summary("remove a member, or take an invitation back")
    .description("Remove somebody from the account, or take back an invitation; one's own address: leave it.");
  addConnectionOptions(
    remove
      .argument(...whoArgument)
      .option("-y, --yes", "do not ask")
      .option("--json", "print what the API gives"),
  )
    .addHelpText(
      "after",
      `\nExamples:\n  headrace members remove ada@example.com\n  headrace members remove ada@example.com --yes\n${connectionHelp}`,
    )
    .action((who: string, options: MembersOptions) => removeOne(context, who, options));
}

function parseRole(text: string): Role {
  const role = roles.find((one) => one === text);
  if (role) return role;
  throw new InvalidArgumentError(`It must be one of ${roles.join(", ")}.`);
}

async function listAll(context: CliContext, options: MembersOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const lists = await interruptible(async (signal) => ({
    members: await requestList(connection, "/members", signal),
    invitations: await requestList(connection, "/invitations", signal),
  }));
  if (options.json) {
    terminal.print(JSON.stringify(lists, undefined, 2));
    return;
  }
  const nowSeconds = Math.floor(context.nowMs() / 1000);
  const joined = lists.members
    .map((raw) => understood(member, raw, connection, "list of members"))
    .map((one) => [
      ...[one.email, one.name, one.role, formatRelative(one.created_at, nowSeconds)],
      ...[formatRelative(one.last_seen_at, nowSeconds), one.id],
    ]);
  const invited = lists.invitations
    .map((raw) => understood(invitation, raw, connection, "list of invitations"))
    .map((one) => [
      one.email,
      "-",
      one.role,
      `invited, ends ${formatRelative(one.expires_at, nowSeconds)}`,
      "-",
      one.id,
    ]);
  const header = ["E-MAIL", "NAME", "ROLE", "JOINED", "LAST SEEN", "ID"];
  terminal.print(formatTable(header, [...joined, ...invited], terminal.out));
}

async function inviteOne(context: CliContext, email: string, options: InviteOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  refuseSecret(email);
  const connection = await findConnection(context, options);
  const body = { email, role: options.role };
  const answer = await interruptible((signal) =>
    requestJson(connection, "/invitations", signal, { method: "POST", body }),
  );
  if (options.json) {
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  const made = understood(newInvitation, answer, connection, "new invitation");
  if (made.link !== null) terminal.print(printable(made.link));
  if (options.quiet) {
    // With nothing at all, nobody would know why there is no link, or whether the address was the right one.
    if (made.link === null) terminal.note(`Mailed to ${printable(made.email)}.`);
    return;
  }
  const who = `${printable(made.email)} is invited as ${article(made.role)} ${printable(made.role)}`;
  const until = formatTimeAndRelative(made.expires_at, Math.floor(context.nowMs() / 1000));
  terminal.note(`${who}. The link works once, until ${until}.`);
  terminal.note(made.link === null ? "It was sent by mail." : "No mail was sent: hand the link over yourself.");
}

async function changeRole(context: CliContext, who: string, role: Role, options: MembersOptions): Promise<void> {
  context.begin();
  const { terminal } = context;
  const connection = await findConnection(context, options);
  const found = await interruptible((signal) => findOne(connection, who, signal));
  if (found.kind === "invitation") {
    throw new CliError(
      `${printable(found.one.email)} has not joined yet. Invite again with the other role: headrace members invite ${printable(found.one.email)} --role ${role}`,
    );
  }
  const { id, email } = found.one;
  const answer = await interruptible((signal) =>
    requestJson(connection, `/members/${encodeURIComponent(id)}`, signal, { method: "PATCH", body: { role } }),
  );
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else terminal.print(`${printable(email)} is ${article(role)} ${role} now.`);
}

async function removeOne(context: CliContext, who: string, options: MembersOptions): Promise<void> {
  context.begin();
  const { terminal, input } = context;
  const connection = await findConnection(context, options);
  const { kind, one } = await interruptible(
    async (signal) => (await findSelf(connection, who, signal)) ?? findOne(connection, who, signal),
  );
  const isMember = kind === "member";
  await confirm(input, {
    question: isMember ? `Remove ${one.email} from the account` : `Take back the invitation of ${one.email}`,
    ...(isMember ? { consequence: "Keys that they made as a member, logins and apps that they allowed end too." } : {}),
    yes: options.yes,
  });
  const path = `/${isMember ? "members" : "invitations"}/${encodeURIComponent(one.id)}`;
  const answer = await interruptible((signal) => requestJson(connection, path, signal, { method: "DELETE" }));
  const what = isMember ? "is removed" : "is no longer invited";
  if (options.json) terminal.print(JSON.stringify(answer, undefined, 2));
  else terminal.print(`${printable(one.email)} ${what}.`);
}

/** Oneself, by whom no list is needed: members see none, and may leave. */
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

/** By id or address: a member before an invitation. Rejects with a CliError where there is nobody. */
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
    `Nobody with the address or id \`${printable(who)}\` is a member or invited. headrace members list shows who is.`,
  );
}

function article(role: string): string {
  return /^[aeiou]/.test(role) ? "an" : "a";
}
