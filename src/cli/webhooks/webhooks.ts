// `headrace webhooks`: lists, creates, tests and deletes webhooks, and shows their deliveries.
import { z } from "zod";
import { notificationTypes } from "../../domain/notifications/notification.ts";
import { webhookFormats } from "../../domain/notifications/webhook.ts";
import { command, printRows } from "../command.ts";
import { refuseSecret } from "../keys/key-records.ts";
import { parseNames } from "../keys/key-settings.ts";
import { requestJson, requestWholeList, understood } from "../login/api-request.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { formatRelative } from "../terminal/figures.ts";
import { CliError, printable } from "../terminal/terminal.ts";

const webhook = z.object({
  id: z.string(),
  url: z.string(),
  format: z.string().optional(),
  description: z.string(),
  events: z.array(z.string()),
  enabled: z.boolean(),
  disabled_reason: z.string().nullish(),
});
const madeWebhook = webhook.extend({ secret: z.string() });
const attempt = z.object({ at: z.number(), status: z.number().nullable(), error: z.string().nullable() });
const delivery = z.object({
  event_id: z.string(),
  type: z.string(),
  state: z.string(),
  attempts: z.array(attempt),
  created_at: z.number(),
  next_attempt_at: z.number().nullable(),
});
const deliveryPage = z.object({ data: z.array(z.unknown()) });
type Delivery = z.infer<typeof delivery>;

const idArgument = ["<id>", "id of the webhook, whk_…"] as const;
const operators = ["--operators", "webhooks of the server, for operators"] as const;
/** The time to wait for a test delivery. The server attempts it immediately and for at most 15 s. */
const testWaitMs = 20_000;
const testPollMs = 250;

const pathOf = (options: { operators?: boolean }, id?: string) =>
  `${options.operators ? "/admin" : ""}/webhooks${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;

const listCommand = serverCommand({
  name: "list",
  summary: "list the webhooks",
  description: "List the webhooks of the account, or of the operators.",
  options: { operators, json: ["--json", "print all of them as the API gives them"] },
  examples: ["headrace webhooks list", "headrace webhooks list --operators --json"],
  async run({ ask, connect, options, terminal }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestWholeList(connection, pathOf(options), "list of webhooks", signal));
    const show = () => {
      const found = raw.map((one) => understood(webhook, one, connection, "list of webhooks"));
      if (found.length === 0) {
        return terminal.note("There is no webhook yet. Make one with: headrace webhooks create <url>");
      }
      printRows(terminal, found, [
        ["URL", ({ url }) => url],
        ["EVENTS", ({ events }) => (events.length === 0 ? "all" : events.join(", "))],
        ["FORMAT", ({ format }) => format ?? "standard"],
        ["STATE", (one) => (one.enabled ? "enabled" : `disabled${one.disabled_reason === "gone" ? " (410)" : ""}`)],
        ["ID", ({ id }) => id],
      ]);
    };
    return { json: raw, show };
  },
});

const createCommand = serverCommand({
  name: "create",
  summary: "make a webhook",
  description: "Make a webhook. Events are posted to its URL, signed as Standard Webhooks specifies.",
  arguments: [["<url>", "an https address on the public internet"]],
  options: {
    format: ["--format <name>", `body of the events: ${webhookFormats.join(", ")} (default: standard)`],
    routingKeyStdin: ["--routing-key-stdin", "read PagerDuty's integration key from standard input"],
    events: ["--events <types>", "event types to send, separated by commas (default: all)", parseNames],
    description: ["--description <text>", "a label"],
    operators,
    quiet: ["-q, --quiet", "print the secret and nothing else"],
    json: ["--json", "print what the API gives, the secret included"],
  },
  examples: [
    "headrace webhooks create https://hooks.example.com/headrace --events quota.threshold,key.expiring",
    "headrace webhooks create https://hooks.example.com/operators --operators",
    "headrace webhooks create https://events.pagerduty.com/v2/enqueue --operators --format pagerduty --routing-key-stdin",
  ],
  help: [
    `The secret is printed once, alone on standard output; everything else goes to
standard error. It cannot be shown again.`,
    `Types of events:
  ${notificationTypes.join("\n  ")}`,
  ],
  async run({ connect, context, request, options, terminal }, url) {
    refuseSecret(url);
    const { format, events, description } = options;
    const body = {
      url,
      ...(format === undefined ? {} : { format }),
      ...(options.routingKeyStdin ? { routing_key: await context.input.readLine() } : {}),
      ...(events === undefined ? {} : { events }),
      ...(description === undefined ? {} : { description }),
    };
    const answer = await request(pathOf(options), { method: "POST", body });
    const made = understood(madeWebhook, answer, await connect(), "new webhook");
    const show = () => {
      if (!options.quiet) terminal.note(`Webhook ${printable(made.id)} posts to ${printable(made.url)}.`);
      terminal.print(terminal.out.bold(printable(made.secret)));
      if (options.quiet) return;
      terminal.note(terminal.err.bold("This is the only time the secret is shown: store it now."));
      terminal.note(terminal.err.dim(`Test it with: headrace webhooks test ${printable(made.id)}`));
    };
    return { json: answer, show };
  },
});

const testCommand = serverCommand({
  name: "test",
  summary: "send a test event, and show the result",
  description: "Send the event webhook.test to one webhook, and wait for its first attempt.",
  arguments: [idArgument],
  options: { operators, json: ["--json", "print the delivery as the API gives it"] },
  examples: ["headrace webhooks test whk_01a2"],
  async run(call, id) {
    const { request, connect, options, terminal } = call;
    refuseSecret(id);
    const path = pathOf(options, id);
    const sent = understood(
      z.object({ event_id: z.string() }),
      await request(`${path}/test`, { method: "POST" }),
      await connect(),
      "test",
    );
    const { raw, found } = await firstAttempt(call, path, sent.event_id);
    const [last] = found.attempts.slice(-1);
    const isTaken = found.state === "delivered";
    const show = () => {
      if (isTaken) terminal.print(`The receiver took it: ${cameOf(found)}.`);
    };
    const again =
      found.next_attempt_at === null
        ? ""
        : ` It is tried again ${formatRelative(found.next_attempt_at, call.nowSeconds())}.`;
    const failure = `The receiver did not take it: ${last ? cameOf(found) : "no attempt yet"}.${again}`;
    return { json: raw, show, ...(isTaken ? {} : { failure }) };
  },
});

/**
 * Waits for the first attempt and returns the delivery. If the attempt takes too long, returns the delivery's current
 * state.
 */
async function firstAttempt(
  { ask, connect }: Pick<ServerCall<unknown>, "ask" | "connect">,
  path: string,
  eventId: string,
): Promise<{ raw: unknown; found: Delivery }> {
  const connection = await connect();
  return ask(async (_, signal) => {
    for (const end = performance.now() + testWaitMs; ; ) {
      const answer = await requestJson(connection, `${path}/deliveries?limit=20`, signal);
      for (const raw of understood(deliveryPage, answer, connection, "list of deliveries").data) {
        const found = understood(delivery, raw, connection, "list of deliveries");
        const isOver = found.attempts.length > 0 || found.state !== "pending" || performance.now() > end;
        if (found.event_id === eventId && isOver) return { raw, found };
      }
      if (performance.now() > end)
        throw new CliError("The server has not sent it yet. Look with: headrace webhooks deliveries");
      await Bun.sleep(testPollMs);
    }
  });
}

const deliveriesCommand = serverCommand({
  name: "deliveries",
  summary: "list the deliveries of a webhook",
  description: "List the last 50 deliveries to one webhook, newest first.",
  arguments: [idArgument],
  options: { operators, json: ["--json", "print them as the API gives them"] },
  examples: ["headrace webhooks deliveries whk_01a2"],
  async run({ request, connect, options, terminal, nowSeconds }, id) {
    refuseSecret(id);
    const answer = await request(`${pathOf(options, id)}/deliveries?limit=50`);
    const connection = await connect();
    const { data } = understood(deliveryPage, answer, connection, "list of deliveries");
    const show = () => {
      const found = data.map((one) => understood(delivery, one, connection, "list of deliveries"));
      if (found.length === 0) return terminal.note("Nothing was delivered in the last 30 days.");
      const now = nowSeconds();
      printRows(terminal, found, [
        ["TYPE", ({ type }) => type],
        ["WHEN", (one) => formatRelative(one.created_at, now)],
        ["STATE", ({ state }) => state],
        ["ATTEMPTS", ({ attempts }) => String(attempts.length)],
        ["LAST", cameOf],
        ["NEXT", (one) => formatRelative(one.next_attempt_at, now)],
        ["EVENT", (one) => one.event_id],
      ]);
    };
    return { json: data, show };
  },
});

const deleteCommand = serverCommand({
  name: "delete",
  summary: "delete a webhook",
  description: "Delete a webhook. Pending deliveries are dropped.",
  arguments: [idArgument],
  options: {
    operators,
    yes: ["-y, --yes", "do not ask"],
    json: ["--json", "print what the API answers"],
  },
  examples: ["headrace webhooks delete whk_01a2 --yes"],
  async run({ request, connect, confirm, options, terminal }, id) {
    refuseSecret(id);
    const path = pathOf(options, id);
    const { url } = understood(webhook, await request(path), await connect(), "webhook");
    await confirm({ question: `Delete the webhook to ${printable(url)}` });
    const answer = await request(path, { method: "DELETE" });
    return { json: answer, show: () => terminal.print(`The webhook to ${printable(url)} is deleted.`) };
  },
});

/** Returns the result of the last attempt, such as `200` or `timeout`. */
function cameOf({ attempts }: Delivery): string {
  const last = attempts.at(-1);
  if (!last) return "-";
  return last.error === null ? String(last.status ?? "-") : last.error.replaceAll("_", " ");
}

export const webhooksCommand = command({
  name: "webhooks",
  summary: "manage webhooks for quotas, keys, errors, upstreams and nodes",
  description:
    "Manage webhooks: URLs that receive events when a quota is nearly used up, a key expires, requests fail, or, for operators, an upstream or a node is down. Needs a login as an owner or admin, or a key with the scope keys:manage.",
  examples: [
    "headrace webhooks create https://hooks.example.com/headrace",
    "headrace webhooks test whk_01a2",
    "headrace webhooks deliveries whk_01a2",
  ],
  commands: [listCommand, createCommand, testCommand, deliveriesCommand, deleteCommand],
});
